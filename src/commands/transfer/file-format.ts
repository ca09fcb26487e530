import type { StoredRow } from "../../store/transfer/export-rows.ts";
import type { FileRow } from "../../store/transfer/import-rows.ts";
import { KINDS, KIND_OF, type Kind } from "../../store/transfer/kinds.ts";
import { refused, unavailable } from "../support/exit.ts";

/*
 * The file is NDJSON (https://github.com/ndjson/ndjson-spec):
 *   {"postrider":1,"version":"1.0.0","schema":1,"at":"2026-01-31T00:00:00.000Z","messages":false,"project":null,"key":"…"}
 *   {"senders":{"id":"snd_…","name":"Shop",…}}      a row of a table, by the names of its columns; parents come first
 *   {"end":{"senders":1,…}}                          the rows of each table, so that a file cut short is noticed
 * Bytes are {"base64":"…"}. Secrets are sealed with the master key, which "key" tells from others.
 */

/** Version of the format. */
export const FORMAT = 1;
/** Maximum length of a line, bytes. The longest rows are a batch's waiting events, some 3 MB. */
export const MAX_LINE_BYTES = 32 * 1024 * 1024;

/** The first line. */
export interface Header {
  postrider: number;
  /** Version of the program that made the file. */
  version: string;
  /** Newest schema step of the database it was made from. */
  schema: number;
  at: string;
  messages: boolean;
  project: string | null;
  /** `KEY_CHECK`, sealed with the master key. */
  key: string;
}

/** What `key` in the first line opens to. */
export const KEY_CHECK = "postrider export";

/** Rows by table. */
export type Counts = Record<string, number>;

/** Returns the line of a row. */
export function rowLine(table: string, row: StoredRow): string {
  const shown = Object.fromEntries(Object.entries(row).map(([column, value]) => [column, shownValue(value)]));
  return `${JSON.stringify({ [table]: shown })}\n`;
}

function shownValue(value: StoredRow[string]): unknown {
  if (value instanceof ArrayBuffer) return { base64: Buffer.from(value).toString("base64") };
  return value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value;
}

/** A line of the file, by its number. */
export interface Line {
  number: number;
  text: string;
}

/** A parsed line after the first. */
export type Parsed = { kind: Kind; row: FileRow } | { end: Counts };

const LINE_FEED = 0x0a;

/** Reads the lines of a file, one at a time. Throws if a line is too long. */
export async function* linesOf(path: string): AsyncGenerator<Line, void, undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let parts: Uint8Array[] = [];
  let length = 0;
  let number = 1;
  const line = (): Line => {
    const text = decoder.decode(Buffer.concat(parts));
    parts = [];
    length = 0;
    return { number: number++, text };
  };
  const take = (part: Uint8Array): void => {
    length += part.length;
    if (length > MAX_LINE_BYTES) throw faulty(number, `is longer than ${MAX_LINE_BYTES} bytes`);
    parts.push(part);
  };
  try {
    for await (const chunk of Bun.file(path).stream()) {
      let from = 0;
      for (let to = chunk.indexOf(LINE_FEED); to >= 0; to = chunk.indexOf(LINE_FEED, from)) {
        take(chunk.subarray(from, to));
        yield line();
        from = to + 1;
      }
      take(chunk.subarray(from));
    }
  } catch (error) {
    if (error instanceof TypeError) throw faulty(number, "is not UTF-8");
    if (error instanceof Error && "syscall" in error) throw unavailable(`${path} cannot be read`);
    throw error;
  }
  if (length > 0) yield line();
}

/** Returns the error for a line that cannot be read. */
export function faulty(number: number, why: string): Error {
  return refused(`line ${number} ${why}. Nothing was imported`);
}

/** Reads the first line. @param schema the newest schema step of this program */
export function readHeader({ text }: Line, schema: number): Header {
  const header = jsonOf(text) as Partial<Header> | null;
  if (typeof header !== "object" || header === null || typeof header.postrider !== "number")
    throw refused("this is no file of `postrider export`: the first line is not its header");
  if (header.postrider !== FORMAT)
    throw refused(
      `the file has format ${header.postrider}, and this program reads ${FORMAT}: import it with version ${header.version} or newer`,
    );
  const { version, schema: made, key } = header;
  if (typeof version !== "string" || typeof made !== "number" || typeof key !== "string")
    throw refused("the first line lacks version, schema or key");
  if (made > schema)
    throw refused(
      `the file is of schema ${made} (version ${version}), and this program has ${schema}: import it with version ${version} or newer`,
    );
  return header as Header;
}

/** Reads a line after the first: a row, or the end. */
export function readLine({ number, text }: Line): Parsed {
  const entries = Object.entries(jsonOf(text) ?? {});
  const [name, value] = entries[0] ?? [];
  if (entries.length !== 1 || name === undefined || typeof value !== "object" || value === null)
    throw faulty(number, "is no row: the file was cut off or changed");
  if (name === "end") return { end: value as Counts };
  const kind = KIND_OF.get(name);
  if (kind === undefined)
    throw faulty(number, `has the kind ${JSON.stringify(name)}, which this program does not know`);
  const row = Object.fromEntries(
    Object.entries(value).map(([column, shown]) => [column, readValue(shown, number)]),
  );
  const lacking = kind.key.find((column) => row[column] == null);
  if (lacking !== undefined) throw faulty(number, `lacks ${lacking}`);
  return { kind, row };
}

function jsonOf(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

function readValue(shown: unknown, number: number): FileRow[string] {
  if (shown === null || typeof shown === "string" || typeof shown === "number") return shown;
  if (typeof shown === "object" && "base64" in shown && typeof shown.base64 === "string")
    return new Uint8Array(Buffer.from(shown.base64, "base64"));
  throw faulty(number, "has a value that is no string, number, null or base64");
}

/**
 * Reads the whole file before anything is written, so that a file that was cut off or changed imports nothing.
 * @returns the header and the counts
 */
export async function checkFile(path: string, schema: number): Promise<{ header: Header; counts: Counts }> {
  let header: Header | null = null;
  let end: Counts | null = null;
  let place = 0;
  const counts: Counts = {};
  for await (const line of linesOf(path)) {
    if (end !== null) throw faulty(line.number, "comes after the end");
    if (header === null) {
      header = readHeader(line, schema);
      continue;
    }
    const parsed = readLine(line);
    if ("end" in parsed) {
      end = parsed.end;
      continue;
    }
    const { table } = parsed.kind;
    const at = KINDS.indexOf(parsed.kind);
    if (at < place) throw faulty(line.number, `has ${table} after ${KINDS[place]?.table}`);
    place = at;
    counts[table] = (counts[table] ?? 0) + 1;
  }
  if (header === null) throw refused(`${path} is empty`);
  if (end === null) throw refused(`${path} was cut off: its last line is missing. Nothing was imported`);
  const different = Object.keys({ ...end, ...counts }).find((table) => end?.[table] !== counts[table]);
  if (different !== undefined)
    throw refused(
      `${path} has ${counts[different] ?? 0} ${different}, and its last line says ${end[different] ?? 0}. Nothing was imported`,
    );
  return { header, counts };
}
