import { type Extracts as MailExtracts, extractsOf } from "../../mail/text/extracts.ts";
import { onboardingDomain } from "../../core/own-names.ts";
import type { MessageRecord } from "./record.ts";

/** The links and codes of a message. */
export type Extracts = MailExtracts;

export interface ExtractRules {
  serviceDomain: string;
  /** True if this service captures all mail that it sends. */
  captures: boolean;
}

/**
 * Returns the links and codes of a message that was received, captured or sent in test mode. Null for other mail,
 * which goes to people.
 */
export function extractsIn(
  { message, content, recipients }: MessageRecord,
  { serviceDomain, captures }: ExtractRules,
): Extracts | null {
  const { direction, testMode, subject, from } = message;
  const isTest = testMode || from.email.toLowerCase().endsWith(`@${onboardingDomain(serviceDomain)}`);
  const isShown =
    direction === "inbound" || isTest || captures || recipients.some(({ mx }) => mx === "capture");
  return isShown ? extractsOf({ subject, html: content.html, text: content.text }) : null;
}
