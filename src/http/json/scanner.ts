import { AppError, invalid } from "../../core/errors.ts";
import {
  isWholeMember,
  type LargeValue,
  newMember,
  type OpenContainer,
  openContainer,
  type Span,
} from "./outline.ts";
import { STEP_OCTETS, type Steps } from "./steps.ts";

/** Maximum nesting of lists and objects. */
export const MAX_JSON_DEPTH = 32;
/** Maximum number of values and keys of a body, counted together. */
export const MAX_JSON_VALUES = 200_000;
/**
 * Numbers in lists that a body with files as lists of byte numbers may have besides. In memory a number takes eight octets, and an
 * object many times that.
 */
export const MAX_LIST_NUMBERS = 4 * 1024 * 1024;
/**
 * Octets of a key, of a number, and of white space in one place. None of them is parsed in steps, so each must be short.
 * A string of more is parsed in steps.
 */
export const MAX_TOKEN_OCTETS = 64 * 1024;

/**
 * Maximum octets of all keys of a body together. The engine keeps each different key, and collects all of them at
 * once.
 */
export const MAX_KEY_OCTETS = 4 * 1024 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const LIST = 0x5b;
const BACKSLASH = 0x5c;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;

/** Kind of an octet outside of strings: part of a scalar, white space (RFC 8259 §2), or a structural character or quote. */
type Kind = "scalar" | "space" | "mark";

function kindOf(octet: number): Kind {
  switch (octet) {
    case 0x20:
    case 0x09:
    case 0x0a:
    case 0x0d:
      return "space";
    case QUOTE:
    case COMMA:
    case COLON:
    case LIST:
    case LIST_END:
    case OBJECT:
    case OBJECT_END:
      return "mark";
    default:
      return "scalar";
  }
}

/** Range of the text's one value, without the white space around it. */
export interface ScannedText extends Span {
  /** Its parts, if it is too large to be parsed at once. */
  large: LargeValue | null;
}

/** 400: the text is no JSON. */
export function noJson(): AppError {
  return new AppError("invalid_request", "The body is not valid JSON.");
}

/**
 * Scans JSON text before any of it is parsed. It counts depth and values and finds large parts. It checks only the syntax
 * that this needs; `JSON.parse` checks the rest.
 * @param byteLists whether scalars in lists have a limit apart from that of values
 * @throws AppError 422 over a limit, 400 for brackets that do not match
 */
export function* scanJson(bytes: Buffer, byteLists = false): Steps<ScannedText> {
  const scanner = new JsonScanner(bytes, byteLists);
  while (scanner.scanned + STEP_OCTETS < bytes.length) {
    scanner.scanTo(scanner.scanned + STEP_OCTETS);
    yield;
  }
  scanner.scanTo(bytes.length);
  return scanner.end();
}

class JsonScanner {
  readonly #bytes: Buffer;
  #open: OpenContainer = openContainer("text", 0);
  readonly #outer: OpenContainer[] = [];
  #at = 0;
  #values = 0;
  readonly #byteLists: boolean;
  #listNumbers = 0;
  #keyOctets = 0;
  /** Start of the string that is being scanned; -1 if there is none. */
  #stringStart = -1;
  #scalarStart = -1;
  /** Start of the first token; -1 if there is none yet. */
  #firstStart = -1;
  /** End of the last token. */
  #tokenEnd = 0;
  /** The first backslash at or after `#at`. One search serves all strings before it, so searching takes linear time. */
  #backslash = -1;

  constructor(bytes: Buffer, byteLists: boolean) {
    this.#bytes = bytes;
    this.#byteLists = byteLists;
  }

  get scanned(): number {
    return this.#at;
  }

