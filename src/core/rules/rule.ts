import type { Trust } from "../messages/sender.ts";

/** The conditions of a rule. A rule without any matches every message. */
export interface RuleWhen {
  /** The address in From. A string matches within the value, or at its end if it begins with `*`; case does not count. */
  from?: string | undefined;
  /** An address in To or Cc, or a recipient of the transaction. */
  to?: string | undefined;
  subject?: string | undefined;
  header?: { name: string; value?: string | undefined } | undefined;
  hasAttachment?: boolean | undefined;
  /** Bytes. */
  largerThan?: number | undefined;
  /** Whether DMARC passes: the author in From is proven. */
  auth?: "pass" | "fail" | undefined;
  /** How far the sender is trusted. */
  trust?: Trust | undefined;
  /** A message without a verdict has no score, and does not match. */
  spamScoreAbove?: number | undefined;
}

/** Folders that a rule can put a conversation into. `inbox` keeps it out of spam, whatever the spam filter says. */
export const RULE_FOLDERS = ["inbox", "spam", "trash"] as const;

/** The actions of a rule. */
export interface RuleThen {
  /** Labels that the conversation gets in addition. */
  labels?: string[] | undefined;
  /** The member who gets the conversation, unless it has one. */
  assigneeId?: string | undefined;
  folder?: (typeof RULE_FOLDERS)[number] | undefined;
  /** Id or slug of the template that answers the message. */
  replyTemplateId?: string | undefined;
  /** The confirmed address that gets a copy of the message as it came. */
  forwardTo?: string | undefined;
  archive?: boolean | undefined;
  markRead?: boolean | undefined;
  /** Refuses the message with this text, before it is accepted. */
  reject?: string | undefined;
  /** Accepts the message and keeps only its header. */
  drop?: boolean | undefined;
  /** Skips all later rules. */
  stop?: boolean | undefined;
}

/** The part of a rule that applies to a message. */
export interface AskedRule {
  id: string;
  name: string;
  /** Null: every inbox of the project. */
  inboxId: string | null;
  when: RuleWhen;
  then: RuleThen;
}

/** The facts about a message that rules read. */
export interface RuleMail {
  from: string;
  to: readonly string[];
  subject: string;
  /** By name in lower case; only the first field of a name. */
  headers: Readonly<Record<string, string>>;
  hasAttachment: boolean;
  /** Bytes. */
  size: number;
  authenticated: boolean;
  /** Null if it is unknown. */
  trust: Trust | null;
  /** Null without a verdict. */
  spamScore: number | null;
  /** The spam filter takes it for spam. */
  isSpam: boolean;
  /** Reverse-path; "" is the null one. */
  mailFrom: string;
  /** Address of the inbox that it came to. */
  inboxAddress: string;
  /** Number of Received fields that it came with. */
  receivedFields: number;
}

/** Maximum characters of a value that patterns read: 200 rules read each value, on the thread that takes all mail. */
export const MAX_COMPARED_CHARS = 1000;
/** Maximum number of recipients that patterns read; those of the transaction come first. */
export const MAX_COMPARED_ADDRESSES = 200;
/** Maximum number of rules of a project. */
export const MAX_RULES = 200;
/** Maximum characters of a string in a rule's conditions. */
export const MAX_PATTERN_CHARS = 200;
/** Maximum characters of a reply's text, so that its line has at most 512 octets (RFC 5321 §4.5.3.1.5). */
export const MAX_REJECT_CHARS = 200;

/** Largest position of a rule among those of its project. */
export const MAX_POSITION = 1_000_000_000;
