import {
  isCallExpression,
  isJsxText,
  isNoSubstitutionTemplateLiteral,
  isPropertyAssignment,
  isStringLiteral,
  isTemplateExpression,
  type Node,
} from "typescript/unstable/ast";
import { adviceParts } from "../../src/ui/words/operations.ts";
import type { Violation } from "./house-rules.ts";
import { lineOf, type Source, walk } from "./source-files.ts";

/** Rooms whose words the dashboard never shows: the reader of each is a program, or a person at a command line. */
const FOR_PROGRAMS = /^src\/(?:mcp|commands|wiring|http\/(?:resend|openapi|dashboard)|metrics\.ts)/;
/** Properties and calls of routes that describe the API in its reference. */
const REFERENCE = new Set(["description", "summary", "examples", "path"]);
const DESCRIBING = /^(?:OneOf|ShownOneOf|GivenRouteIds)$/;
/** Stands for a value in a sentence. */
const VALUE = " … ";

/**
 * Words that reach the dashboard name an operation only if it has a page there. The dashboard's own words name none. A string
 * without white space is a path in code.
 */
export function linkedAdvice({ path, text, tree }: Source): Violation[] {
  if (!text.includes("/v1/") || FOR_PROGRAMS.test(path) || path === "src/ui/words/operations.ts") return [];
  const found: Violation[] = [];
  walk(tree, (node) => {
    const words = wordsOf(node);
    if (words === null || !/\/v1\//.test(words) || !/\s/.test(words.replaceAll(VALUE, ""))) return;
    if (isReference(node)) return;
    const shown = path.startsWith("src/ui/")
      ? words
      : adviceParts(words)
          .map((part) => part.text)
          .join("");
    const [left] = /\S* ?\/v1\/\S*/.exec(shown) ?? [];
    if (left !== undefined)
      found.push(`${path}:${lineOf(node)}: PLACES of ui/words/operations has no ${left}`);
  });
  return found;
}

/** Returns the text of a string or template with a made-up id for each value; null for other nodes. */
function wordsOf(node: Node): string | null {
  if (isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node) || isJsxText(node)) return node.text;
  if (!isTemplateExpression(node)) return null;
  let text = node.head.text;
  for (const { literal } of node.templateSpans)
    text += `${/[/=]$/.test(text) ? "x_1" : VALUE}${literal.text}`;
  return text;
}

function isReference(node: Node): boolean {
  for (let at: Node | undefined = node.parent; at !== undefined; at = at.parent) {
    if (isPropertyAssignment(at) && REFERENCE.has(at.name.getText())) return true;
    if (isCallExpression(at) && DESCRIBING.test(at.expression.getText())) return true;
  }
  return false;
}