  /** Scans to an octet, or to the end of the string that contains it. */
  scanTo(end: number): void {
    const bytes = this.#bytes;
    while (this.#at < end) {
      if (this.#stringStart >= 0) {
        this.#scanEscaped(end);
        continue;
      }
      const octet = bytes[this.#at] ?? 0;
      const kind = kindOf(octet);
      if (kind === "scalar") {
        this.#scalar();
        continue;
      }
      if (this.#scalarStart >= 0) this.#endScalar();
      if (kind === "mark") this.#mark(octet);
      else this.#at++;
    }
  }

  end(): ScannedText {
    if (this.#scalarStart >= 0) this.#endScalar();
    if (this.#stringStart >= 0 || this.#outer.length > 0) throw noJson();
    const { kind, member } = this.#open;
    if (member.large !== null && !isWholeMember(kind, member)) throw noJson();
    return { start: Math.max(0, this.#firstStart), end: this.#tokenEnd, large: member.large };
  }

  #mark(octet: number): void {
    if (octet === QUOTE) this.#beginString();
    else if (octet === LIST || octet === OBJECT) this.#enter(octet === LIST ? "list" : "object");
    else {
      this.#refuseLongSpace();
      if (octet === COMMA) this.#endMember(false);
      else if (octet === COLON) this.#colon();
      else this.#leave(octet === LIST_END ? "list" : "object");
      this.#at++;
      this.#tokenEnd = this.#at;
    }
  }

  /** White space around the whole text is not parsed, so it may be long. */
  #refuseLongSpace(): void {
    if (this.#open.kind !== "text") refuseLong(this.#at - this.#tokenEnd);
  }

  #beginValue(inByteList = false): void {
    this.#refuseLongSpace();
    if (this.#firstStart < 0) this.#firstStart = this.#at;
    if (inByteList && ++this.#listNumbers > MAX_LIST_NUMBERS)
      throw invalid("", `At most ${MAX_LIST_NUMBERS} numbers in lists. Send larger files as base64.`);
    if (!inByteList && ++this.#values > MAX_JSON_VALUES)
      throw invalid("", `At most ${MAX_JSON_VALUES} values and keys, counted together.`);
    this.#open.member.values++;
    this.#open.runValues++;
  }

  #scalar(): void {
    if (this.#scalarStart < 0) {
      this.#beginValue(this.#byteLists && this.#open.kind === "list");
      this.#scalarStart = this.#at;
    }
    this.#at++;
  }

  #endScalar(): void {
    refuseLong(this.#at - this.#scalarStart);
    this.#scalarStart = -1;
    this.#tokenEnd = this.#at;
  }

  #beginString(): void {
    this.#beginValue();
    const start = this.#at;
    const close = this.#bytes.indexOf(QUOTE, start + 1);
    if (close < 0) throw noJson();
    if (this.#backslash <= start) {
      const next = this.#bytes.indexOf(BACKSLASH, start + 1);
      this.#backslash = next < 0 ? this.#bytes.length : next;
    }
    if (close < this.#backslash) this.#endString(start, close + 1, false);
    else {
      this.#stringStart = start;
      this.#at = this.#backslash;
    }
  }

  /** Continues in a string from one of its escape sequences. */
  #scanEscaped(end: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    while (at < end && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
    this.#at = at;
    if (at >= end) return;
    const start = this.#stringStart;
    this.#stringStart = -1;
    this.#endString(start, at + 1, true);
  }

  #endString(start: number, end: number, escaped: boolean): void {
    const { member } = this.#open;
    if (member.values === 1) member.key = { start, end };
    if (end - start > MAX_TOKEN_OCTETS) member.large = { kind: "string", start, end, escaped };
    this.#at = end;
    this.#tokenEnd = end;
  }

  #colon(): void {
    const { kind, member } = this.#open;
    if (kind === "object" && member.key !== null) this.#countKey(member.key.end - member.key.start);
    if (++member.colons === 1) member.colonAfter = member.values;
  }

  #countKey(octets: number): void {
    refuseLong(octets);
    this.#keyOctets += octets;
    if (this.#keyOctets > MAX_KEY_OCTETS)
      throw invalid("", `The keys have at most ${MAX_KEY_OCTETS} bytes together.`);
  }

  #enter(kind: "list" | "object"): void {
    this.#beginValue();
    if (this.#outer.length >= MAX_JSON_DEPTH) throw invalid("", `Nested more than ${MAX_JSON_DEPTH} deep.`);
    this.#outer.push(this.#open);
    this.#open = openContainer(kind, this.#at);
    this.#at++;
    this.#tokenEnd = this.#at;
  }

  #leave(kind: "list" | "object"): void {
    const outer = this.#outer.pop();
    if (outer === undefined || this.#open.kind !== kind) throw noJson();
    const { start, members } = this.#open;
    const end = this.#at + 1;
    if (end - start > STEP_OCTETS) {
      this.#endMember(true);
      outer.member.large = { kind, start, end, members };
    }
    this.#open = outer;
  }

  /** Ends a member at a comma, or the last one at its container's end. */
  #endMember(last: boolean): void {
    const open = this.#open;
    const { kind, member } = open;
    if (kind === "text") throw noJson();
    const at = this.#at;
    if (member.large !== null) {
      if (!isWholeMember(kind, member)) throw noJson();
      this.#endRun(member.start - 1, member.values);
      open.members.push({ kind: "large", key: kind === "object" ? member.key : null, value: member.large });
    } else if (member.values === 0) throw noJson();
    else if (last || at - open.runStart > STEP_OCTETS) this.#endRun(at, 0);
    else {
      open.member = newMember(at + 1);
      return;
    }
    open.runStart = at + 1;
    open.runValues = 0;
    open.member = newMember(at + 1);
  }

  /** Ends the run before an octet. @param after number of values after it that do not belong to it */
  #endRun(end: number, after: number): void {
    const open = this.#open;
    if (open.runValues > after) open.members.push({ kind: "run", start: open.runStart, end });
  }
}

function refuseLong(octets: number): void {
  if (octets > MAX_TOKEN_OCTETS)
    throw invalid("", `A key, a number and white space in one place have at most ${MAX_TOKEN_OCTETS} bytes.`);
}
