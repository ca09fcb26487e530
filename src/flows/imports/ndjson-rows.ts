import { MAX_ROW_OCTETS, type RawRow, type RowReader } from "./csv-rows.ts";
import { fileFault } from "./faults.ts";

/** Makes the reader of lines of JSON, an object each. Blank lines are left out, and a line that is no object fails alone. */
export function ndjsonRows(): RowReader {
  let unfinished = Buffer.alloc(0);
  let row = 0;
  const rowOf = (line: Buffer): RawRow[] => {
    row += 1;
    if (line.length > MAX_ROW_OCTETS) throw tooLong(row);
    const text = line
      .toString()
      .replace(/^\ufeff/, "")
      .trim();
    if (row === 1 && text.startsWith("["))
      throw fileFault("The file is one JSON list. Write one object per line, without brackets and commas.");
    return text === "" ? [] : [objectRow(text, row)];
  };
  return {
    take(piece) {
      const octets = Buffer.concat([unfinished, piece]);
      const rows: RawRow[] = [];
      let at = 0;
      for (let end = octets.indexOf("\n"); end >= 0; end = octets.indexOf("\n", at)) {
        rows.push(...rowOf(octets.subarray(at, end)));
        at = end + 1;
      }
      unfinished = octets.subarray(at);
      if (unfinished.length > MAX_ROW_OCTETS) throw tooLong(row + 1);
      return rows;
    },
    end: async () => rowOf(unfinished),
  };
}

function objectRow(text: string, row: number): RawRow {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { row, names: Object.keys(value), values: Object.values(value) };
  } catch {
    // Below.
  }
  return { row, names: [], values: [], error: "must be a JSON object." };
}

function tooLong(row: number) {
  return fileFault(`The line is longer than ${MAX_ROW_OCTETS} octets.`, row);
}
