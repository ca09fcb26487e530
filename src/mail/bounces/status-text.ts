import { fieldOf } from "./arf.ts";
import { type HeaderBlock, headerBlock } from "../reading/header-block.ts";
import { isAnswer, isDeliveryReport } from "./notice-signs.ts";
import { noticeText } from "./notice-text.ts";
import type { ParsedMail } from "../reading/parse.ts";
import { MAX_STATUS_CHARS } from "./status-fields.ts";

/** How the fields of a report begin (RFC 3464 §2.2, §2.3). */
const BEGIN = /^(?:final-recipient|original-recipient|reporting-mta|original-envelope-id) ?:/im;
/** Without an action there is nothing reported (RFC 3464 §2.3.3). */
const ACTION = /^action ?: *(?:fail|delay|deliver|relay|expand)/im;

/**
 * The machine-readable fields of a report, one character an octet: those of its message/delivery-status parts (RFC 3464
 * §2, RFC 6533 §6), else of a part that servers gave another type, or of the text. "" where it has none.
 * @param told whether the mail is a notice by its words
 */
export function statusText(mail: ParsedMail, text: string, told: boolean): string {
  const report = isDeliveryReport(mail);
  // A person who forwards a report may forward its parts.
  const parts = isAnswer(mail) && !told && !report ? [] : typed(mail);
  if (parts.length > 0) return parts.join("\n\n");
  if (!told && !report) return "";
  return mistyped(mail) ?? wrapped(mail) ?? withinText(text);
}

function typed({ attachments }: ParsedMail): string[] {
  return attachments
    .filter(({ contentType }) => /^message\/(?:global-)?delivery-status$/.test(contentType))
    .map(({ bytes }) => asOctets(bytes));
}

function mistyped({ attachments }: ParsedMail): string | null {
  for (const { contentType, bytes } of attachments) {
    if (
      !/^(?:text\/(?!rfc822)|application\/octet-stream|message\/(?!rfc822|global$|partial))/.test(contentType)
    )
      continue;
    const fields = asOctets(bytes);
    if (BEGIN.test(fields) && ACTION.test(fields)) return fields;
  }
  return null;
}

/**
 * Gateways that add a text of theirs wrap the whole report, its header too. What came back is never that part: the report
 * has one subject, the mail it is about has another, and is no report.
 */
function wrapped(mail: ParsedMail): string | null {
  for (const { contentType, bytes } of mail.attachments) {
    if (contentType !== "message/rfc822") continue;
    const inner: HeaderBlock = headerBlock(bytes);
    if (!isDeliveryReport(inner) || fieldOf(inner, "subject") !== fieldOf(mail, "subject")) continue;
    const fields = withinText(asOctets(bytes));
    if (fields !== "") return fields;
  }
  return null;
}

function withinText(text: string): string {
  const begin = BEGIN.exec(text)?.index;
  if (begin === undefined || !ACTION.test(text)) return "";
  return Buffer.from(noticeText(text.slice(begin)), "utf8").toString("latin1");
}

function asOctets(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, MAX_STATUS_CHARS)).toString("latin1");
}
