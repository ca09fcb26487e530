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

/** Converts a wire value to one that libSQL can bind. */
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

/** Converts a libSQL value, with integers read as bigints, to a wire value. */
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

/** The SQLite error codes that sqld knows. It sends no extended ones. */
function plainCode(code: string): string {
  return /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? "SQLITE_UNKNOWN";
}

/**
 * Words a libSQL failure as sqld does. If `fine` is set, sends SQLite's extended code for constraints, as Turso
 * Cloud does.
 */
export function wireError(error: unknown, fine: boolean): WireError {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "SQLITE_UNKNOWN";
  if (!code.startsWith("SQLITE_")) return { message, code };
  // An error in the text of a statement has its own code.
  if (plainCode(code) === "SQLITE_ERROR")
    return { message: `SQL input error: ${message} (at offset 0)`, code: "SQL_INPUT_ERROR" };
  return { message: `SQLite error: ${message}`, code: fine ? code : plainCode(code) };
}
