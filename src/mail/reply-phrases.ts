import { AUTHENTICATION, BLOCKLISTS, SENDER_ADDRESS } from "./phrases-sender.ts";
import { CONTENT, SIZE } from "./phrases-content.ts";
import { LOOPS, POLICY, RELAYING, TROUBLE, WHOLE_SENTENCES } from "./phrases-delivery.ts";
import { DISABLED, FULL, NO_DOMAIN, NO_MAILBOX, TEMPORARY, UNAVAILABLE } from "./phrases-mailbox.ts";

/** Whom or what a refusal is about. */
export type ReplyCategory =
  | "recipient"
  | "mailbox_full"
  | "policy"
  | "reputation"
  | "content"
  | "infrastructure"
  | "protocol"
  | "other";

/**
 * A way of saying something, and who says it so. Matched against text in lower case with single spaces; every gap in
 * a pattern is bounded, so that each takes linear time whatever a hostile server sends.
 */
export type Phrase = readonly [pattern: RegExp, source: string];

/** Ways of saying the same. */
export interface PhraseGroup {
  outcome: "hard" | "soft" | "failed";
  category: ReplyCategory;
  /** Words of no reason, as "rejected": a code that names the mailbox is more specific. */
  vague?: true;
  phrases: readonly Phrase[];
}

/**
 * What servers say, the first group that has a match. Order is meaning: a complaint about the sender that quotes words
 * for an unknown user is about the sender, and a full mailbox that is "not found over quota" is full.
 */
export const TEXT_RULES: readonly PhraseGroup[] = [
  ...WHOLE_SENTENCES,
  AUTHENTICATION,
  SENDER_ADDRESS,
  LOOPS,
  FULL,
  SIZE,
  BLOCKLISTS,
  CONTENT,
  RELAYING,
  TEMPORARY,
  NO_MAILBOX,
  DISABLED,
  NO_DOMAIN,
  UNAVAILABLE,
  TROUBLE,
  POLICY,
];
