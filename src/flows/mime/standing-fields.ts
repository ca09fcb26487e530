import { createHash } from "node:crypto";
import { type Mailbox, splitAddress } from "../../core/addresses.ts";
import type { Stream } from "../../core/messages/send-item.ts";

/** Hexadecimal digits of the last part of Feedback-ID. Gmail takes 5 to 15 characters. */
const SENDER_DIGITS = 12;

/** The facts of a message that its standing fields are made of. */
export interface StandingFacts {
  senderId: string;
  stream: Stream;
  from: Mailbox;
  unsubscribeLink: boolean;
}

/**
 * Returns the fields by which providers tell one kind of mail from another, for messages whose author gave none. Gmail counts complaints by
 * Feedback-ID: project, stream, and last the service. List-Id (RFC 2919) goes with one-click unsubscribing.
 */
export function standingFields(
  { serviceDomain }: { serviceDomain: string },
  { senderId, stream, from, unsubscribeLink }: StandingFacts,
): [name: string, value: string][] {
  const service = createHash("sha256").update(serviceDomain).digest("hex").slice(0, SENDER_DIGITS);
  const feedbackId: [string, string] = ["Feedback-ID", `${senderId}:${stream}:${service}`];
  const domain = splitAddress(from.email)?.domain;
  if (!unsubscribeLink || domain === undefined) return [feedbackId];
  return [feedbackId, ["List-Id", `<${senderId.replace("_", "-")}.${domain}>`]];
}
