import { folded } from "./diagnostic.ts";
import { type PhraseGroup, type ReplyCategory, textRules } from "./reply-phrases.ts";

/**
 * The meaning of a refusal for its recipient. `hard`: the mailbox or domain takes no mail, now or later. `soft`: it
 * exists but could not take this message in the time given. `failed`: the message or its sender was not wanted, which
 * says nothing about the recipient. `deferred`: try again.
 */
export type ReplyOutcome = "hard" | "soft" | "failed" | "deferred";

/** The meaning of a refusal and its subject. */
export interface ReplyClass {
  outcome: ReplyOutcome;
  category: ReplyCategory;
}

export interface Refusal {
  /** SMTP reply code; null if unknown. */
  code: number | null;
  /** RFC 3463 code, such as `5.1.1`; null if unknown. */
  enhanced: string | null;
  text: string;
  /** The result of `classByText` for the text, if the caller has it already: reading takes time. */
  textClass?: TextClass | null;
  /** The command that was refused: `connect`, `ehlo`, `mail`, `rcpt`, `data`, `final`; null if unknown. */
  stage?: string | null;
}

/** The class of a reply's words, and the codes that outweigh it: see `PhraseGroup`. */
export type TextClass = FinalClass & Pick<PhraseGroup, "vague" | "unlessPolicy" | "later">;

export type FinalClass = { outcome: Exclude<ReplyOutcome, "deferred">; category: ReplyCategory };

/**
 * Maximum characters of a reply's text that are read. Servers put their meaning into the first lines (RFC 5321
 * §4.5.3.1.5).
 */
const MAX_TEXT_CHARS = 2048;

/**
 * Classes by subject and detail of the enhanced code (RFC 3463 §3, RFC 5248, RFC 6531, RFC 7293, RFC 7372, RFC 7505).
 * The first row that matches counts. The first digit is left out: one detail is deferred as 4 and final as 5.
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
    /^7\.(?:2[0-7]|32|40|509|51[25])$/,
    { outcome: "failed", category: "authentication" },
    "RFC 7372: DKIM, SPF, reverse DNS, and several of them; Gmail X.7.32 and X.7.40, Exchange Online X.7.509 and X.7.515",
  ],
  [/^7\.28$/, { outcome: "failed", category: "rate" }, "RFC 5248's registry, X.7.28: mail flood detected"],
  [
    /^7\.[5-8]\d\d$/,
    { outcome: "failed", category: "reputation" },
    "Exchange Online X.7.5xx to X.7.8xx: the sending address or domain is banned",
  ],
  [/^7\./, { outcome: "failed", category: "policy" }, "RFC 3463 X.7: security or policy"],
];

/** Details without meaning: X.0.0 and X.2.0, and X.5.0, which Exchange and others use for everything. */
const GENERIC = /^(?:0\.\d+|2\.0|5\.0)$/;

/**
 * Classifies a refusal. The more specific evidence wins: the text, then the enhanced code, then the reply code. A 4xx
 * is always `deferred`; its category gives the reason. So is a 5xx whose words mean "later".
 */
export function classifyReply(refusal: Refusal): ReplyClass {
  const { outcome, category, later } = classifyFinal(refusal);
  return isTransient(refusal) || later === true ? { outcome: "deferred", category } : { outcome, category };
}

/**
 * Classifies a refusal that is final because the reporter, or our own queue, gave up. A transient refusal becomes a
 * soft bounce, unless its subject clears the recipient.
 */
export function classifyGivenUp(refusal: Refusal): FinalClass {
  const { outcome, category } = classifyFinal(refusal);
  if (!isTransient(refusal)) return { outcome, category };
  return { outcome: clearsRecipient(category) ? "failed" : "soft", category };
}

/** Subjects of a deferral that clear the recipient: whatever the reason, the mailbox is as good as before. */
const CLEARS_RECIPIENT: ReadonlySet<ReplyCategory> = new Set<ReplyCategory>([
  ...(["rate", "reputation", "policy", "authentication", "greylist"] as const),
]);

/** Returns whether a recipient is `failed` rather than bounced if tries end with a deferral of that subject. */
export function clearsRecipient(category: ReplyCategory): boolean {
  return CLEARS_RECIPIENT.has(category);
}

function isTransient({ code, enhanced }: Refusal): boolean {
  if (code !== null) return code >= 400 && code < 500;
  return enhanced?.startsWith("4.") ?? false;
}

const ABOUT_RECIPIENT: ReadonlySet<ReplyCategory> = new Set(["recipient", "mailbox-full"]);
/** Stages before the recipient is named. Words such as "unknown" are then not about the mailbox. */
const BEFORE_RECIPIENT: ReadonlySet<string> = new Set(["connect", "ehlo", "mail"]);

/**
 * A code with a number sign. qmail writes it after the words, "(#5.1.1)", and IronPort before them, "#5.1.0". The
 * SMTP client does not find it there.
 */
