import { isAscii } from "node:buffer";
import { AppError } from "../../core/errors.ts";
import type { LargeContainer, LargeMember, LargeValue, LongString, Run, Span } from "./outline.ts";
import { noJson, scanJson } from "./scanner.ts";
import { STEP_OCTETS, type Steps } from "./steps.ts";

type Brackets = readonly [open: number, close: number];
const LIST: Brackets = [0x5b, 0x5d];
const OBJECT: Brackets = [0x7b, 0x7d];
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** Octets of an escape sequence such as `\u00e9`. */
const UNICODE_ESCAPE_OCTETS = 6;

/**
 * Parses the value of JSON text within the limits of `scanJson`. If the text is large, it is parsed part by part.
 * @throws AppError 422 over a limit, 400 for text that is no JSON or no UTF-8
 */
export function* readJson(bytes: Buffer, byteLists = false): Steps<unknown> {
  const scanned = yield* scanJson(bytes, byteLists);
  return scanned.large === null ? parse(textIn(bytes, scanned)) : yield* build(bytes, scanned.large);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw noJson();
  }
}

function* build(bytes: Buffer, value: LargeValue): Steps<unknown> {
  yield;
  if (value.kind === "string") return yield* buildString(bytes, value);
  return value.kind === "list" ? yield* buildList(bytes, value) : yield* buildObject(bytes, value);
}

function* buildList(bytes: Buffer, { members }: LargeContainer): Steps<unknown[]> {
  const list: unknown[] = [];
  for (const member of members) {
    if (member.kind === "large") list.push(yield* build(bytes, member.value));
    else for (const item of parseRun(bytes, member, LIST) as unknown[]) list.push(item);
    yield;
  }
  return list;
}

function* buildObject(bytes: Buffer, { members }: LargeContainer): Steps<Record<string, unknown>> {
  const object: Record<string, unknown> = {};
  for (const member of members) {
    if (member.kind === "large") setOwn(object, keyOf(bytes, member), yield* build(bytes, member.value));
    else {
      const run = parseRun(bytes, member, OBJECT) as Record<string, unknown>;
      for (const key of Object.keys(run)) setOwn(object, key, run[key]);
    }
    yield;
  }
  return object;
}

/**
 * Parses members as a separate list or object. The brackets temporarily replace the octets around them: joining
 * strings would make as much garbage again.
 */
function parseRun(bytes: Buffer, { start, end }: Run, brackets: Brackets): unknown {
  const [before, after] = [bytes[start - 1] ?? 0, bytes[end] ?? 0];
  [bytes[start - 1], bytes[end]] = brackets;
  try {
    return parse(textIn(bytes, { start: start - 1, end: end + 1 }));
  } finally {
    [bytes[start - 1], bytes[end]] = [before, after];
  }
}

function keyOf(bytes: Buffer, { key }: LargeMember): string {
  if (key === null) throw noJson();
  return parse(textIn(bytes, key)) as string;
}

/** Sets a property as `JSON.parse` does: one named `__proto__` is a property like any other. */
function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== "__proto__") object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

function* buildString(bytes: Buffer, { start, end, escaped }: LongString): Steps<string> {
  const inner = bytes.subarray(start + 1, end - 1);
  if (!escaped && (yield* isPlain(inner))) return inner.toString("latin1");
  const parts: string[] = [];
  for (let at = 0; at < inner.length; ) {
    const next = endOfPart(inner, at, escaped);
    parts.push(parse(`"${textIn(inner, { start: at, end: next })}"`) as string);
    at = next;
    yield;
  }
  return parts.join("");
}

/** Returns whether all of a string is ASCII without control characters, which RFC 8259 §7 forbids. */
function* isPlain(inner: Buffer): Steps<boolean> {
  for (let at = 0; at < inner.length; at += STEP_OCTETS) {
    const end = Math.min(at + STEP_OCTETS, inner.length);
    for (let next = at; next < end; next++) {
      const octet = inner[next] ?? 0;
      if (octet < 0x20 || octet > 0x7f) return false;
    }
    yield;
  }
  return true;
}

/** Returns an end for a part of a string, outside of escape sequences and of characters. */
function endOfPart(inner: Buffer, start: number, escaped: boolean): number {
  const most = Math.min(start + STEP_OCTETS, inner.length);
  let at = escaped ? start : most;
  while (at < most) {
    if (inner[at] !== BACKSLASH) at++;
    else at += inner[at + 1] === LETTER_U ? UNICODE_ESCAPE_OCTETS : 2;
  }
  // UTF-8 (RFC 3629 §3): octets of a character after its first are 10xxxxxx.
  while (at < inner.length && ((inner[at] ?? 0) & 0xc0) === 0x80) at++;
  return Math.min(at, inner.length);
}

function textIn(bytes: Buffer, { start, end }: Span): string {
  return textOf(bytes.subarray(start, end));
}

/**
 * Decodes UTF-8 (RFC 8259 §8.1). ASCII is decoded in half the time, and most of a large body is base64.
 * @throws AppError 400 for other encodings, such as the Latin-1 that PowerShell's `Invoke-RestMethod` makes of a text
 */
function textOf(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString("latin1");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new AppError("invalid_request", "The body is not UTF-8.");
  }
}
