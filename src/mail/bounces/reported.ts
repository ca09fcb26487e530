import { readDiagnostic } from "./diagnostic.ts";
import type { NoticeRecipient } from "./notice-text.ts";
import {
  classByText,
  classifyGivenUp,
  type Refusal,
  type ReplyClass,
  type TextClass,
} from "./reply-class.ts";

/** The part of a report about one recipient. */
export interface ReportedRecipient extends Pick<ReplyClass, "category"> {
  /** The address that the message was sent to, as the report names it; null if it names none. */
  recipient: string | null;
  /** The last address the message reached, as an alias may send it on. */
  finalRecipient: string | null;
  action: "failed" | "delayed" | "delivered" | "relayed" | "expanded";
  /** The meaning; null for an action that is no failure. */
  outcome: ReplyClass["outcome"] | null;
  /** RFC 3463 code: the peer's own, else the reporter's. */
  status: string | null;
  smtpCode: number | null;
  diagnosticCode: string | null;
  remoteMta: string | null;
}

/** Maximum characters of a diagnostic that are kept. */
export const MAX_DIAGNOSTIC_CHARS = 2000;

/** The text of a report for people. */
export interface Notice {
  text: string;
  subject: string;
  /** The class of the text and the subject together. */
  classified: ClassifiedText;
  named: readonly NoticeRecipient[];
  /** The only recipient of the returned message, if it has just one. */
  originalTo: string | null;
}

export interface ClassifiedText {
  text: string;
  textClass: TextClass | null;
}

/** Returns the first text that has a class, else the first text without one. */
export function firstClassified(texts: readonly string[]): ClassifiedText {
  for (const text of new Set(texts)) {
    const textClass = classByText(text);
    if (textClass !== null) return { text, textClass };
  }
  return { text: texts[0] ?? "", textClass: null };
}

/** Returns the class of the text about one recipient, else of the whole notice. */
export function classifiedText(texts: readonly string[], notice: Notice): ClassifiedText {
  const own = firstClassified(texts);
  const [peer = ""] = texts;
  // "It was rejected" in the reporter's words says less than the peer's own code.
  if (own.textClass?.vague === true && own.text !== peer && readDiagnostic(peer).code !== null)
    return { text: peer, textClass: null };
  return own.textClass === null && notice.classified.textClass !== null ? notice.classified : own;
}

/** Returns the meaning of a refusal for its recipient, if the action is a failure. */
export function classOf(
  action: ReportedRecipient["action"],
  refusal: Refusal,
): Pick<ReportedRecipient, "outcome" | "category"> {
  if (action === "failed") return classifyGivenUp(refusal);
  return { category: classifyGivenUp(refusal).category, outcome: action === "delayed" ? "deferred" : null };
}
