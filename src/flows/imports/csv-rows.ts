import { type CsvError, parse } from "csv-parse";
import { fileFault } from "./faults.ts";

/** Maximum octets of a row: metadata of 16 KiB, with its quotes doubled, and the rest. */
export const MAX_ROW_OCTETS = 64 * 1024;
/** Maximum number of columns. */
export const MAX_COLUMNS = 250;
/** Octets parsed at a time. This takes a millisecond or two of the event loop. */
export const SLICE_OCTETS = 16 * 1024;
/** Octets without the end of a row after which a file is refused: rows of empty cells have no text that counts. */
const MAX_UNFINISHED_OCTETS = 2 * MAX_ROW_OCTETS;

/** A row with the names of its values, or why it cannot be read. */
export interface RawRow {
  /** Number in the file, as a spreadsheet shows it. */
  row: number;
  names: readonly string[];
  values: readonly unknown[];
  error?: string;
}

/** Reads rows from the octets of a file. Both functions throw 422 for a file that cannot be read. */
export interface RowReader {
  /** Returns the rows that end in this piece. */
  take(piece: Uint8Array): RawRow[];
  end(): Promise<RawRow[]>;
}

/** Names for the columns of a file whose first row is data; null: the first row is a heading. */
export type NamesWithoutHeading = (first: readonly string[]) => readonly string[] | null;

/** Makes the reader of a table (RFC 4180), also with semicolons or tabs, as Excel writes it in many countries. */
export function csvRows(withoutHeading: NamesWithoutHeading): RowReader {
  let parser: ReturnType<typeof parse> | null = null;
  let beginning = Buffer.alloc(0);
  let unfinished = 0;
  let row = 0;
  let heading: readonly string[] | null = null;

  const begin = () => {
    parser ??= startParser(beginning);
    return parser;
  };
  const rowsIn = (records: readonly string[][]): RawRow[] => {
    unfinished = records.length > 0 ? 0 : unfinished;
    return records.flatMap((cells) => {
      row += 1;
      if (cells.every((cell) => cell.trim() === "") || (row === 1 && /^sep=.?$/.test(cells.join(""))))
        return [];
      if (heading === null) {
        if (cells.length > MAX_COLUMNS)
          throw fileFault(`The table has more than ${MAX_COLUMNS} columns.`, row);
        const names = withoutHeading(cells);
        heading = names ?? cells;
        if (names === null) return [];
      }
      return [cellsOf(heading, cells, row)];
    });
  };
  return {
    take(piece) {
      unfinished += piece.length;
      if (unfinished > MAX_UNFINISHED_OCTETS) throw tooLong(row + 1);
      if (parser !== null) return rowsIn(written(parser, piece));
      // The separator is known at the end of the heading.
      beginning = Buffer.concat([beginning, piece]);
      return beginning.includes("\n") ? rowsIn(written(begin(), beginning)) : [];
    },
    async end() {
      const last = parser === null ? written(begin(), beginning) : [];
      return rowsIn([...last, ...(await ended(begin()))]);
    },
  };
}

function startParser(beginning: Buffer): ReturnType<typeof parse> {
  const parser = parse({
    bom: true,
    delimiter: delimiterOf(beginning.toString("utf8", 0, MAX_ROW_OCTETS)),
    relax_column_count: true,
    // The parser looks before it adds an octet.
    max_record_size: MAX_ROW_OCTETS - 1,
  });
  // Read from `errored`, at once. Without a listener it would end the process.
  parser.on("error", () => undefined);
  return parser;
}

/** Returns the separator that occurs most in the first row, outside of quotes. */
function delimiterOf(beginning: string): string {
  const first = (/^.*/.exec(beginning.replace(/^\ufeff/, ""))?.[0] ?? "").replace(/"[^"]*"/g, "");
  const declared = /^sep=(.)\r?$/.exec(first)?.[1];
  if (declared !== undefined) return declared;
  const counted = [",", ";", "\t"].map((char) => ({ char, count: first.split(char).length }));
  return counted.reduce((best, one) => (one.count > best.count ? one : best)).char;
}

function written(parser: ReturnType<typeof parse>, piece: Uint8Array): string[][] {
  parser.write(piece);
  if (parser.errored !== null) throw csvFault(parser);
  return drained(parser);
}

function drained(parser: ReturnType<typeof parse>): string[][] {
  const records: string[][] = [];
  for (let record = parser.read(); record !== null; record = parser.read()) records.push(record);
  return records;
}

async function ended(parser: ReturnType<typeof parse>): Promise<string[][]> {
  const { promise, resolve } = Promise.withResolvers<void>();
  parser.once("error", () => resolve());
  parser.once("end", () => resolve());
  const records: string[][] = [];
  parser.on("data", (record: string[]) => records.push(record));
  parser.end();
  await promise;
  if (parser.errored !== null) throw csvFault(parser);
  return records;
}

function tooLong(row: number) {
  return fileFault(
    `The row is longer than ${MAX_ROW_OCTETS} octets. Perhaps a quote is opened and never closed.`,
    row,
  );
}

function csvFault({ errored, info }: ReturnType<typeof parse>) {
  const { code } = errored as CsvError;
  const row = info.records + 1;
  if (code === "CSV_MAX_RECORD_SIZE") return tooLong(row);
  if (code === "CSV_QUOTE_NOT_CLOSED") return fileFault("A quote is opened and never closed.", row);
  return fileFault(
    'A quote is in the middle of a cell. Put such a cell into quotes, and write each quote in it twice: "a ""b"" c".',
    row,
  );
}

function cellsOf(names: readonly string[], values: readonly string[], row: number): RawRow {
  if (values.length <= names.length) return { row, names, values };
  const extra = values.slice(names.length).some((cell) => cell !== "");
  const error = `has ${values.length} cells, and the heading has ${names.length}.`;
  return { row, names, values, ...(extra ? { error } : {}) };
}
