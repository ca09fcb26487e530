import { firstChars } from "../../core/text.ts";
import { fieldOf } from "./arf.ts";
import { folded, peerReply, readDiagnostic } from "./diagnostic.ts";
import type { ParsedMail } from "../reading/parse.ts";
import {
  classOf,
  MAX_DIAGNOSTIC_CHARS,
  type Notice,
  type ReportedRecipient,
  classifiedText,
} from "./reported.ts";
import { addressOf, MAX_REPORT_RECIPIENTS } from "./status-fields.ts";

/** Returns the recipients of a plain-text notice: those of X-Failed-Recipients, else those in the text. */
export function fromNotice(mail: ParsedMail, notice: Notice): ReportedRecipient[] {
  const header = (fieldOf(mail, "x-failed-recipients") ?? "")
    .split(",")
    .flatMap((part) => addressOf(part) ?? []);
  if (header.length > 0)
    return header.slice(0, MAX_REPORT_RECIPIENTS).map((address) => {
      const named = notice.named.find(
        (candidate) => candidate.address.toLowerCase() === address.toLowerCase(),
      );
      return fromReason(named?.expandedFrom ?? address, address, named?.reason ?? notice.text, notice);
    });
  if (notice.named.length > 0)
    return notice.named.map(({ address, expandedFrom, reason }) =>
      fromReason(expandedFrom ?? address, address, reason, notice),
    );
  return [fromReason(notice.originalTo, notice.originalTo, notice.text, notice)];
}

function fromReason(
  recipient: string | null,
  finalRecipient: string | null,
  reason: string,
  notice: Notice,
): ReportedRecipient {
  const classified = classifiedText([peerReply(reason), reason], notice);
  const read = readDiagnostic(classified.text);
  const action =
    isWarning(notice) || (DELAYED.test(`${notice.subject} ${notice.text}`) && !FINAL.test(notice.text))
      ? "delayed"
      : "failed";
  return {
    recipient,
    finalRecipient,
    action,
    ...classOf(action, { ...read, stage: read.stage ?? readDiagnostic(reason).stage, ...classified }),
    status: read.enhanced,
    smtpCode: read.code,
    diagnosticCode: firstChars(folded(reason), MAX_DIAGNOSTIC_CHARS) || null,
    remoteMta: null,
  };
}

/** Returns whether a notice says that it is only a warning (Postfix, Sendmail, Exchange, MDaemon, Exim). */
function isWarning({ text }: Notice): boolean {
  return /warning (?:message )?only|(?:do not|don'?t) need to resend|will be retried (?:until|for)|has not yet been delivered|still awaiting delivery|will continue (?:trying|to (?:try|attempt))|delivery attempts will continue|no action is required on your part|delivery incomplete|will retry for|will keep trying|will continue to be attempted|(?:just|only) a warning|delay reason:/i.test(
    text,
  );
}

/** Words of a warning that a message still waits, and words that make such a notice final. */
const DELAYED =
  /\b(?:delayed|delay reason|warning[: ]|still trying|will (?:be|keep) (?:re)?try|not yet been delivered|delivery attempts will continue)/i;
const FINAL =
  /permanent(?:ly)? |given up|giving up|gave up|could not be delivered|failed|no such user|user unknown|unknown user/i;
