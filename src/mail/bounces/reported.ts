import type { NoticeRecipient } from "./notice-text.ts";
import {
  classByText,
  classifyGivenUp,
  type Refusal,
  type ReplyClass,
  type TextClass,
} from "./reply-class.ts";

/** What a report says of one recipient. */
export interface ReportedRecipient extends Pick<ReplyClass, "category"> {
  /** Whom the mail was for, as the report names it; null where it names none. */
  recipient: string | null;
  /** Where the mail had got to, as an alias may send it elsewhere. */
  finalRecipient: string | null;
  action: "failed" | "delayed" | "delivered" | "relayed" | "expanded";
  /** What it means; null for an action that is no trouble. */
  outcome: ReplyClass["outcome"] | null;
  /** RFC 3463 code, the peer's own before the reporter's. */
  status: string | null;
  smtpCode: number | null;
  diagnosticCode: string | null;
  remoteMta: string | null;
}

/** Characters of a diagnostic that are kept. */
export const MAX_DIAGNOSTIC_CHARS = 2000;

/** What a report says to people. */
export interface Notice {
  words: string;
  subject: string;
  /** What the words and the subject tell, taken together. */
  told: Told;
  named: readonly NoticeRecipient[];
  /** The one recipient of the mail that came back, of its part or where it stands below the notice in the same text. */
  originalTo: string | null;
}

/** A text, and what it tells. */
export interface Told {
  text: string;
  told: TextClass | null;
}

/** The first text that tells a class; the first of all where none does. */
export function toldBy(texts: readonly string[]): Told {
  for (const text of new Set(texts)) {
    const told = classByText(text);
    if (told !== null) return { text, told };
  }
  return { text: texts[0] ?? "", told: null };
}

/** What the words about one recipient tell, before what all of the notice does. */
export function tellingText(texts: readonly string[], notice: Notice): Told {
  const own = toldBy(texts);
  return own.told === null && notice.told.told !== null ? notice.told : own;
}

/** What a refusal means for its recipient, where the action makes it one. */
export function classOf(
  action: ReportedRecipient["action"],
  refusal: Refusal,
): Pick<ReportedRecipient, "outcome" | "category"> {
  if (action === "failed") return classifyGivenUp(refusal);
  return { category: classifyGivenUp(refusal).category, outcome: action === "delayed" ? "deferred" : null };
}
