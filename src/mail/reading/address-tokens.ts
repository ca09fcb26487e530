/** A piece of an address field (RFC 5322 §3.2, with the obsolete forms of §4.4). */
export interface Token {
  /** `word` is an encoded word that has specials in it, which stands for a name and nothing else. */
  kind: "atom" | "word" | "quoted" | "literal" | "special";
  /** As written; of a quoted string with its quotes. */
  text: string;
  /** Whether space or a comment stands before it. */
  spaced: boolean;
  /** The comments before it, without their parentheses. */
  comments: readonly string[];
}

/** What begins with each kind of octet ends where its pattern does. No two ways lead through any of them. */
const PATTERNS: readonly [Token["kind"], RegExp][] = [
  ["quoted", /"(?:[^"\\]|\\[\s\S])*"/y],
  ["literal", /\[(?:[^[\]\\]|\\[\s\S])*\]/y],
  // Programs write specials as they are that RFC 2047 §5 has encoded. What could pass for an address is none of them.
  ["word", /=\?[^?\s"<>@(),:;[\]\\]+\?[bq]\?[^?\s"<>@]*\?=(?=[\s"<(]|$)/iy],
  // RFC 6532 §3.2: any character beyond ASCII.
  ["atom", /[^\0-\x20\x7f()<>[\]:;@\\,."]+/y],
  ["special", /[<>:;@,.]/y],
];
const SPACE = /[ \t\r\n]+/y;
const IN_COMMENT = /[^()\\]+|\\[\s\S]/y;

/** The tokens of a field, and a last one of no text, which has what stands behind them; null where something is none. */
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

/** Where the spaces and comments end, and what the comments say; null for one that does not end. */
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

/** A comment with its parentheses; comments lie within comments. */
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

/** What quoted pairs (RFC 5322 §3.2.1) stand for. */
export function unescaped(text: string): string {
  return text.replace(/\\([\s\S])/g, "$1");
}
