import { addressTokens, type Token, unescaped } from "./address-tokens.ts";

/** A mailbox as its field names it: the name is not decoded, and empty where it has none. */
export interface ListedMailbox {
  address: string;
  name: string;
}

/**
 * The mailboxes of an address list that keeps to the grammar of RFC 5322 §3.4, with the obsolete forms of §4.4, groups
 * unwrapped; null for every other. Who has no name but a comment behind or before the address is called by that, as old
 * programs write names.
 */
export function readAddressList(value: string): ListedMailbox[] | null {
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
    // RFC 5322 §4.4: nothing may stand between two commas.
    if (textAt(tokens, at) !== ",") return null;
    at++;
  }
}

interface FoundAddress {
  address: string;
  /** The token behind it. */
  end: number;
}

/** The address between angle brackets. A route before it (RFC 5322 §4.4) is passed over. */
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

/** Without the spaces and comments that may stand between its atoms (RFC 5322 §4.4). */
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

/** The end of such words with dots between them; null where there are none. */
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

/** Words, and dots, which stand in names as they are (RFC 5322 §4.1). */
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

/** The text of a special; empty for every other token, and behind the last. */
function textAt(tokens: readonly Token[], at: number): string {
  const token = tokens[at];
  return token?.kind === "special" ? token.text : "";
}
