import { stringify } from "csv-stringify/sync";
import type { Parts } from "./parts.ts";
import { type Answer, ok, raw } from "./answer.ts";
import type { Page } from "./paging.ts";

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

/** A list that is answered as a page, or whole. */
export interface AnsweredList<Row, Item extends object> {
  /** The project or account whose list it is. */
  owner: string;
  /** Reads at most `take` rows after a position. `stoppedAt`: position after which the list continues if the rows end early. */
  read(after: string | null, take: number): Promise<RowsRead<Row>>;
  show(row: Row): Item;
  position(row: Row): string;
  /** Columns of the table. If left out, the whole list is lines of JSON. */
  columns?: readonly (keyof Item & string)[];
}

interface RowsRead<Row> {
  rows: readonly Row[];
  stoppedAt?: string | null;
}

/** Returns the whole list if the request accepts its form, CSV or lines of JSON; else a page of it. */
export async function pageOrWhole<Row, Item extends object>(
  { handOut }: Pick<Parts, "handOut">,
  { request, page }: { request: Request; page: () => Page },
  list: AnsweredList<Row, Item>,
): Promise<Answer> {
  const { owner, read, show, position, columns } = list;
  if ((request.headers.get("accept") ?? "").includes(columns === undefined ? NDJSON : CSV)) {
    const type = columns === undefined ? NDJSON : `${CSV}; charset=utf-8`;
    const whole = { size: Number.POSITIVE_INFINITY, held: HELD, pieces: piecesOf(list) };
    return raw(await handOut(owner, whole), type);
  }
  const { after, take, answer } = page();
  const { rows, stoppedAt } = await read(after, take);
  return ok(answer(rows, show, position, stoppedAt));
}

async function* piecesOf<Row, Item extends object>({
  read,
  show,
  position,
  columns,
}: AnsweredList<Row, Item>): AsyncGenerator<Uint8Array> {
  let after: string | null = null;
  let first = true;
  do {
    const { rows, stoppedAt = null }: RowsRead<Row> = await read(after, ROWS_AT_A_TIME);
    const items = rows.map(show);
    yield Buffer.from(columns === undefined ? lines(items) : table(items, columns, first));
    first = false;
    const last = rows.at(-1);
    after = rows.length < ROWS_AT_A_TIME || last === undefined ? stoppedAt : position(last);
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
