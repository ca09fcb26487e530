/** A piece of an address field (RFC 5322 §3.2, with the obsolete forms of §4.4). */
export interface Token {
  /** `word` is an encoded word with specials in it. It can only be part of a name. */
  kind: "atom" | "word" | "quoted" | "literal" | "special";
  /** As written: a quoted string has its quotes. */
  text: string;
  /** Set if a space or a comment precedes it. */
  spaced: boolean;
  /** The comments before it, without their parentheses. */
  comments: readonly string[];
}

/** The pattern for each kind of first octet. No pattern can match one text in two ways. */
const PATTERNS: readonly [Token["kind"], RegExp][] = [
  ["quoted", /"(?:[^"\\]|\\[\s\S])*"/y],
  ["literal", /\[(?:[^[\]\\]|\\[\s\S])*\]/y],
  // An encoded word. Programs leave specials in it that RFC 2047 §5 wants encoded. A word that could be an address is
  // not matched.
  ["word", /=\?[^?\s"<>@(),:;[\]\\]+\?[bq]\?[^?\s"<>@]*\?=(?=[\s"<(]|$)/iy],
  // RFC 6532 §3.2: any character beyond ASCII.
  ["atom", /[^\0-\x20\x7f()<>[\]:;@\\,."]+/y],
  ["special", /[<>:;@,.]/y],
];
const SPACE = /[ \t\r\n]+/y;
const IN_COMMENT = /[^()\\]+|\\[\s\S]/y;

/**
 * Returns the tokens of a field, then an empty one with the space after them. Returns null if the field has an
 * invalid token.
 */
export function addressTokens(value: string): Token[] | null {
  const tokens: Token[] = [];
  for (let at = 0; ; ) {
    const between = skipBetween(value, at);
    if (between === null) return null;
    const { end, comments } = between;
    const spaced = end > at;
    if (end === value.length) return [...tokens, { kind: "special", text: "", spaced, comments }];
    const found = tokenAt(value, end);
    if (found === null) return null;
    tokens.push({ ...found, spaced, comments });
    at = end + found.text.length;
  }
}

function tokenAt(value: string, at: number): Pick<Token, "kind" | "text"> | null {
  for (const [kind, pattern] of PATTERNS) {
    const text = textAt(pattern, value, at);
    if (text !== "") return { kind, text };
  }
  return null;
}

/** Returns the end of the spaces and comments, and the comments' text. Null if a comment does not end. */
function skipBetween(value: string, from: number): { end: number; comments: string[] } | null {
  const comments: string[] = [];
  for (let at = from; ; ) {
    at += textAt(SPACE, value, at).length;
    if (value[at] !== "(") return { end: at, comments };
    const comment = commentAt(value, at);
    if (comment === null) return null;
    comments.push(unescaped(comment.slice(1, -1)));
    at += comment.length;
  }
}

/** Returns a comment with its parentheses. Comments may be nested. */
function commentAt(value: string, from: number): string | null {
  let depth = 0;
  for (let at = from; at < value.length; ) {
    if (value[at] === "(") depth++;
    if (value[at] === ")") depth--;
    at += textAt(IN_COMMENT, value, at).length || 1;
    if (depth === 0) return value.slice(from, at);
  }
  return null;
}

function textAt(pattern: RegExp, value: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(value)?.[0] ?? "";
}

/** Replaces quoted pairs (RFC 5322 §3.2.1) by the character they quote. */
export function unescaped(text: string): string {
  return text.replace(/\\([\s\S])/g, "$1");
}
