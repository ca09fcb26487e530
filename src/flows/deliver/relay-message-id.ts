import type { DeliveryReport } from "./outcome.ts";

/** The hosts of Amazon SES that take mail by SMTP. */
const SES_HOST = /^email-smtp(?:-fips)?\.([a-z\d-]{1,40})\.amazonaws\.com(?:\.cn)?$/i;
/** Its reply to a message: `Ok 0102018f5e6a7b3c-1a2b…-000000`. */
const SES_REPLY = /^ok ([\da-f]{10,40}-[\da-f-]{10,80})$/i;
/** The region whose name is not in the Message-ID. */
const FIRST_REGION = "us-east-1";

/**
 * Returns the Message-ID that a relay has given a message in place of ours; null if it keeps ours. Amazon SES replaces it by
 * one made of the id in its reply, so the recipients' answers name that one.
 */
export function relayMessageId(report: DeliveryReport): string | null {
  if (report.kind !== "accepted") return null;
  const [, region] = SES_HOST.exec(report.mx ?? "") ?? [];
  const [, id] = SES_REPLY.exec(report.reply.text) ?? [];
  if (region === undefined || id === undefined) return null;
  return `<${id}@${region.toLowerCase() === FIRST_REGION ? "email" : region.toLowerCase()}.amazonses.com>`;
}
