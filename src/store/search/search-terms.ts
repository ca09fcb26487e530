import { createHash } from "node:crypto";
import type { Mailbox } from "../../core/addresses.ts";
import { isAsciiText } from "../../core/ascii.ts";
import { type MessageStatus, MOVING, ROLL_UP_ORDER } from "../../core/states.ts";
import { fold, foldCase } from "./folding.ts";

/** What of a message can be searched. */
export interface Searchable {
  id: string;
  senderId: string;
  direction: "inbound" | "outbound";
  status: MessageStatus;
  from: Mailbox;
  to: readonly Mailbox[];
  cc: readonly Mailbox[];
  bcc: readonly Mailbox[];
  subject: string;
  tags: readonly { name: string; value: string }[];
}

/** What one looks for. */
export interface Wanted {
  status?: MessageStatus;
  direction?: "inbound" | "outbound";
  /** A substring of a recipient, the sender or the subject, names included, in any case. */
  q?: string;
  /** Sender's address; recipient's address, of any kind. Case does not count. */
  from?: string;
  to?: string;
  tag?: { name: string; value: string };
}

/** Units of UTF-16 of a text that make one term; what is shorter has none. */
const GRAM = 3;
/** Units of a message's terms at most: a mail may name thousands of recipients. What comes after is not found. */
export const MAX_TERMS_UNITS = 64 * 1024;
/** Terms of a text that is looked for, at most: enough to leave few messages that do not hold it. */
const MAX_WANTED_GRAMS = 8;
/** Units of an address or a tag that stand in its term. A longer one ends in a hash: alike ones must not be one term. */
const MAX_FACET_UNITS = 200;
/** Characters of that hash. */
const FACET_HASH_CHARS = 16;
/** Characters of a sender's id that stand before its terms: the last ones, which are random. */
const PROJECT_CHARS = 5;

/** The term of milestones. */
const MILESTONE = "milestone=";
/** What the id of a milestone ends in: ten bits, which are random. */
const MILESTONE_END = "00";

/** What stands before a value in a term that holds all of it. */
const FACETS = { status: "status=", direction: "direction=", from: "from=", to: "to=", tag: "tag=" } as const;

/** Whether the message's recipient, sender or subject has the text in it, in any case. */
export function hasText(
  message: Pick<Searchable, "from" | "to" | "cc" | "bcc" | "subject">,
  q: string,
): boolean {
  const text = fold(q);
  return textsOf(message).some((candidate) => fold(candidate).includes(text));
}

/** Whether one of the message's recipients has the address, in any case and however Unicode spells its accents. */
export function hasRecipient(message: Pick<Searchable, "to" | "cc" | "bcc">, address: string): boolean {
  const folded = foldCase(address);
  return recipientsOf(message).some(({ email }) => foldCase(email) === folded);
}

/** Whether a message of that status has it in the index: one that still moves will soon have another. */
export function isSettled(status: MessageStatus): boolean {
  return status === "inbound_rejected" || !MOVING.has(status);
}

/** Every status of which a message may have a term. */
export const FINAL_STATUSES: readonly MessageStatus[] = [
  ...ROLL_UP_ORDER.filter((status) => !MOVING.has(status)),
  "inbound_rejected",
];

/**
 * The terms of a message, as the index's tokenizer takes them: a space before each. Of a text whose letters are not all what
 * they are compared as, there are those of it as it stands as well: programs up to schema 17 look for these alone, and may
 * still run beside this one.
 */
export function termsOf(message: Searchable): string {
  const { id, senderId, direction, status, from, tags } = message;
  const terms = termWriter(senderId);
  if (id.endsWith(MILESTONE_END)) terms.whole(MILESTONE, "");
  terms.whole(FACETS.direction, direction);
  if (isSettled(status)) terms.whole(FACETS.status, status);
  terms.whole(FACETS.from, from.email);
  for (const tag of tags) terms.whole(FACETS.tag, tagText(tag));
  for (const { email } of recipientsOf(message)) terms.whole(FACETS.to, email);
  const texts = textsOf(message).map(inBothFoldings);
  for (const { folded } of texts) terms.grams(folded);
  for (const { folded, cased } of texts) if (cased !== folded) terms.grams(cased, folded);
  return terms.text();
}

/** Those of its terms that it may lack where a program up to schema 17 has entered it. */
export function termsLacking(message: Searchable): string {
  const terms = termWriter(message.senderId);
  for (const { folded, cased } of textsOf(message).map(inBothFoldings))
    if (cased !== folded) terms.grams(folded, cased);
  return terms.text();
}

/** A text as it is compared, and as programs up to schema 17 did that. */
function inBothFoldings(text: string): { folded: string; cased: string } {
  const folded = fold(text);
  return { folded, cased: isAsciiText(text) ? folded : foldCase(text) };
}

/** The term of a status alone. */
export function termOfStatus(senderId: string, status: MessageStatus): string {
  const terms = termWriter(senderId);
  terms.whole(FACETS.status, status);
  return terms.text();
}

/** Terms that all messages have which may be wanted. Others may have them too: what is found must be compared. */
export interface Terms {
  /** That of the status; none where none is wanted, or one that the index does not have. */
  status: string[];
  /** Those of other whole values. */
  wholes: string[];
  /** Those of the text, by each folding that a message may have been entered by: it has all of one of these. */
  grams: string[][];
}

