import { createHash } from "node:crypto";
import { type Mailbox, readableAddress } from "../../core/addresses.ts";
import type { MessageStatus } from "../../core/messages/states.ts";
import { fold, foldCase } from "../matching/folding.ts";

/** The searchable parts of a message. */
export interface Searchable {
  id: string;
  senderId: string;
  direction: "inbound" | "outbound";
  from: Mailbox;
  to: readonly Mailbox[];
  cc: readonly Mailbox[];
  bcc: readonly Mailbox[];
  subject: string;
  tags: readonly { name: string; value: string }[];
}

export interface SearchFilter {
  status?: MessageStatus;
  direction?: "inbound" | "outbound";
  /** A substring of a recipient, the sender or the subject, names included, in any case. */
  q?: string | undefined;
  /** The sender's address; the address of any recipient. Case does not count. */
  from?: string;
  to?: string;
  tag?: { name: string; value: string };
}

/** UTF-16 units of a trigram. A shorter text has no term. */
const GRAM = 3;
/**
 * Maximum UTF-16 units of a message's terms, because it may name thousands of recipients. Text after them is not
 * found.
 */
export const MAX_TERMS_UNITS = 64 * 1024;
/** Maximum number of trigrams of a searched text: enough to leave few messages without it. */
const MAX_WANTED_GRAMS = 8;
/**
 * Maximum units of an address or a tag in its term. A longer one ends in a hash, so that similar ones have
 * different terms.
 */
const MAX_FACET_UNITS = 200;
const FACET_HASH_CHARS = 16;
/** Characters of a project's id before its terms: the last ones, which are random. */
const PROJECT_CHARS = 5;

/** Characters of a word's term after its project: 30 bits of its hash. With six bits less, a search reads a few more messages. */
const WORD_CHARS = 5;
const WORD_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz!#$%&()*+,-./:;<=>?@[]^_{|}~";

const MILESTONE = "milestone=";
const THREADED = "threaded=";
/** The end of a milestone's id: ten bits, which are random. */
const MILESTONE_END = "00";

/** The prefixes of terms that hold a whole value. */
const FACETS = { direction: "direction=", from: "from=", to: "to=", tag: "tag=" } as const;

/** Returns true if the message's recipients, sender or subject contain the text, in any case. */
export function hasText(
  message: Pick<Searchable, "from" | "to" | "cc" | "bcc" | "subject">,
  q: string,
): boolean {
  const text = fold(q);
  return textsOf(message).some((candidate) => fold(candidate).includes(text));
}

/**
 * Returns true if one of the message's recipients has the address, in any case and with any Unicode spelling of its
 * accents.
 */
export function hasRecipient(message: Pick<Searchable, "to" | "cc" | "bcc">, address: string): boolean {
  const folded = foldCase(address);
  return recipientsOf(message).some(({ email }) => foldCase(email) === folded);
}

/** Returns the terms of a message as the index's tokenizer takes them: a space before each. */
export function termsOf(message: Searchable): string {
  const terms = termWriter(message.senderId);
  writeWholes(terms, message);
  for (const text of textsOf(message)) terms.grams(fold(text));
  return terms.text();
}

/** Returns the terms of a message for the index of words. @param threaded true if it is in a thread */
export function wordTermsOf(message: Searchable, words: Iterable<string>, threaded: boolean): string {
  const terms = termWriter(message.senderId);
  writeWholes(terms, message);
  if (threaded) terms.whole(THREADED, "");
  for (const word of words) if (!terms.word(word)) break;
  return terms.text();
}

function writeWholes(terms: TermWriter, message: Searchable): void {
  const { id, direction, from, tags } = message;
  if (id.endsWith(MILESTONE_END)) terms.whole(MILESTONE, "");
  terms.whole(FACETS.direction, direction);
  terms.address(FACETS.from, from.email);
  for (const tag of tags) terms.whole(FACETS.tag, tagText(tag));
  for (const { email } of recipientsOf(message)) terms.address(FACETS.to, email);
}

/** Terms that every wanted message has. Unwanted messages may have them too, so the caller compares what it finds. */
export interface Terms {
  /** The terms of whole values. The status has none, because it changes. */
  wholes: string[];
  /** Trigrams of the text; empty if it is too short. */
  grams: string[];
}

/** Returns the terms by which the index finds the wanted messages. */
export function termsWanted(senderId: string, wanted: SearchFilter): Terms {
  const { direction, q, from, to, tag } = wanted;
  const wholes = termWriter(senderId);
  if (from !== undefined) wholes.address(FACETS.from, from);
  if (to !== undefined) wholes.address(FACETS.to, to);
  if (tag !== undefined) wholes.whole(FACETS.tag, tagText(tag));
  if (direction !== undefined) wholes.whole(FACETS.direction, direction);
  return { wholes: split(wholes.text()), grams: gramsWanted(senderId, q ?? "") };
}

/** Returns the terms by which the index of words finds the wanted messages. Some of many words are enough. */
export function wordTermsWanted(senderId: string, wanted: SearchFilter, words: Iterable<string>): string[] {
  const terms = termWriter(senderId);
  for (const word of words) terms.word(word);
  return [...spread(split(terms.text())), ...termsWanted(senderId, { ...wanted, q: undefined }).wholes];
}

