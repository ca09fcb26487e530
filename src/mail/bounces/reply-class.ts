import type { PhraseGroup, ReplyCategory } from "./phrase-group.ts";
import { TEXT_RULES } from "./reply-phrases.ts";

/**
 * What a refusal means for its recipient. `hard`: the mailbox or domain takes no mail, now or later. `soft`: it exists
 * and could not take this one in the time given. `failed`: the mail or its sender was not wanted, which says nothing
 * of the recipient. `deferred`: to be tried again.
 */
export type ReplyOutcome = "hard" | "soft" | "failed" | "deferred";

/** What a refusal means, and what it is about. */
export interface ReplyClass {
  outcome: ReplyOutcome;
  category: ReplyCategory;
}

/** A peer's refusal. */
export interface Refusal {
  /** SMTP reply code; null where none is known. */
  code: number | null;
  /** RFC 3463 code, as `5.1.1`; null where none is known. */
  enhanced: string | null;
  text: string;
  /** What `classByText` told of the text, where the caller has asked it already: reading takes the time. */
  told?: TextClass | null;
  /** The command that was refused: `connect`, `ehlo`, `mail`, `rcpt`, `data`, `final`; null where not known. */
  stage?: string | null;
}

/** What a text tells, and what codes it yields to: see `PhraseGroup`. */
export type TextClass = FinalClass & Pick<PhraseGroup, "vague" | "unlessPolicy">;

/** The same of one that is final. */
export type FinalClass = { outcome: Exclude<ReplyOutcome, "deferred">; category: ReplyCategory };

/** Characters of a reply's text that are read. What a server means stands in its first lines (RFC 5321 §4.5.3.1.5). */
const MAX_TEXT_CHARS = 2048;

/**
 * Classes by subject and detail of the enhanced code (RFC 3463 §3, RFC 5248, RFC 6531, RFC 7293, RFC 7372, RFC 7505),
 * the first row that matches. The first digit is not part of it: the same detail is deferred as 4, final as 5.
 */
const CODE_RULES: readonly (readonly [pattern: RegExp, result: FinalClass, source: string])[] = [
  [
    /^1\.(?:7|8|9|20)$/,
    { outcome: "failed", category: "policy" },
    "RFC 3463 X.1.7 and X.1.8, RFC 7505 X.1.9, Exchange Online's X.1.20: the sender's address",
  ],
  [
    /^1\./,
    { outcome: "hard", category: "recipient" },
    "RFC 3463 X.1: the address; RFC 7505 X.1.10, and Exchange Online's X.1.10 and X.1.351: no such mailbox or domain",
  ],
  [/^2\.1$/, { outcome: "hard", category: "recipient" }, "RFC 3463 X.2.1: mailbox disabled"],
  [/^2\.2$/, { outcome: "soft", category: "mailbox-full" }, "RFC 3463 X.2.2: mailbox full"],
  [/^2\.3$/, { outcome: "failed", category: "content" }, "RFC 3463 X.2.3: message over the mailbox's limit"],
  [
    /^2\.12[12]$/,
    { outcome: "failed", category: "infrastructure" },
    "Exchange Online X.2.121 and X.2.122: a recipient that gets too much at once",
  ],
  [/^2\./, { outcome: "failed", category: "other" }, "RFC 3463 X.2: other mailbox trouble"],
  [/^3\.4$/, { outcome: "failed", category: "content" }, "RFC 3463 X.3.4: message too big"],
  [/^3\./, { outcome: "failed", category: "infrastructure" }, "RFC 3463 X.3: the mail system"],
  [/^4\.7$/, { outcome: "soft", category: "infrastructure" }, "RFC 3463 X.4.7: delivery time expired"],
  [
    /^4\.310$/,
    { outcome: "hard", category: "recipient" },
    "Exchange Online X.4.310: the domain does not exist",
  ],
  [/^4\./, { outcome: "failed", category: "infrastructure" }, "RFC 3463 X.4: network and routing"],
  [/^5\./, { outcome: "failed", category: "protocol" }, "RFC 3463 X.5: the protocol"],
  [
    /^6\.(?:7|8|9|10)$/,
    { outcome: "failed", category: "protocol" },
    "RFC 6531 §4.1 X.6.7 to X.6.10: an address beyond ASCII",
  ],
  [/^6\./, { outcome: "failed", category: "content" }, "RFC 3463 X.6: content or media"],
  [
    /^7\.(?:13|17|18)$/,
    { outcome: "hard", category: "recipient" },
    "RFC 5248 X.7.13: account disabled; RFC 7293 X.7.17 and X.7.18: somebody else's mailbox or domain now",
  ],
  [
    /^7\.(?:2[0-7])$/,
    { outcome: "failed", category: "reputation" },
    "RFC 7372: DKIM, SPF, reverse DNS, and several of them",
  ],
  [
    /^7\.[5-7]\d\d$/,
    { outcome: "failed", category: "reputation" },
    "Exchange Online X.7.5xx to X.7.7xx: the sending address or domain is banned or not authenticated",
  ],
  [/^7\./, { outcome: "failed", category: "policy" }, "RFC 3463 X.7: security or policy"],
];

/** Details that say nothing by themselves: X.0.0, X.2.0, and X.5.0 as Exchange and others use it for everything. */
const GENERIC = /^(?:0\.\d+|2\.0|5\.0)$/;

/**
 * Reads a refusal. The more specific evidence wins: what the text says, then the enhanced code, then the reply code.
 * A 4xx is `deferred` whatever its reason; the category tells that.
 */
