import { isObject } from "../../core/validation.ts";
import { MAX_PREPARED } from "./connection.ts";
import type { ReadyStatement, Statement, Value, Written } from "../sql/engine.ts";
import { type DeferredContent, DeferredContentValue } from "../sql/deferred-content.ts";
import { type ContentValues, contentValues } from "../sql/content-values.ts";

/*
 * Messages between the event loop and the writer. Values travel as JSON, and all their bytes in one buffer that is
 * transferred. Structured cloning of the values one by one takes several times as long.
 */

/**
 * A message to the writer: first the file, then transactions, each in one or more pieces. After `rollback`, no more
 * pieces of the current transaction follow.
 */
export type ToWriter =
  | { kind: "open"; path: string }
  | { kind: "statements"; encoded: EncodedStatements; first: boolean; last: boolean }
  | { kind: "rollback" | "close" };

/** A message from the writer. It sends one per transaction, at its end. */
export type FromWriter =
  | { kind: "opened" }
  | { kind: "written"; results: EncodedResults }
  | { kind: "refused"; message: string; code: string; statement: number | null }
  | { kind: "closed" };

/** The position of a value's bytes in the buffer of its message. */
type ByteRange = [offset: number, octets: number];

/** One value of a content that the receiver hashes and compresses. */
interface DeferredPart {
  /** Its index in `StatementsJson.contents`. */
  of: number;
  name: keyof ContentValues;
}

/** A content that the receiver hashes and compresses: its project and its bytes. */
type EncodedContent = [senderId: string, ...plain: ByteRange];

/** A value as it is in the JSON. */
type EncodedValue = string | number | null | ByteRange;
type EncodedArgument = EncodedValue | DeferredPart;

interface StatementsJson {
  rows: [text: number, ...args: EncodedArgument[]][];
  contents: EncodedContent[];
}

/** The text of statements. */
type Text = Pick<ReadyStatement, "sql" | "rows">;

/** Statements in a message. */
export interface EncodedStatements {
  /** SQL strings that were not sent before. Later messages name each by its number. */
  texts: Text[];
  /** True if the receiver must forget the strings sent before. */
  forgetTexts: boolean;
  /** `StatementsJson` as JSON. */
  values: string;
  bytes: ArrayBuffer | null;
}

/** The results of statements in a message. */
export interface EncodedResults {
  /** JSON with one item per statement: its changes, or its rows. */
  results: string;
  bytes: ArrayBuffer | null;
}

/**
 * Encodes statements. It names SQL strings by number, so one `StatementDecoder` must decode all its messages.
 */
export class StatementEncoder {
  readonly #numbers = new Map<string, number>();
  /** True if an encoding failed midway: strings have numbers that the decoder does not know. */
  #isUnfinished = false;

  /** @throws if JSON cannot carry a value, or all together are too long for one string */
  encode(statements: readonly Statement[]): EncodedStatements {
    // Large writes have their own SQL strings. From time to time both sides forget all of them, so that neither
    // grows forever.
    const forgetTexts = this.#isUnfinished || this.#numbers.size > MAX_PREPARED;
    if (forgetTexts) this.#numbers.clear();
    this.#isUnfinished = true;
    const texts: Text[] = [];
    const buffer = new BytesWriter();
    const contents = new DeferredContents(buffer);
    const rows = statements.map((statement) => {
      const row: StatementsJson["rows"][number] = [this.#number(statement, texts)];
      for (const value of statement.args)
        row.push(
          value instanceof DeferredContentValue ? contents.encode(value) : buffer.encode(value as Value),
        );
      return row;
    });
    const json: StatementsJson = { rows, contents: contents.encoded };
    const values = JSON.stringify(json);
    const bytes = buffer.joined();
    this.#isUnfinished = false;
    return { texts, forgetTexts, values, bytes };
  }

  #number({ sql, rows }: Text, texts: Text[]): number {
    const known = this.#numbers.get(sql);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(sql, number);
    texts.push({ sql, rows });
    return number;
  }
}

