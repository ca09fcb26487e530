import { createHash, type Hash } from "node:crypto";
import { STEP_OCTETS, type Steps } from "./steps.ts";

/** Keys that are sorted at once, and values that one step takes. */
const STEP_VALUES = 4096;

/** A list or an object whose members are being written. */
interface Level {
  /** Null: a list. */
  keys: string[] | null;
  members: readonly unknown[] | Record<string, unknown>;
  next: number;
}

/**
 * Returns the SHA-256 of a JSON value in a canonical form, as hex. Values are written alike if they say the same: the
 * order of an object's keys, spacing and the spelling of strings and numbers make no difference.
 */
export function* fingerprint(value: unknown): Steps<string> {
  const writer = new Writer();
  yield* write(writer, value);
  return writer.digest();
}

/** Octets of the buffer through which a large body goes into the hash. */
const BUFFER_OCTETS = 4 * STEP_OCTETS;
/** Maximum octets of UTF-8 for one unit of UTF-16. */
const MAX_OCTETS_PER_UNIT = 3;

/** Writes text into a hash, a step at a time. */
class Writer {
  readonly #hash: Hash = createHash("sha256");
  /** Text of the first step, which is all of a small body. */
  #text = "";
  #octets = 0;
  #values = 0;
  /** Text of later steps, and parts of long strings. One buffer serves all: garbage of each step would take twice the body. */
  #buffer: Buffer | null = null;
  #used = 0;
  #isFull = false;

  add(text: string): void {
    if (this.#buffer === null) this.#text += text;
    else this.#copy(this.#buffer, text);
    this.#octets += text.length;
    if (++this.#values < STEP_VALUES && this.#octets < STEP_OCTETS) return;
    this.#flush();
    this.#buffer ??= Buffer.allocUnsafe(BUFFER_OCTETS);
    this.#isFull = true;
  }

  /** Returns whether a step has been filled since it was last asked. */
  takeFull(): boolean {
    const isFull = this.#isFull;
    this.#isFull = false;
    return isFull;
  }

  /** Takes a part of a string by its UTF-16 units: halves of a surrogate pair have no UTF-8. */
  addUnits(part: string): void {
    this.#flush();
    this.#buffer ??= Buffer.allocUnsafe(BUFFER_OCTETS);
    this.#hash.update(this.#buffer.subarray(0, this.#buffer.write(part, "utf16le")));
  }

  digest(): string {
    this.#flush();
    return this.#hash.digest("hex");
  }

  #copy(buffer: Buffer, text: string): void {
    const most = text.length * MAX_OCTETS_PER_UNIT;
    if (most > BUFFER_OCTETS - this.#used) this.#flush();
    if (most > BUFFER_OCTETS) this.#hash.update(text);
    else this.#used += buffer.write(text, this.#used);
  }

  #flush(): void {
    if (this.#text !== "") this.#hash.update(this.#text);
    if (this.#buffer !== null) this.#hash.update(this.#buffer.subarray(0, this.#used));
    this.#text = "";
    this.#used = 0;
    this.#octets = 0;
    this.#values = 0;
  }
}

/**
 * Writes a value; an absent one differs from every other. It keeps its own stack, because each level of recursive generators
 * would slow down all levels in it.
 */
function* write(writer: Writer, root: unknown): Steps<void> {
  const levels: Level[] = [];
  let value = root;
  for (;;) {
    if (typeof value === "object" && value !== null) levels.push(yield* enter(writer, value));
    else if (typeof value === "string" && value.length > STEP_OCTETS) yield* writeLong(writer, value);
    else if (typeof value === "string") addString(writer, value);
    else writer.add(String(value));
    let level = levels.at(-1);
    while (level !== undefined && level.next >= sizeOf(level)) {
      writer.add(level.keys === null ? "]" : "}");
      levels.pop();
      level = levels.at(-1);
    }
    if (level === undefined) return;
    value = take(writer, level);
    // Brackets, commas and keys fill a step, too.
    if (writer.takeFull()) yield;
  }
}

function* enter(writer: Writer, value: object): Steps<Level> {
  const isList = Array.isArray(value);
  writer.add(isList ? "[" : "{");
  if (isList) return { keys: null, members: value, next: 0 };
  return { keys: yield* sorted(Object.keys(value)), members: value as Record<string, unknown>, next: 0 };
}

function sizeOf({ keys, members }: Level): number {
  return keys === null ? (members as readonly unknown[]).length : keys.length;
}

/** Takes the next member of a list or object. If it has a key, writes it first. */
function take(writer: Writer, level: Level): unknown {
  const { keys, members } = level;
  const at = level.next++;
  if (keys === null) {
    writer.add(",");
    return (members as readonly unknown[])[at];
  }
  const key = keys[at] ?? "";
  writer.add(`${JSON.stringify(key)}:`);
  return (members as Record<string, unknown>)[key];
}

/**
 * Writes a string after its length. Quoted, it would be copied first, and a large body has many. UTF-8 has no form for half a
 * surrogate pair, so a string with one is quoted.
 */
function addString(writer: Writer, text: string): void {
  if (!text.isWellFormed()) writer.add(JSON.stringify(text));
  else {
    writer.add(`${text.length}:`);
    writer.add(text);
  }
}

/** Writes a long string part by part, its length first. */
function* writeLong(writer: Writer, text: string): Steps<void> {
  writer.add(`${text.length}:`);
  for (let at = 0; at < text.length; at += STEP_OCTETS) {
    writer.addUnits(text.slice(at, at + STEP_OCTETS));
    yield;
  }
}

/** Sorts keys by merging: a hundred thousand at once would take more than a step. */
function* sorted(keys: string[]): Steps<string[]> {
  let runs: string[][] = [];
  for (let at = 0; at < keys.length; at += STEP_VALUES) {
    runs.push(keys.slice(at, at + STEP_VALUES).sort());
    if (keys.length > STEP_VALUES) yield;
  }
  while (runs.length > 1) {
    const merged: string[][] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* merge(runs[at] ?? [], runs[at + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge(left: readonly string[], right: readonly string[]): Steps<string[]> {
  const all: string[] = [];
  for (let [l, r] = [0, 0]; l < left.length || r < right.length; ) {
    const [a, b] = [left[l], right[r]];
    if (b === undefined || (a !== undefined && a <= b)) {
      all.push(a ?? "");
      l++;
    } else {
      all.push(b);
      r++;
    }
    if (all.length % STEP_VALUES === 0) yield;
  }
  return all;
}
