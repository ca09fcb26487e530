import type { LaterValue, ReadyStatement, Statement, Value } from "./engine.ts";
import { type ContentValues, contentValues } from "./content-values.ts";

/**
 * A project's small content that is hashed and compressed where the statement runs that stores it: of an ordinary body that is
 * a tenth of what the event loop does for a send.
 */
export class LaterContent {
  readonly senderId: string;
  readonly plain: Uint8Array;
  readonly key = new LaterPart(this, "key");
  readonly encoding = new LaterPart(this, "encoding");
  readonly bytes = new LaterPart(this, "bytes");
  #values: ContentValues | null = null;

  /** @param plain its bytes, not to be changed any more */
  constructor(senderId: string, plain: Uint8Array) {
    this.senderId = senderId;
    this.plain = plain;
  }

  get values(): ContentValues {
    this.#values ??= contentValues(this.senderId, this.plain);
    return this.#values;
  }
}

/** One of the values that it is stored as. */
export class LaterPart implements LaterValue {
  readonly content: LaterContent;
  readonly name: keyof ContentValues;

  constructor(content: LaterContent, name: keyof ContentValues) {
    this.content = content;
    this.name = name;
  }

  get value(): Value {
    return this.content.values[this.name];
  }

  get byteLength(): number {
    return this.name === "bytes" ? this.content.plain.byteLength : 0;
  }
}

/** The statements with all of their values, which are made where they were not. */
export function ready(statements: readonly Statement[]): ReadyStatement[] {
  return statements.map((statement) => (isReady(statement) ? statement : made(statement)));
}

function isReady(statement: Statement): statement is ReadyStatement {
  return !statement.args.some(isLater);
}

function made(statement: Statement): ReadyStatement {
  return { ...statement, args: statement.args.map((value) => (isLater(value) ? value.value : value)) };
}

function isLater(value: Value | LaterValue): value is LaterValue {
  return value instanceof LaterPart;
}
