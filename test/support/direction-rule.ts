import {
  isBindingElement,
  isCallExpression,
  isIdentifier,
  isJsxAttribute,
  isJsxElement,
  isJsxExpression,
  isJsxFragment,
  isPropertyAccessExpression,
  type JsxElement,
  type Node,
} from "typescript/unstable/ast";
import type { Violation } from "./house-rules.ts";
import { lineOf, type Source, walk } from "./source-files.ts";

/** Fields with words that people write in any language, as the API names them. */
const WRITTEN = new Set([
  "subject",
  "preview",
  "replyText",
  "filename",
  "fromName",
  "toName",
  "firstName",
  "lastName",
  "displayName",
  "summary",
  "participantNames",
]);

/**
 * Requires an element with `dir="auto"`, or `<bdi>`, around words of people, so that Hebrew and Arabic begin at their side. It reads
 * what JSX shows, not attributes such as `title`, whose direction browsers choose themselves.
 */
export function ownDirection({ path, tree }: Source): Violation[] {
  if (!path.startsWith("src/ui/") || !path.endsWith(".tsx")) return [];
  const found = new Set<Violation>();
  walk(tree, (node) => {
    if (!isIdentifier(node) || !WRITTEN.has(node.text) || isOther(node) || !isShown(node)) return;
    found.add(`${path}:${lineOf(node)}: ${node.text} is shown without dir="auto"`);
  });
  return [...found];
}

/** Returns whether the name is declared here, or only a field of the value is read: `subject.type` shows no subject. */
function isOther(node: Node): boolean {
  const { parent } = node;
  if (isBindingElement(parent)) return true;
  const isCalled = isCallExpression(parent.parent) && parent.parent.expression === parent;
  return isPropertyAccessExpression(parent) && parent.expression === node && !isCalled;
}

/** Returns whether an element shows the value, and neither it nor one around it has a direction. */
function isShown(node: Node): boolean {
  let shown = false;
  for (let at: Node = node; at.parent !== undefined; at = at.parent) {
    const { parent } = at;
    if (isJsxAttribute(parent)) return false;
    if (isJsxExpression(at) && (isJsxElement(parent) || isJsxFragment(parent))) shown = true;
    if (isJsxElement(parent) && hasDirection(parent)) return false;
  }
  return shown;
}

function hasDirection({ openingElement }: JsxElement): boolean {
  const { tagName, attributes } = openingElement;
  return (
    tagName.getText() === "bdi" ||
    attributes.properties.some((one) => isJsxAttribute(one) && one.name.getText() === "dir")
  );
}
