import type { DeferredValue, ReadyStatement, Statement, Value } from "./engine.ts";
import { type ContentValues, contentValues } from "./content-values.ts";

/**
 * A small content of a project that is hashed and compressed on the thread that stores it. For a usual body, that is a tenth
 * of the event loop's work for a send.
 */
export class DeferredContent {
  readonly senderId: string;
  readonly plain: Uint8Array;
  readonly key = new DeferredContentValue(this, "key");
  readonly encoding = new DeferredContentValue(this, "encoding");
  readonly bytes = new DeferredContentValue(this, "bytes");
  #values: ContentValues | null = null;

  /** @param plain must not be changed afterwards */
  constructor(senderId: string, plain: Uint8Array) {
    this.senderId = senderId;
    this.plain = plain;
  }

  get values(): ContentValues {
    this.#values ??= contentValues(this.senderId, this.plain);
    return this.#values;
  }
}

/** One of the column values of a deferred content. */
export class DeferredContentValue implements DeferredValue {
  readonly content: DeferredContent;
  readonly name: keyof ContentValues;

  constructor(content: DeferredContent, name: keyof ContentValues) {
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

/** Returns the statements with their deferred values computed. */
export function withValues(statements: readonly Statement[]): ReadyStatement[] {
  return statements.map((statement) => (isReady(statement) ? statement : computed(statement)));
}

function isReady(statement: Statement): statement is ReadyStatement {
  return !statement.args.some(isDeferred);
}

function computed(statement: Statement): ReadyStatement {
  return { ...statement, args: statement.args.map((value) => (isDeferred(value) ? value.value : value)) };
}

function isDeferred(value: Value | DeferredValue): value is DeferredValue {
  return value instanceof DeferredContentValue;
}