const MARKED_CODE = /(?:^|\()#([245]\.\d{1,3}\.\d{1,3})\b/;

function withMarkedCode(refusal: Refusal): Refusal {
  if (refusal.enhanced !== null || refusal.code === null) return refusal;
  const marked = MARKED_CODE.exec(refusal.text.slice(0, MAX_TEXT_CHARS))?.[1];
  return marked?.startsWith(String(refusal.code).slice(0, 1)) ? { ...refusal, enhanced: marked } : refusal;
}

function classifyFinal(given: Refusal): FinalClass & Pick<PhraseGroup, "later"> {
  const refusal = withMarkedCode(given);
  const found = byEvidence(refusal);
  if (ABOUT_RECIPIENT.has(found.category) && BEFORE_RECIPIENT.has(refusal.stage ?? ""))
    return { outcome: "failed", category: "policy" };
  if (found.category !== "infrastructure" || !isRefused(refusal)) return found;
  return { outcome: "failed", category: found.category };
}

/**
 * Returns whether a refusal is final although its words may say "try again later": a 5xx, and not about the mailbox.
 * Exceptions are 554 4.4.7, 5.4.7 and Exchange Online's 5.4.300 to 5.4.319: a server on the way gave up.
 */
function isRefused({ code, enhanced }: Refusal): boolean {
  return code !== null && code >= 500 && !/^4\.|^5\.4\.(?:7|3[01]\d)$/.test(enhanced ?? "");
}

/** Returns whether a code is more specific than vague words. X.1.0 is any trouble with any address. */
function namesMailbox({ category }: FinalClass, { enhanced, stage }: Refusal): boolean {
  if (BEFORE_RECIPIENT.has(stage ?? "")) return false;
  return ABOUT_RECIPIENT.has(category) && enhanced?.endsWith(".1.0") !== true;
}

function byEvidence(refusal: Refusal): FinalClass & Pick<PhraseGroup, "later"> {
  const textClass = refusal.textClass === undefined ? classByText(refusal.text) : refusal.textClass;
  const coded = classByCode(refusal);
  if (textClass?.vague === true && coded !== null && namesMailbox(coded, refusal)) return coded;
  if (textClass?.unlessPolicy === true && coded?.category === "policy") return coded;
  return textClass ?? coded ?? classByReplyCode(refusal);
}

/** The beginning of each further line of a reply (RFC 5321 §4.2.1). It separates words that belong together. */
const CONTINUATION = /(?<=\S) [245]\d\d-(?:[245]\.\d{1,3}\.\d{1,3} )?/g;

/** An address. The name of a mailbox is no reason: "spam@example.org", "dmarc@reports.example.org". */
const ADDRESS =
  /(?<![\w.!#$%&*+/=?^{|}~-])[\w.!#$%&*+/=?^{|}~-]{1,254}@(?:[a-z\d-]{1,63}\.){1,8}[a-z\d-]{2,63}/gi;

/** The words "IP address": no address of a mailbox. */
const IP_ADDRESS = /\bip[- ]address\b/g;

/** Drops what the reporter wrote before the reply code. */
function afterCode(text: string, code: number): string {
  return text.slice(Math.max(0, text.lastIndexOf(String(code))));
}

/** Returns whether a reply without a known reason is about the client, its message or its settings. */
export function isAboutClient(text: string, code: number): boolean {
  return ABOUT_CLIENT.test(afterCode(plainText(text), code));
}

/** Returns the form that patterns match: short, in lower case, with single spaces and without addresses. */
export function plainText(text: string): string {
  return folded(text.slice(0, MAX_TEXT_CHARS))
    .replace(CONTINUATION, " ")
    .replace(ADDRESS, "a@a.a")
    .toLowerCase()
    .replace(IP_ADDRESS, "ip");
}

/** Returns the class of the words by themselves, or null if no pattern matches. */
export function classByText(text: string): TextClass | null {
  const plain = plainText(text);
  const group = textRules().find(({ patterns }) => patterns.some((pattern) => pattern.test(plain)));
  if (group === undefined) return null;
  const { patterns: _, ...textClass } = group;
  return textClass;
}

function classByCode({ enhanced }: Refusal): FinalClass | null {
  const detail = /^[245]\.(\d{1,3}\.\d{1,3})$/.exec(enhanced ?? "")?.[1];
  if (detail === undefined || GENERIC.test(detail)) return null;
  return CODE_RULES.find(([pattern]) => pattern.test(detail))?.[1] ?? null;
}

/**
 * Words about the client, its message or its settings. If a reply has such words and no known reason, it is not about
 * the mailbox.
 */
const ABOUT_CLIENT =
  /\b(?:senders?|sending|clients?|ip|envelope|dns|helo|ehlo|smtp|auth\w{0,20}|messages?|contents?|attachments?|connections?|listed|https?|tls|ssl|(?:un)?authori[sz]\w{0,10}|polic(?:y|ies)|restrict\w{0,5}|protect\w{0,5}|challenge|rules?|filter\w{0,5}|your (?:address|account|server|host|network|isp|provider|domain))\b|dmarc|dkim|\bspf|\brbl/i;

/**
 * Classifies by the reply code alone (RFC 5321 §4.2.3). 550, 551 and 553 to RCPT are about the mailbox, 552 is about
 * its room or the message's size. To any other command, a bare 5xx says nothing about the recipient.
 */
function classByReplyCode({ code, stage, text }: Refusal): FinalClass {
  if (stage === "rcpt" && (code === 550 || code === 551 || code === 553) && !isAboutClient(text, code))
    return { outcome: "hard", category: "recipient" };
  if (code !== null && [500, 501, 502, 503, 504, 555].includes(code))
    return { outcome: "failed", category: "protocol" };
  return { outcome: "failed", category: "other" };
}
