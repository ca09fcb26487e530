import { addressTokens, type Token, unescaped } from "./address-tokens.ts";

/** A mailbox as its field names it. The name is not decoded, and empty if there is none. */
export interface ListedMailbox {
  address: string;
  name: string;
}

/** One mailbox of plain words and dot-atoms, as most fields have. It is tried first, because tokens take ten times as long. */
const PLAIN =
  /^(?:([A-Za-z0-9]+(?: [A-Za-z0-9]+)*) <)?([A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)>?$/;

function plainMailbox(value: string): ListedMailbox | null {
  const [, name = "", address] = PLAIN.exec(value) ?? [];
  return address === undefined || (name === "") === value.endsWith(">") ? null : { address, name };
}

/**
 * Returns the mailboxes of an address list that obeys the grammar of RFC 5322 §3.4, with the obsolete forms of §4.4.
 * Groups are unwrapped. Returns null for any other list. A comment next to an address without a name becomes its
 * name, because old programs write names so.
 */
export function readAddressList(value: string): ListedMailbox[] | null {
  const plain = plainMailbox(value);
  if (plain !== null) return [plain];
  const tokens = addressTokens(value);
  if (tokens === null) return null;
  const list: ListedMailbox[] = [];
  let at = 0;
  let inGroup = false;
  for (;;) {
    const begin = at;
    at = phraseEnd(tokens, at);
    const phrase = tokens.slice(begin, at);
    const next = textAt(tokens, at);
    if (next === ":" && !inGroup && phrase.length > 0) {
      inGroup = true;
      at++;
      continue;
    }
    if (next === "@" || next === "<") {
      const found = next === "<" ? angleAddress(tokens, at) : addrSpec(tokens, begin);
      if (found === null) return null;
      at = found.end;
      const name = next === "<" ? phraseText(phrase) : "";
      const comments = [tokens[at], tokens[begin]].map((token) => token?.comments.join(" ").trim() ?? "");
      list.push({ address: found.address, name: name || comments[0] || comments[1] || "" });
    } else if (phrase.length > 0) return null;
    if (inGroup && textAt(tokens, at) === ";") {
      inGroup = false;
      at++;
    }
    if (at === tokens.length - 1) return inGroup ? null : list;
    // RFC 5322 §4.4: a place between two commas may be empty.
    if (textAt(tokens, at) !== ",") return null;
    at++;
  }
}

interface FoundAddress {
  address: string;
  /** The token that follows. */
  end: number;
}

/** Returns the address between angle brackets. A route before it (RFC 5322 §4.4) is skipped. */
function angleAddress(tokens: readonly Token[], from: number): FoundAddress | null {
  const found = addrSpec(tokens, routeEnd(tokens, from + 1));
  return found === null || textAt(tokens, found.end) !== ">" ? null : { ...found, end: found.end + 1 };
}

function routeEnd(tokens: readonly Token[], from: number): number {
  let at = from;
  while (textAt(tokens, at) === "," || textAt(tokens, at) === "@") {
    if (textAt(tokens, at) === ",") at++;
    else at = domainEnd(tokens, at + 1) ?? tokens.length;
  }
  return at > from && textAt(tokens, at) === ":" ? at + 1 : from;
}

/** Returns the text without the spaces and comments between its atoms (RFC 5322 §4.4). */
function addrSpec(tokens: readonly Token[], from: number): FoundAddress | null {
  const at = dotted(tokens, from, (kind) => kind === "atom" || kind === "quoted");
  if (at === null || textAt(tokens, at) !== "@") return null;
  const end = domainEnd(tokens, at + 1);
  if (end === null) return null;
  const texts = tokens.slice(from, end).map(({ text }) => text);
  return { address: texts.join(""), end };
}

function domainEnd(tokens: readonly Token[], from: number): number | null {
  return tokens[from]?.kind === "literal" ? from + 1 : dotted(tokens, from, (kind) => kind === "atom");
}

/** Returns the end of such words with dots between them, or null if there are none. */
function dotted(
  tokens: readonly Token[],
  from: number,
  isWord: (kind: Token["kind"]) => boolean,
): number | null {
  for (let at = from; ; at += 2) {
    const token = tokens[at];
    if (token === undefined || !isWord(token.kind)) return null;
    if (textAt(tokens, at + 1) !== ".") return at + 1;
  }
}

/** Skips words and dots, which names may contain unquoted (RFC 5322 §4.1). */
function phraseEnd(tokens: readonly Token[], from: number): number {
  let at = from;
  while (isInPhrase(tokens[at])) at++;
  return at;
}

function isInPhrase(token: Token | undefined): boolean {
  if (token === undefined) return false;
  return token.kind === "special" ? token.text === "." : token.kind !== "literal";
}

function phraseText(phrase: readonly Token[]): string {
  const said = phrase.map(({ kind, text, spaced }) => {
    return `${spaced ? " " : ""}${kind === "quoted" ? unescaped(text.slice(1, -1)) : text}`;
  });
  return said.join("").trim();
}

/** Returns the text of a special, or "" for any other token and past the last one. */
function textAt(tokens: readonly Token[], at: number): string {
  const token = tokens[at];
  return token?.kind === "special" ? token.text : "";
}
