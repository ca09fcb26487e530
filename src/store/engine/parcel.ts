import { MAX_PREPARED } from "./connection.ts";
import type { ReadyStatement, Statement, Value, Written } from "./engine.ts";
import { type LaterContent, LaterPart } from "./later-content.ts";
import { type ContentValues, contentValues } from "./content-values.ts";

/*
 * What goes between the event loop and the thread that writes. Values go as JSON, and all their bytes as one piece of memory
 * that is handed over: to have messages copy them value by value takes several times as long.
 */

/** Where a value of bytes lies among those of its parcel. */
type Place = [offset: number, octets: number];

/** One of the parts of a content that is hashed and compressed where the parcel is opened. */
interface Part {
  /** Its place among those of the parcel. */
  of: number;
  name: keyof ContentValues;
}

/** Such a content: its project, and its bytes. */
type PackedContent = [senderId: string, ...plain: Place];

/** A value as it stands in the JSON of a parcel. */
type Packed = string | number | null | Place;
type PackedArgument = Packed | Part;

/** The JSON of statements. */
interface PackedStatements {
  rows: [text: number, ...args: PackedArgument[]][];
  contents: PackedContent[];
}

/** The text of statements. */
type Text = Pick<ReadyStatement, "sql" | "rows">;

/** Statements on their way. */
export interface StatementParcel {
  /** Texts that have not gone before; each is named by its number from then on. */
  texts: Text[];
  /** Whether those that have gone before are forgotten first. */
  anew: boolean;
  /** `PackedStatements` as JSON. */
  values: string;
  bytes: ArrayBuffer | null;
}

/** What statements have done, on its way. */
export interface WrittenParcel {
  /** Of each its changes, or its rows, as JSON. */
  written: string;
  bytes: ArrayBuffer | null;
}

/** Packs statements. It names each text by a number, so all of its parcels are to be opened by one `StatementOpener`. */
export class StatementPacker {
  readonly #numbers = new Map<string, number>();
  /** Whether a parcel was begun and not finished: texts have numbers that nobody was told. */
  #unfinished = false;

  /** @throws where a value is none that JSON can carry, or all together are too long for it */
  pack(statements: readonly Statement[]): StatementParcel {
    // Large writes have texts of their own. All are told again now and then, so that neither side keeps every one.
    const anew = this.#unfinished || this.#numbers.size > MAX_PREPARED;
    if (anew) this.#numbers.clear();
    this.#unfinished = true;
    const texts: Text[] = [];
    const pieces = new Pieces();
    const contents = new Contents(pieces);
    const rows = statements.map((statement) => {
      const row: PackedStatements["rows"][number] = [this.#number(statement, texts)];
      for (const value of statement.args)
        row.push(value instanceof LaterPart ? contents.part(value) : pieces.packed(value as Value));
      return row;
    });
    const packed: PackedStatements = { rows, contents: contents.packed };
    const values = JSON.stringify(packed);
    const bytes = pieces.together();
    this.#unfinished = false;
    return { texts, anew, values, bytes };
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

/** Unpacks the statements that one packer has sent, in their order: a text comes once, and later by its number. */
export class StatementOpener {
  #texts: Text[] = [];

  open({ texts, anew, values, bytes }: StatementParcel): ReadyStatement[] {
    if (anew) this.#texts = [];
    this.#texts.push(...texts);
    const { rows, contents }: PackedStatements = JSON.parse(values);
    const stored = contents.map(([senderId, ...plain]) => contentValues(senderId, bytesAt(plain, bytes)));
    return rows.map(([text, ...packed]) => {
      const told = this.#texts[text];
      if (told === undefined) throw new Error("a statement has a text that was never told");
      const args = packed.map((value) =>
        isPart(value) ? (stored[value.of]?.[value.name] ?? null) : opened(value, bytes),
      );
      return { sql: told.sql, rows: told.rows, args };
    });
  }
}

/** What a transaction has done, for a message between threads. */
export function packWritten(written: readonly Written[]): WrittenParcel {
  const pieces = new Pieces();
  const packed = written.map(({ rows, changes }) =>
    rows.length === 0
      ? changes
      : rows.map((row) =>
          // Of a query's columns come texts, numbers, null and ArrayBuffers.
          Object.fromEntries(
            Object.entries(row).map(([name, value]) => [name, pieces.packed(toValue(value))]),
          ),
        ),
  );
  return { written: JSON.stringify(packed), bytes: pieces.together() };
}

/** The inverse of `packWritten`. */
export function openWritten({ written, bytes }: WrittenParcel): Written[] {
  const packed: (number | Record<string, Packed>[])[] = JSON.parse(written);
  return packed.map((done) => {
    if (typeof done === "number") return { rows: [], changes: done };
    const rows = done.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => {
          const whole = opened(value, bytes);
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

function isPart(value: PackedArgument): value is Part {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The contents of a parcel that are hashed and compressed where it is opened. */
class Contents {
  readonly packed: PackedContent[] = [];
  readonly #pieces: Pieces;
  readonly #places = new Map<LaterContent, number>();

  constructor(pieces: Pieces) {
    this.#pieces = pieces;
  }

  part({ content, name }: LaterPart): Part {
    return { of: this.#places.get(content) ?? this.#add(content), name };
  }

  #add(content: LaterContent): number {
    const place = this.packed.push([content.senderId, ...this.#pieces.place(content.plain)]) - 1;
    this.#places.set(content, place);
    return place;
  }
}

/** Values of bytes, one after the other. */
class Pieces {
  readonly #pieces: Uint8Array[] = [];
  #octets = 0;

  packed(value: Value): Packed {
    return typeof value !== "object" || value === null ? value : this.place(value);
  }

  place(bytes: Uint8Array): Place {
    const place: Place = [this.#octets, bytes.byteLength];
    this.#pieces.push(bytes);
    this.#octets += bytes.byteLength;
    return place;
  }

  /** All of them in memory of their own; null where there are none. */
  together(): ArrayBuffer | null {
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

function opened(value: Packed, bytes: ArrayBuffer | null): Value {
  return Array.isArray(value) ? bytesAt(value, bytes) : value;
}

function bytesAt(place: Place, bytes: ArrayBuffer | null): Uint8Array {
  return new Uint8Array(bytes ?? new ArrayBuffer(0), ...place);
}
