/** The subject of a refusal. */
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
 * A pattern, and the servers that use such words. It is matched against lower-case text with single spaces. Every gap
 * is bounded, so a match takes linear time whatever a hostile server sends.
 */
export type Phrase = readonly [pattern: RegExp, source: string];

/** Patterns with one meaning. */
export interface PhraseGroup {
  outcome: "hard" | "soft" | "failed";
  category: ReplyCategory;
  /** Set if the words name no reason, such as "rejected": a code that names the mailbox is more specific. */
  vague?: true;
  /** Set if the words fit both a missing mailbox and a rule: then a policy code decides. */
  unlessPolicy?: true;
  phrases: readonly Phrase[];
}