/** Decodes the statements of one encoder, in the order in which they were encoded. */
export class StatementDecoder {
  #texts: Text[] = [];

  decode({ texts, forgetTexts, values, bytes }: EncodedStatements): ReadyStatement[] {
    if (forgetTexts) this.#texts = [];
    this.#texts.push(...texts);
    const { rows, contents }: StatementsJson = JSON.parse(values);
    const stored = contents.map(([senderId, ...plain]) => contentValues(senderId, bytesAt(plain, bytes)));
    return rows.map(([number, ...encoded]) => {
      const text = this.#texts[number];
      if (text === undefined) throw new Error("a statement has SQL that was never sent");
      const args = encoded.map((value) =>
        isDeferred(value) ? (stored[value.of]?.[value.name] ?? null) : decoded(value, bytes),
      );
      return { sql: text.sql, rows: text.rows, args };
    });
  }
}

/** Encodes the results of a transaction. */
export function encodeResults(written: readonly Written[]): EncodedResults {
  const buffer = new BytesWriter();
  const encoded = written.map(({ rows, changes }) =>
    rows.length === 0
      ? changes
      : rows.map((row) =>
          // Columns of a query hold strings, numbers, null and ArrayBuffers.
          Object.fromEntries(
            Object.entries(row).map(([name, value]) => [name, buffer.encode(toValue(value))]),
          ),
        ),
  );
  return { results: JSON.stringify(encoded), bytes: buffer.joined() };
}

/** Decodes what `encodeResults` returned. */
export function decodeResults({ results, bytes }: EncodedResults): Written[] {
  const encoded: (number | Record<string, EncodedValue>[])[] = JSON.parse(results);
  return encoded.map((result) => {
    if (typeof result === "number") return { rows: [], changes: result };
    const rows = result.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => {
          const whole = decoded(value, bytes);
          return [name, whole instanceof Uint8Array ? whole.slice().buffer : whole];
        }),
      ),
    );
    return { rows, changes: rows.length };
  });
}

function toValue(value: unknown): Value {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : (value as Value);
}

function isDeferred(value: EncodedArgument): value is DeferredPart {
  return isObject(value);
}

/** Collects the deferred contents of a message, each once. */
class DeferredContents {
  readonly encoded: EncodedContent[] = [];
  readonly #buffer: BytesWriter;
  readonly #indexes = new Map<DeferredContent, number>();

  constructor(buffer: BytesWriter) {
    this.#buffer = buffer;
  }

  encode({ content, name }: DeferredContentValue): DeferredPart {
    return { of: this.#indexes.get(content) ?? this.#add(content), name };
  }

  #add(content: DeferredContent): number {
    const index = this.encoded.push([content.senderId, ...this.#buffer.add(content.plain)]) - 1;
    this.#indexes.set(content, index);
    return index;
  }
}

/** Collects the bytes of a message's values, one after the other. */
class BytesWriter {
  readonly #pieces: Uint8Array[] = [];
  #octets = 0;

  encode(value: Value): EncodedValue {
    return typeof value !== "object" || value === null ? value : this.add(value);
  }

  add(bytes: Uint8Array): ByteRange {
    const range: ByteRange = [this.#octets, bytes.byteLength];
    this.#pieces.push(bytes);
    this.#octets += bytes.byteLength;
    return range;
  }

  /** Copies all bytes into one buffer; null if there are none. */
  joined(): ArrayBuffer | null {
    if (this.#pieces.length === 0) return null;
    const all = new Uint8Array(this.#octets);
    let at = 0;
    for (const piece of this.#pieces) {
      all.set(piece, at);
      at += piece.byteLength;
    }
    return all.buffer;
  }
}

function decoded(value: EncodedValue, bytes: ArrayBuffer | null): Value {
  return Array.isArray(value) ? bytesAt(value, bytes) : value;
}

function bytesAt(range: ByteRange, bytes: ArrayBuffer | null): Uint8Array {
  return new Uint8Array(bytes ?? new ArrayBuffer(0), ...range);
}