/** The terms by which the index finds what is wanted. */
export function termsWanted(senderId: string, wanted: Wanted): Terms {
  const { status, direction, q, from, to, tag } = wanted;
  const settled = status !== undefined && isSettled(status) ? split(termOfStatus(senderId, status)) : [];
  const wholes = termWriter(senderId);
  if (from !== undefined) wholes.whole(FACETS.from, from);
  if (to !== undefined) wholes.whole(FACETS.to, to);
  if (tag !== undefined) wholes.whole(FACETS.tag, tagText(tag));
  if (direction !== undefined) wholes.whole(FACETS.direction, direction);
  return { status: settled, wholes: split(wholes.text()), grams: gramsWanted(senderId, q ?? "") };
}

/** Messages that a program up to schema 17 has entered have the terms of the older folding, until they are entered anew. */
function gramsWanted(senderId: string, q: string): string[][] {
  const { folded, cased } = inBothFoldings(q);
  const all = [...new Set([folded, cased])].map((text) => {
    const grams = termWriter(senderId);
    grams.grams(text);
    return spread(split(grams.text()));
  });
  // Too short a text by one of them: by that one every message may have it.
  return all.some((grams) => grams.length === 0) ? [] : all;
}

/**
 * The term that one in 1024 of a project's messages has, by chance: its milestones. FTS5 goes on joining terms until it
 * has found a message that has all of them, or to the ends of their lists; where milestones are as good as any of the terms,
 * it comes up for air at each of them.
 */
export function milestoneTerm(senderId: string): string {
  const terms = termWriter(senderId);
  terms.whole(MILESTONE, "");
  return split(terms.text()).join();
}

/** The expression that finds in the index the messages that have all the terms, and all of one of the lists of grams. */
export function expressionOf(
  terms: readonly string[],
  grams: readonly (readonly string[])[] = [],
  quoted = (term: string) => `"${term}"`,
): string {
  const all = (list: readonly string[]) => list.map(quoted).join(" AND ");
  const texts = grams.map((list) => `(${all(list)})`).join(" OR ");
  return [...(terms.length === 0 ? [] : [all(terms)]), ...(texts === "" ? [] : [`(${texts})`])].join(" AND ");
}

/** The same, which finds those that have the other term too. */
export function expressionOr(
  terms: readonly string[],
  grams: readonly (readonly string[])[],
  other: string,
): string {
  return expressionOf(terms, grams, (term) => `("${term}" OR "${other}")`);
}

function split(terms: string): string[] {
  return terms.split(" ").slice(1);
}

function recipientsOf({ to, cc, bcc }: Pick<Searchable, "to" | "cc" | "bcc">): Mailbox[] {
  return [...to, ...cc, ...bcc];
}

function textsOf(message: Pick<Searchable, "from" | "to" | "cc" | "bcc" | "subject">): string[] {
  const texts = [message.subject];
  for (const { email, name } of [message.from, ...recipientsOf(message)]) {
    texts.push(email);
    if (name !== undefined) texts.push(name);
  }
  return texts;
}

function tagText({ name, value }: { name: string; value: string }): string {
  return `${name}:${value}`;
}

/** Some of many terms, from the first to the last. */
function spread(all: string[]): string[] {
  if (all.length <= MAX_WANTED_GRAMS) return all;
  const step = (all.length - 1) / (MAX_WANTED_GRAMS - 1);
  return Array.from({ length: MAX_WANTED_GRAMS }, (_, index) => all[Math.round(index * step)] ?? "");
}

interface TermWriter {
  /** A term of the whole value. */
  whole(kind: string, value: string): void;
  /**
   * A term for every run of three units of a folded text, but for those of the other text. Cut surrogates become U+FFFD, here
   * and in a search alike.
   */
  grams(text: string, other?: string): void;
  text(): string;
}

/**
 * Where terms are written: a hundred for each of thousands of messages a second cost less here than as texts put
 * together. Shared, since a writer is done with before the next one begins.
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
    grams(text, other) {
      const token = asToken(text);
      const isOthers = other === undefined ? null : gramsOf(asToken(other));
      for (let at = GRAM; at <= token.length; at++) {
        if (isOthers?.(token.slice(at - GRAM, at)) === true) continue;
        if (!begin(GRAM)) return;
        put(token, at - GRAM, at);
      }
    },
    text: () => decoder.decode(written.subarray(0, length)),
  };
}

/** Units of a text up to which a look through all of it is sooner done than a set of its grams. */
const SHORT_UNITS = 100;

/** Whether a text has a gram. */
function gramsOf(text: string): (gram: string) => boolean {
  if (text.length <= SHORT_UNITS) return (gram) => text.includes(gram);
  const grams = new Set<string>();
  for (let at = GRAM; at <= text.length; at++) grams.add(text.slice(at - GRAM, at));
  return (gram) => grams.has(gram);
}

/** A value as it stands in its term. */
function facet(value: string): string {
  const beginning = foldCase(value.slice(0, MAX_FACET_UNITS));
  if (value.length <= MAX_FACET_UNITS) return beginning;
  const hash = createHash("sha256").update(foldCase(value)).digest("hex");
  return `${beginning}#${hash.slice(0, FACET_HASH_CHARS)}`;
}

/** What the tokenizer or an expression would take for an end: white space, control characters and quotes. */
function asToken(text: string): string {
  return text.replace(/[\0-\x20"'\x7f]/g, "_");
}