/** Returns the term of messages in threads, so that a search of threads passes over the others. */
export function threadedTerm(senderId: string): string {
  const terms = termWriter(senderId);
  terms.whole(THREADED, "");
  return split(terms.text()).join();
}

/** Returns a few trigrams of the text, enough to leave few messages without it. */
function gramsWanted(senderId: string, q: string): string[] {
  const grams = termWriter(senderId);
  grams.grams(fold(q));
  return spread(split(grams.text()));
}

/**
 * Returns the term of milestones, which one in 1024 of a project's messages has by chance. FTS5 joins terms until it
 * finds a message with all of them, or reaches the ends of their lists. If a milestone may match any term, FTS5
 * returns at each of them.
 */
export function milestoneTerm(senderId: string): string {
  const terms = termWriter(senderId);
  terms.whole(MILESTONE, "");
  return split(terms.text()).join();
}

/** Returns the FTS5 expression that finds the messages that have all the terms. */
export function expressionOf(terms: readonly string[]): string {
  return terms.map((term) => `"${term}"`).join(" AND ");
}

/** Returns the expression that finds the messages that have, for each of the terms, it or the other term. */
export function expressionOr(terms: readonly string[], other: string): string {
  return terms.map((term) => `("${term}" OR "${other}")`).join(" AND ");
}

function split(terms: string): string[] {
  return terms.split(" ").slice(1);
}

/** Returns all recipients of a message, as named in its header and hidden. */
export function recipientsOf({ to, cc, bcc }: Pick<Searchable, "to" | "cc" | "bcc">): Mailbox[] {
  return [...to, ...cc, ...bcc];
}

function textsOf(message: Pick<Searchable, "from" | "to" | "cc" | "bcc" | "subject">): string[] {
  const texts = [message.subject];
  for (const { email, name } of [message.from, ...recipientsOf(message)]) {
    texts.push(email);
    const readable = readableAddress(email);
    if (readable !== email) texts.push(readable);
    if (name !== undefined) texts.push(name);
  }
  return texts;
}

function tagText({ name, value }: { name: string; value: string }): string {
  return `${name}:${value}`;
}

/** Returns some of many terms, evenly spread. */
function spread(all: string[]): string[] {
  if (all.length <= MAX_WANTED_GRAMS) return all;
  const step = (all.length - 1) / (MAX_WANTED_GRAMS - 1);
  return Array.from({ length: MAX_WANTED_GRAMS }, (_, index) => all[Math.round(index * step)] ?? "");
}

interface TermWriter {
  /** Writes a term of the whole value. */
  whole(kind: string, value: string): void;
  /** Writes a term of a whole address as a hash, because the index keeps terms of deleted messages until it merges them. */
  address(kind: string, email: string): void;
  /**
   * Writes a term of a word: a hash, because words are longer, and because the index keeps terms of deleted messages until it
   * merges them. False if there is no more room.
   */
  word(word: string): boolean;
  /** Writes a term for every run of three units of a folded text. Cut surrogates become U+FFFD, here and in a search alike. */
  grams(text: string): void;
  text(): string;
}

/**
 * The buffer for terms: a hundred for each of thousands of messages a second cost less here than as strings. It is
 * shared, because a writer is done before the next one begins.
 */
const written = new Uint16Array(MAX_TERMS_UNITS);
const decoder = new TextDecoder("utf-16le");
const SPACE = 0x20;

function termWriter(senderId: string): TermWriter {
  const project = asToken(senderId.slice(-PROJECT_CHARS));
  let length = 0;
  const put = (text: string, from: number, to: number): void => {
    for (let at = from; at < to; at++) written[length++] = text.charCodeAt(at);
  };
  const begin = (units: number): boolean => {
    if (length + 1 + project.length + units > MAX_TERMS_UNITS) return false;
    written[length++] = SPACE;
    put(project, 0, project.length);
    return true;
  };
  return {
    whole(kind, value) {
      const token = kind + asToken(facet(value));
      if (begin(token.length)) put(token, 0, token.length);
    },
    address(kind, email) {
      const token = kind + hashOf(email);
      if (begin(token.length)) put(token, 0, token.length);
    },
    word(word) {
      if (!begin(WORD_CHARS)) return false;
      let hash = Bun.hash.xxHash32(word);
      for (let char = 0; char < WORD_CHARS; char++, hash >>>= 6)
        written[length++] = WORD_ALPHABET.charCodeAt(hash & 63);
      return true;
    },
    grams(text) {
      const token = asToken(text);
      for (let at = GRAM; at <= token.length; at++) {
        if (!begin(GRAM)) return;
        put(token, at - GRAM, at);
      }
    },
    text: () => decoder.decode(written.subarray(0, length)),
  };
}

/** Returns a value as its term has it. */
function facet(value: string): string {
  const beginning = foldCase(value.slice(0, MAX_FACET_UNITS));
  if (value.length <= MAX_FACET_UNITS) return beginning;
  return `${beginning}#${hashOf(value)}`;
}

/** Returns the hash of a value in any case. */
function hashOf(value: string): string {
  return createHash("sha256").update(foldCase(value)).digest("hex").slice(0, FACET_HASH_CHARS);
}

/**
 * Replaces characters that would end a term for the tokenizer or an expression: white space, control characters and
 * quotes.
 */
function asToken(text: string): string {
  return text.replace(/[\0-\x20"'\x7f]/g, "_");
}
