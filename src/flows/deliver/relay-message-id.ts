import { idInReply } from "../../mail/relays/ses.ts";
import type { DeliveryReport } from "./outcome.ts";

/** The hosts of Amazon SES that take mail by SMTP. */
const SES_HOST = /^email-smtp(?:-fips)?\.([a-z\d-]{1,40})\.amazonaws\.com(?:\.cn)?$/i;
/** The region whose name is not in the Message-ID. */
const FIRST_REGION = "us-east-1";

/**
 * Returns the Message-ID that a relay has given a message in place of ours; null if it keeps ours. Amazon SES replaces it by
 * one made of the id in its reply, so the recipients' answers name that one.
 */
export function relayMessageId(report: DeliveryReport): string | null {
  if (report.kind !== "accepted") return null;
  const [, region] = SES_HOST.exec(report.mx ?? "") ?? [];
  const id = idInReply(report.reply.text);
  if (region === undefined || id === null) return null;
  return `<${id}@${region.toLowerCase() === FIRST_REGION ? "email" : region.toLowerCase()}.amazonses.com>`;
}
