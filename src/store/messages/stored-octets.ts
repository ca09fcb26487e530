import type { Statement, Value } from "../engine/client.ts";
import { ROW_OCTETS_AT } from "./messages.ts";

/*
 * Computes how much the statements of a send add to its project's stored octets at most, as the triggers of the schema
 * would count them. The result decides which sends of a batch fit; the write itself enforces the limit.
 */

/** Bytes that the triggers count for a row, without its strings. */
const [CONTENT_ROW, DELIVERY_ROW, ANSWER_ROW] = [256, 512, 256];
/** Positions of a content's size and place among the values of its statement. */
const [CONTENT_SIZE, CONTENT_PLACE] = [1, 3];
/** Values of one webhook delivery. */
const DELIVERY_VALUES = 8;

/** Returns the bytes that statements add at most. A content that was written before is counted already. */
export function storedOctets(statements: readonly Statement[]): number {
  return statements.reduce((sum, statement) => sum + octetsOf(statement), 0);
}

function octetsOf({ args, rows, sql }: Statement): number {
  const table = rows?.table ?? /^INSERT INTO (\w+)/.exec(sql)?.[1];
  if (table === "contents")
    return args[CONTENT_PLACE] === "row" ? CONTENT_ROW + Number(args[CONTENT_SIZE]) : 0;
  if (table === "messages") return Number(args[ROW_OCTETS_AT]);
  if (table === "webhook_deliveries") return DELIVERY_ROW * Math.floor(args.length / DELIVERY_VALUES);
  return table === "idempotency" ? ANSWER_ROW + textOctets(args as Value[]) : 0;
}

function textOctets(args: readonly Value[]): number {
  return args.reduce<number>(
    (sum, value) => sum + (typeof value === "string" ? Buffer.byteLength(value) : 0),
    0,
  );
}
