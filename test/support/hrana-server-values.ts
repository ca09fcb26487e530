/** A value of the Hrana protocol in its JSON form. Integers travel as text, for JSON has no 64 bits. */
export type WireValue =
  | { type: "null" }
  | { type: "integer"; value: string }
  | { type: "float"; value: number }
  | { type: "text"; value: string }
  | { type: "blob"; base64: string };

export interface WireStatement {
  sql?: string;
  sql_id?: number;
  args?: WireValue[];
  named_args?: { name: string; value: WireValue }[];
  want_rows?: boolean;
}

export type WireCondition =
  | { type: "ok" | "error"; step: number }
  | { type: "not"; cond: WireCondition }
  | { type: "and" | "or"; conds: WireCondition[] }
  | { type: "is_autocommit" };

export interface WireStep {
  condition?: WireCondition;
  stmt: WireStatement;
}

export interface WireRequest {
  type: string;
  stmt?: WireStatement;
  batch?: { steps: WireStep[] };
  sql?: string;
  sql_id?: number;
}

export interface WireResult {
  cols: { name: string; decltype: string | null }[];
  rows: WireValue[][];
  affected_row_count: number;
  last_insert_rowid: string | null;
}

export interface WireError {
  message: string;
  code: string;
}

/** What libSQL binds for a value of the wire. */
export function bound(value: WireValue): string | number | bigint | null | Buffer {
  switch (value.type) {
    case "null":
      return null;
    case "integer":
      return BigInt(value.value);
    case "float":
    case "text":
      return value.value;
    case "blob":
      return Buffer.from(value.base64, "base64");
  }
}

/** A value of libSQL, its integers read as bigints, for the wire. */
export function wire(value: unknown): WireValue {
  if (typeof value === "bigint") return { type: "integer", value: value.toString() };
  if (typeof value === "number") return { type: "float", value };
  if (typeof value === "string") return { type: "text", value };
  if (value instanceof ArrayBuffer) return wire(new Uint8Array(value));
  // sqld writes base64 without its padding.
  if (value instanceof Uint8Array)
    return { type: "blob", base64: Buffer.from(value).toString("base64").replace(/=+$/, "") };
  return { type: "null" };
}

/** SQLite's error codes that sqld knows; it tells no finer ones. */
function plainCode(code: string): string {
  return /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? "SQLITE_UNKNOWN";
}

/**
 * A failure of libSQL as sqld words it, with the code of the wire: `fine` gives SQLite's extended code, as Turso Cloud
 * does for constraints, where sqld gives the plain one.
 */
export function wireError(error: unknown, fine: boolean): WireError {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "SQLITE_UNKNOWN";
  if (!code.startsWith("SQLITE_")) return { message, code };
  // What is wrong with the text of a statement has a code of its own.
  if (plainCode(code) === "SQLITE_ERROR")
    return { message: `SQL input error: ${message} (at offset 0)`, code: "SQL_INPUT_ERROR" };
  return { message: `SQLite error: ${message}`, code: fine ? code : plainCode(code) };
}
