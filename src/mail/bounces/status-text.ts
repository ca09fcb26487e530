import { fieldOf } from "./arf.ts";
import { type HeaderBlock, headerBlock } from "../reading/header-block.ts";
import { isAnswer, isDeliveryReport } from "./notice-signs.ts";
import { noticeText } from "./notice-text.ts";
import type { ParsedMail } from "../reading/parse.ts";
import { MAX_STATUS_CHARS } from "./status-fields.ts";

/** The fields that begin a report (RFC 3464 §2.2, §2.3). */
const BEGIN = /^(?:final-recipient|original-recipient|reporting-mta|original-envelope-id) ?:/im;
/** The field without which a report reports nothing (RFC 3464 §2.3.3). */
const ACTION = /^action ?: *(?:fail|delay|deliver|relay|expand)/im;

/**
 * Returns the machine-readable fields of a report, one character an octet. They are in its message/delivery-status
 * parts (RFC 3464 §2, RFC 6533 §6), else in a part of another type, or in the text. Returns "" if there are none.
 * @param notice whether the message is a notice by its text
 */
export function statusText(mail: ParsedMail, text: string, notice: boolean): string {
  const report = isDeliveryReport(mail);
  // A person who forwards a report may forward its parts.
  const parts = isAnswer(mail) && !notice && !report ? [] : typed(mail);
  if (parts.length > 0) return parts.join("\n\n");
  if (!notice && !report) return "";
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
 * Returns the fields of a report that a gateway wrapped whole, header included. Such a part has the subject of the
 * report. A returned message has its own subject, and is no report.
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
