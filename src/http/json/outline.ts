/** Range of octets in JSON text, with quotes and brackets. The end is exclusive. */
export interface Span {
  start: number;
  end: number;
}

/** A string value that is too long to be decoded at once. */
export interface LongString extends Span {
  kind: "string";
  /** True if it has an escape sequence. */
  escaped: boolean;
}

/** Members of a list or an object that are short together, without the comma after the last. */
export interface Run extends Span {
  kind: "run";
}

/** A member whose value is large. */
export interface LargeMember {
  kind: "large";
  /** The key's text; null in a list. */
  key: Span | null;
  value: LargeValue;
}

/** A list or an object that is too large to be parsed at once, as members that are. */
export interface LargeContainer extends Span {
  kind: "list" | "object";
  members: (Run | LargeMember)[];
}

export type LargeValue = LongString | LargeContainer;

/** List or object that has not ended yet. The outermost one is the whole text. */
export interface OpenContainer {
  start: number;
  kind: "text" | "list" | "object";
  members: (Run | LargeMember)[];
  /** Start of the current member's run, and number of values in it. */
  runStart: number;
  runValues: number;
  member: OpenMember;
}

/** State of one member while it is scanned. */
export interface OpenMember {
  start: number;
  /** Strings, scalars and containers. */
  values: number;
  /** The first of them, if it is a string. */
  key: Span | null;
  /** Number of values before the first colon; 0 if there is none. */
  colonAfter: number;
  colons: number;
  large: LargeValue | null;
}

/** Begins a member at an octet. */
export function newMember(start: number): OpenMember {
  return { start, values: 0, key: null, colonAfter: 0, colons: 0, large: null };
}

/** Begins a list, an object or the text at an octet. */
export function openContainer(kind: OpenContainer["kind"], start: number): OpenContainer {
  const inner = kind === "text" ? start : start + 1;
  return { start, kind, members: [], runStart: inner, runValues: 0, member: newMember(inner) };
}

/** Returns whether the syntax of a member with a large value is valid. `JSON.parse` checks that of all other members. */
export function isWholeMember(
  kind: OpenContainer["kind"],
  { values, key, colonAfter, colons }: OpenMember,
): boolean {
  if (kind === "object") return values === 2 && key !== null && colons === 1 && colonAfter === 1;
  return values === 1 && colons === 0;
}