export function classifyReply(refusal: Refusal): ReplyClass {
  const { outcome, category } = classifyFinal(refusal);
  return isTransient(refusal) ? { outcome: "deferred", category } : { outcome, category };
}

/**
 * Reads a refusal that somebody made final, as a DSN does and as we do when we give up: what was transient for the peer
 * is a soft bounce, whatever it was about.
 */
export function classifyGivenUp(refusal: Refusal): FinalClass {
  const { outcome, category } = classifyFinal(refusal);
  return { outcome: isTransient(refusal) ? "soft" : outcome, category };
}

function isTransient({ code, enhanced }: Refusal): boolean {
  if (code !== null) return code >= 400 && code < 500;
  return enhanced?.startsWith("4.") ?? false;
}

const ABOUT_RECIPIENT: ReadonlySet<ReplyCategory> = new Set(["recipient", "mailbox-full"]);
/** Stages at which the peer has not heard of the recipient yet: whatever is unknown to it then, it is not the mailbox. */
const BEFORE_RECIPIENT: ReadonlySet<string> = new Set(["connect", "ehlo", "mail"]);

/** qmail writes its code behind the words, "(#5.1.1)", IronPort before them, "#5.1.0": there the SMTP client finds none. */
const MARKED_CODE = /(?:^|\()#([245]\.\d{1,3}\.\d{1,3})\b/;

function withMarkedCode(refusal: Refusal): Refusal {
  if (refusal.enhanced !== null || refusal.code === null) return refusal;
  const marked = MARKED_CODE.exec(refusal.text.slice(0, MAX_TEXT_CHARS))?.[1];
  return marked?.startsWith(String(refusal.code).slice(0, 1)) ? { ...refusal, enhanced: marked } : refusal;
}

function classifyFinal(given: Refusal): FinalClass {
  const refusal = withMarkedCode(given);
  const found = byEvidence(refusal);
  if (ABOUT_RECIPIENT.has(found.category) && BEFORE_RECIPIENT.has(refusal.stage ?? ""))
    return { outcome: "failed", category: "policy" };
  const { outcome, category } = found;
  return { outcome: category === "infrastructure" && isRefused(refusal) ? "failed" : outcome, category };
}

/**
 * "Try again later" behind a 5xx is still a final no, and none about the mailbox. A 554 4.4.7 or 5.4.7 is none of these:
 * a mail server on the way that gave up, and so is 5.4.300 to 5.4.319 of Exchange Online.
 */
function isRefused({ code, enhanced }: Refusal): boolean {
  return code !== null && code >= 500 && !/^4\.|^5\.4\.(?:7|3[01]\d)$/.test(enhanced ?? "");
}

/** Whether a code says more than vague words do. X.1.0 is any trouble with any address. */
function namesMailbox({ category }: FinalClass, { enhanced }: Refusal): boolean {
  return ABOUT_RECIPIENT.has(category) && enhanced?.endsWith(".1.0") !== true;
}

function byEvidence(refusal: Refusal): FinalClass {
  const told = refusal.told === undefined ? classByText(refusal.text) : refusal.told;
  const coded = classByCode(refusal);
  if (told?.vague === true && coded !== null && namesMailbox(coded, refusal)) return coded;
  if (told?.unlessPolicy === true && coded?.category === "policy") return coded;
  return told ?? coded ?? classByReplyCode(refusal);
}

/** What the further lines of a reply begin with (RFC 5321 §4.2.1): it parts words that belong together. */
const CONTINUATION = /(?<=\S) [245]\d\d-(?:[245]\.\d{1,3}\.\d{1,3} )?/g;

/** What a mailbox is called says nothing of it: "spam@example.org", "dmarc@reports.example.org". */
const ADDRESS =
  /(?<![\w.!#$%&*+/=?^{|}~-])[\w.!#$%&*+/=?^{|}~-]{1,64}@(?:[a-z\d-]{1,63}\.){1,8}[a-z\d-]{2,63}/gi;

/** An address too, and none of a mailbox. */
const IP_ADDRESS = /\bip[- ]address\b/g;

/** The class that a text tells by itself; null where it tells none. */
export function classByText(text: string): TextClass | null {
  const plain = text
    .slice(0, MAX_TEXT_CHARS)
    .replace(/\s+/g, " ")
    .replace(CONTINUATION, " ")
    .replace(ADDRESS, "a@a.a")
    .toLowerCase()
    .replace(IP_ADDRESS, "ip");
  const group = TEXT_RULES.find(({ phrases }) => phrases.some(([pattern]) => pattern.test(plain)));
  if (group === undefined) return null;
  const { phrases: _, ...told } = group;
  return told;
}

function classByCode({ enhanced }: Refusal): FinalClass | null {
  const detail = /^[245]\.(\d{1,3}\.\d{1,3})$/.exec(enhanced ?? "")?.[1];
  if (detail === undefined || GENERIC.test(detail)) return null;
  return CODE_RULES.find(([pattern]) => pattern.test(detail))?.[1] ?? null;
}

/**
 * RFC 5321 §4.2.3: 550, 551 and 553 to RCPT are about the mailbox, 552 is about its space or the mail's size. To any
 * other command a bare 5xx says nothing of the recipient.
 */
function classByReplyCode({ code, stage }: Refusal): FinalClass {
  if (stage === "rcpt" && (code === 550 || code === 551 || code === 553))
    return { outcome: "hard", category: "recipient" };
  if (code !== null && [500, 501, 502, 503, 504, 555].includes(code))
    return { outcome: "failed", category: "protocol" };
  return { outcome: "failed", category: "other" };
}
