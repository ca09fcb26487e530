import {
  isCallExpression,
  isFunctionDeclaration,
  type Node,
  type ParameterDeclaration,
} from "typescript/unstable/ast";
import type { Violation } from "./house-rules.ts";
import { lineOf, type Source, walk } from "./source-files.ts";

/** Where memory budgets are made. */
const BUDGETS = "src/store/contents/memory-budget.ts";

/** The files that may make a budget, each with what bounds the bytes that it reads. */
export const BUDGET_HOMES: Readonly<Record<string, string>> = {
  "src/store/contents/large-reads.ts": "four large messages at once, one of a project",
  "src/flows/read/record.ts": "large mails' turns, and the room of the answer",
  "src/flows/read/bytes.ts":
    "large mails' turns, and http/pipeline/download for what is handed out in pieces",
  "src/flows/deliver/render.ts": "dispatch/in-flight-limits and deliver/admission, or contents/large-reads",
  "src/flows/sweep/offload.ts": "one large content at a time",
  "src/flows/sweep/delete-messages.ts": "one message at a time, of a named number of octets",
  "src/flows/search/texts.ts": "one message at a time, of a named number of octets",
  "src/commands/transfer/export.ts": "one content of the object store at a time",
  "src/store/contents/content-read.ts": "the budget that contentBytes was given",
};

const MAKERS = /^(?:waitingBudget|budgetOf|reservedBudget)$/;
const READERS =
  /^(?:contentBytes|contentPieces|contentRange|inOnePiece|readChunks|readBodyStart|readText|readEnd|storedChunks|objects\.read)$/;
const READING_SQL = /\bSELECT bytes FROM content_chunks\b/;

/** Stored content is read within a memory budget that the caller has named. */
export function memoryBudgets(source: Source): Violation[] {
  const found: Violation[] = [];
  walk(source.tree, (node) => {
    if (isCallExpression(node) && MAKERS.test(node.expression.getText()) && !mayMake(source.path))
      found.push(`${source.path}:${lineOf(node)}: only the files in BUDGET_HOMES make memory budgets`);
    if (
      source.path.startsWith("src/store/") &&
      isFunctionDeclaration(node) &&
      reads(node) &&
      !takesBudget(node)
    )
      found.push(
        `${source.path}:${lineOf(node)}: ${node.name?.text} reads content and requires no MemoryBudget`,
      );
  });
  return found;
}

function mayMake(path: string): boolean {
  return path === BUDGETS || Object.hasOwn(BUDGET_HOMES, path);
}

function reads(node: Node): boolean {
  let found = false;
  walk(node, (child) => {
    if (isCallExpression(child) && READERS.test(child.expression.getText())) found = true;
  });
  return found || READING_SQL.test(node.getText());
}

function takesBudget({ parameters }: { parameters: readonly ParameterDeclaration[] }): boolean {
  return parameters.some(
    ({ type, questionToken, initializer }) =>
      type?.getText() === "MemoryBudget" && questionToken === undefined && initializer === undefined,
  );
}
