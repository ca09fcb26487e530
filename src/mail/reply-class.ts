import { type ReplyCategory, TEXT_RULES } from "./reply-phrases.ts";

/**
 * What a refusal means for its recipient. `hard`: the mailbox or domain takes no mail, now or later. `soft`: it exists
 * and could not take this one in the time given. `failed`: the mail or its sender was not wanted, which says nothing
 * of the recipient. `deferred`: to be tried again.
 */
export type ReplyOutcome = "hard" | "soft" | "failed" | "deferred";

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
  /** The command that was refused: `connect`, `ehlo`, `mail`, `rcpt`, `data`, `final`; null where not known. */
  stage?: string | null;
}

type FinalClass = { outcome: Exclude<ReplyOutcome, "deferred">; category: ReplyCategory };

/** Characters of a reply's text that are read. */
const MAX_TEXT_CHARS = 4096;

/**
 * Classes by subject and detail of the enhanced code (RFC 3463 §3, RFC 5248, RFC 7372, RFC 7504, RFC 7505), the first
 * row that matches. The first digit is not part of it: the same detail is deferred as 4, final as 5.
 */
const CODE_RULES: readonly (readonly [pattern: RegExp, result: FinalClass, source: string])[] = [
  [
    /^1\.(?:7|8|9)$/,
    { outcome: "failed", category: "policy" },
    "RFC 3463 X.1.7 and X.1.8, RFC 7505 X.1.9: the sender's address",
  ],
  [
    /^1\.(?:[1-46]|10)$/,
    { outcome: "hard", category: "recipient" },
    "RFC 3463 X.1.1 to X.1.4 and X.1.6, RFC 7505 X.1.10: no such mailbox or domain",
  ],
  [/^1\./, { outcome: "hard", category: "recipient" }, "RFC 3463 X.1: the address"],
  [/^2\.1$/, { outcome: "hard", category: "recipient" }, "RFC 3463 X.2.1: mailbox disabled"],
  [/^2\.2$/, { outcome: "soft", category: "mailbox_full" }, "RFC 3463 X.2.2: mailbox full"],
  [/^2\.3$/, { outcome: "failed", category: "content" }, "RFC 3463 X.2.3: message over the mailbox's limit"],
  [/^2\./, { outcome: "failed", category: "other" }, "RFC 3463 X.2: other mailbox trouble"],
  [/^3\.4$/, { outcome: "failed", category: "content" }, "RFC 3463 X.3.4: message too big"],
  [/^3\./, { outcome: "failed", category: "infrastructure" }, "RFC 3463 X.3: the mail system"],
  [/^4\.7$/, { outcome: "soft", category: "infrastructure" }, "RFC 3463 X.4.7: delivery time expired"],
  [/^4\./, { outcome: "failed", category: "infrastructure" }, "RFC 3463 X.4: network and routing"],
  [/^5\./, { outcome: "failed", category: "protocol" }, "RFC 3463 X.5: the protocol"],
  [/^6\./, { outcome: "failed", category: "content" }, "RFC 3463 X.6: content or media"],
  [
    /^7\.(?:2[0-7])$/,
    { outcome: "failed", category: "reputation" },
    "RFC 7372: DKIM, SPF, reverse DNS, and several of them",
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
  const found = classifyFinal(refusal);
  return isTransient(refusal) ? { outcome: "deferred", category: found.category } : found;
}

/**
 * Reads a refusal that somebody made final, as a DSN does: what was transient for the peer is a soft bounce, except
 * where the text says that there is no such mailbox or domain.
 */
export function classifyGivenUp(refusal: Refusal): FinalClass {
  const found = classifyFinal(refusal);
  return isTransient(refusal) && found.outcome === "failed" ? { ...found, outcome: "soft" } : found;
}

function isTransient({ code, enhanced }: Refusal): boolean {
  if (code !== null) return code >= 400 && code < 500;
  return enhanced?.startsWith("4.") ?? false;
}

/** Stages at which the peer has not heard of the recipient yet: whatever is unknown to it then, it is not the mailbox. */
const BEFORE_RECIPIENT: ReadonlySet<string> = new Set(["connect", "ehlo", "mail"]);

function classifyFinal(refusal: Refusal): FinalClass {
  const found = byEvidence(refusal);
  if (found.category === "recipient" && BEFORE_RECIPIENT.has(refusal.stage ?? ""))
    return { outcome: "failed", category: "policy" };
  // "Try again later" behind a 5xx is still a final no, and none about the mailbox.
  const refused = refusal.code !== null && refusal.code >= 500;
  return refused && found.category === "infrastructure" ? { ...found, outcome: "failed" } : found;
}

function byEvidence(refusal: Refusal): FinalClass {
  return classByText(refusal.text) ?? classByCode(refusal) ?? classByReplyCode(refusal);
}

/** The class that a text tells by itself; null where it tells none. */
export function classByText(text: string): FinalClass | null {
  const plain = text.slice(0, MAX_TEXT_CHARS).replace(/\s+/g, " ").toLowerCase();
  for (const { pattern, outcome, category } of TEXT_RULES)
    if (pattern.test(plain)) return { outcome, category };
  return null;
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
