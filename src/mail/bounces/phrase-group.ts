/** Whom or what a refusal is about. */
export type ReplyCategory =
  | "recipient"
  | "mailbox-full"
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
  /** Words for a mailbox that is not there and for a rule alike: a code of policy decides. */
  unlessPolicy?: true;
  phrases: readonly Phrase[];
}
