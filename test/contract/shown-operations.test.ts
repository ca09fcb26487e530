import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  isCallExpression,
  isJsxText,
  isNoSubstitutionTemplateLiteral,
  isPropertyAssignment,
  isStringLiteral,
  isTemplateExpression,
  type Node,
} from "typescript/unstable/ast";
import { match } from "../../src/ui/state/paths.ts";
import { adviceParts, PLACES } from "../../src/ui/words/operations.ts";
import { lineOf, parseFiles, readFiles, walk } from "../support/source-files.ts";

const ROOT = join(import.meta.dir, "../..");

/** Rooms whose texts the dashboard never shows: the reader of each is a program, or a person at a command line. */
const FOR_PROGRAMS = /^src\/(?:mcp|commands|wiring|http\/(?:resend|openapi|dashboard)|metrics\.ts)/;
/** Properties and calls of routes that describe the API in its reference. */
const REFERENCE = new Set(["description", "summary", "examples", "path"]);
const DESCRIBING = /^(?:OneOf|ShownOneOf|GivenRouteIds)$/;

interface Shown {
  where: string;
  text: string;
}

/** Returns the text of a string or template with a made-up id for each value; null for other nodes. */
function textOf(node: Node): string | null {
  if (isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node) || isJsxText(node)) return node.text;
  if (!isTemplateExpression(node)) return null;
  let text = node.head.text;
  for (const { literal } of node.templateSpans)
    text += /[/=]$/.test(text) ? `x_1${literal.text}` : ` … ${literal.text}`;
  return text;
}

function isReference(node: Node): boolean {
  for (let at: Node | undefined = node.parent; at !== undefined; at = at.parent) {
    if (isPropertyAssignment(at) && REFERENCE.has(at.name.getText())) return true;
    if (isCallExpression(at) && DESCRIBING.test(at.expression.getText())) return true;
  }
  return false;
}

const shown: Shown[] = [];
/** Paths of the sections of the dashboard, read from their source because it needs the types of browsers. */
let pages: string[] = [];
beforeAll(async () => {
  const texts = await readFiles(ROOT, "src/**/*.{ts,tsx}");
  pages = [...(texts["src/ui/frame/routes.ts"] ?? "").matchAll(/"(\/[^"]*)"/g)].map(([, path = ""]) => path);
  const named = Object.entries(texts).filter(
    ([path, text]) => text.includes("/v1/") && !FOR_PROGRAMS.test(path),
  );
  for (const { path, tree } of await parseFiles(Object.fromEntries(named)))
    walk(tree, (node) => {
      const text = textOf(node);
      // Words around it tell advice from a path in code.
      if (
        text === null ||
        !/\/v1\//.test(text) ||
        !/\s/.test(text.replaceAll(" … ", "")) ||
        isReference(node)
      )
        return;
      shown.push({ where: `${path}:${lineOf(node)}`, text });
    });
});

describe("advice that names an operation", () => {
  test("never reaches the dashboard as a path of the API", () => {
    const left = shown.filter(({ text }) =>
      adviceParts(text)
        .map((part) => part.text)
        .join("")
        .includes("/v1/"),
    );
    expect(left).toEqual([]);
    // Else the walk has lost its way.
    expect(shown.length).toBeGreaterThan(20);
  });

  test.each(
    PLACES.filter(([, , href]) => href !== null).map(([operation, , href]) => [operation, href ?? ""]),
  )("%s has a page at %s", (_operation, href) => {
    const { pathname } = new URL(href.replace(":id", "x_1"), "http://dashboard.test");
    expect(pages.filter((page) => match(page, pathname) !== null)).not.toEqual([]);
  });

  test("is in no words of the dashboard itself", () => {
    expect(
      shown.filter(({ where }) => where.startsWith("src/ui/") && !where.includes("operations.ts")),
    ).toEqual([]);
  });
});
