import { firstChars } from "../../core/text.ts";
import { MAX_SUBJECT_CHARS } from "../../core/messages/send-item.ts";

/** Reply prefixes of mail programs in several languages. */
const REPLY_PREFIXES = [
  "re",
  "rép",
  "res",
  "rif",
  "aw",
  "antw",
  "antwort",
  "sv",
  "vs",
  "odp",
  "odg",
  "ynt",
  "vá",
  "απ",
  "ответ",
  "відп",
  "השב",
  "رد",
  "回复",
  "回覆",
  "答复",
  "答覆",
  "返信",
  "회신",
  "답장",
];

/**
 * Matches any number of prefixes, also counted ones such as `Re[2]:` or `Re^2:`. East Asian programs write a full-width
 * colon.
 */
const LEADING_PREFIXES = new RegExp(
  `^(?:\\s*(?:${REPLY_PREFIXES.join("|")})(?:\\[\\d{1,4}\\]|\\(\\d{1,4}\\)|\\^\\d{1,4})?\\s?[:：])+`,
  "iu",
);

/**
 * Returns the subject of a reply: one `Re: ` before the original subject, in place of its prefixes (RFC 5322 §3.6.5).
 */
export function replySubject(subject: string): string {
  const bare = subject.replace(LEADING_PREFIXES, "").trim();
  return firstChars(`Re: ${bare}`, MAX_SUBJECT_CHARS).trimEnd();
}
