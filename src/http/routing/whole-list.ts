import { stringify } from "csv-stringify/sync";
import type { Parts } from "./parts.ts";
import { type Answer, raw } from "./answer.ts";

/** Content types of a whole list: one JSON object per line, or a table (RFC 4180). */
export const NDJSON = "application/x-ndjson";
const CSV = "text/csv";

/** Rows read at a time. A contact has at most 16 KiB of metadata, 8 KiB of properties and 8 KiB of consent. */
export const ROWS_AT_A_TIME = 50;
/** Memory that a list holds while it is sent, bytes: its rows, and their text. */
const HELD = 3 * 1024 * 1024;

/** For the description of a list's route. */
export const AS_CSV = `With \`Accept: ${CSV}\`, the answer is the whole list as a table with a heading. A cell that begins like a formula gets an apostrophe in front, so that no program runs it.`;
export const AS_NDJSON = `With \`Accept: ${NDJSON}\`, the answer is the whole list, one JSON object per line.`;

/** A part of a list, and the position after which the next part begins; null at the end. */
export interface ListPart<Item> {
  items: readonly Item[];
  next: string | null;
}

/** Reads a part of a list. `after` is the `next` of the part before. */
export type ReadPart<Item> = (after: string | null, take: number) => Promise<ListPart<Item>>;

/** Returns the items and the position after them, for rows in their order. */
export function partOf<Row, Item>(
  rows: readonly Row[],
  show: (row: Row) => Item,
  position: (row: Row) => string,
  take: number,
  stoppedAt: string | null = null,
): ListPart<Item> {
  const last = rows.at(-1);
  const next = rows.length < take || last === undefined ? stoppedAt : position(last);
  return { items: rows.map(show), next };
}

/** Returns the whole list if the request accepts it as CSV or lines of JSON; null if it wants a page. */
export async function wholeList<Item extends object>(
  { handOut }: Pick<Parts, "handOut">,
  request: Request,
  owner: string,
  read: ReadPart<Item>,
  columns?: readonly (keyof Item & string)[],
): Promise<Answer | null> {
  const accepted = request.headers.get("accept") ?? "";
  if (columns !== undefined && accepted.includes(CSV))
    return send(CSV, (items, first) => table(items, columns, first));
  if (columns === undefined && accepted.includes(NDJSON)) return send(NDJSON, lines);
  return null;

  async function send(
    type: string,
    write: (items: readonly Item[], first: boolean) => string,
  ): Promise<Answer> {
    const pieces = piecesOf(read, write);
    const charset = type === CSV ? "; charset=utf-8" : "";
    return raw(await handOut(owner, { size: Number.POSITIVE_INFINITY, held: HELD, pieces }), type + charset);
  }
}

async function* piecesOf<Item>(
  read: ReadPart<Item>,
  write: (items: readonly Item[], first: boolean) => string,
): AsyncGenerator<Uint8Array> {
  let after: string | null = null;
  let first = true;
  do {
    const part: ListPart<Item> = await read(after, ROWS_AT_A_TIME);
    yield Buffer.from(write(part.items, first));
    first = false;
    after = part.next;
  } while (after !== null);
}

/** Puts an apostrophe before a cell that begins like a formula, or that an import would take for one with an apostrophe. */
function withoutFormula(cell: string): string {
  return /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(cell) ? `'${cell}` : cell;
}

function lines(items: readonly object[]): string {
  return items.map((item) => `${JSON.stringify(item)}\n`).join("");
}

function table<Item>(items: readonly Item[], columns: readonly string[], first: boolean): string {
  return stringify([...items], {
    columns: [...columns],
    header: first,
    record_delimiter: "\r\n",
    cast: { boolean: String, object: (value) => JSON.stringify(value), string: withoutFormula },
  });
}
