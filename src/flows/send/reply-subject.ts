import { firstChars } from "../../core/first-chars.ts";
import { MAX_SUBJECT_CHARS } from "../../core/send-item.ts";

/** What mail programs of several languages put before the subject of an answer. */
const REPLY_PREFIXES = [
  ...["re", "rép", "res", "rif", "aw", "antw", "antwort", "sv", "vs", "odp", "odg", "ynt", "vá"],
  ...["απ", "ответ", "відп", "השב", "رد", "回复", "回覆", "答复", "答覆", "返信", "회신", "답장"],
];

/** Any number of them, some counted as in `Re[2]:` or `Re^2:`; East Asian programs write a full-width colon. */
const LEADING_PREFIXES = new RegExp(
  `^(?:\\s*(?:${REPLY_PREFIXES.join("|")})(?:\\[\\d{1,4}\\]|\\(\\d{1,4}\\)|\\^\\d{1,4})?\\s?[:：])+`,
  "iu",
);

/** The subject of an answer: one `Re: ` before what was answered (RFC 5322 §3.6.5), whatever stood there before. */
export function replySubject(subject: string): string {
  const bare = subject.replace(LEADING_PREFIXES, "").trim();
  return firstChars(`Re: ${bare}`, MAX_SUBJECT_CHARS).trimEnd();
}
