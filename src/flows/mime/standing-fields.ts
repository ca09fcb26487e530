import { createHash } from "node:crypto";
import { type Mailbox, splitAddress } from "../../core/addresses.ts";
import type { Stream } from "../../core/messages/send-item.ts";
import { complaintAddress } from "../../core/own-names.ts";
import { recipientToken } from "./recipient-token.ts";

/** Hexadecimal digits of the last part of Feedback-ID. Gmail takes 5 to 15 characters. */
const SENDER_DIGITS = 12;

export interface StandingKeys {
  /** Domain of our Message-IDs and of the address for complaints. */
  serviceDomain: string;
  /** Authenticates the tokens in return paths and complaints. */
  verpKey: Uint8Array;
}

/** The facts of a message that its standing fields are made of. */
export interface StandingFacts {
  id: string;
  /** Number of the recipient. Null: the copy is only shown. */
  ord: number | null;
  senderId: string;
  stream: Stream;
  from: Mailbox;
  unsubscribeLink: boolean;
  /** The signatures that will be made. */
  signers: readonly { domain: string }[];
}

/**
 * Returns the fields by which providers tell one kind of mail from another, for messages whose author gave none. Gmail counts complaints by
 * Feedback-ID: project, stream, and last the service. List-Id (RFC 2919) goes with one-click unsubscribing.
 */
export function standingFields(keys: StandingKeys, facts: StandingFacts): [name: string, value: string][] {
  return [...feedbackFields(keys, facts), ...complaintFields(keys, facts)];
}

function feedbackFields(
  { serviceDomain }: StandingKeys,
  { senderId, stream, from, unsubscribeLink }: StandingFacts,
): [name: string, value: string][] {
  const service = createHash("sha256").update(serviceDomain).digest("hex").slice(0, SENDER_DIGITS);
  const feedbackId: [string, string] = ["Feedback-ID", `${senderId}:${stream}:${service}`];
  const domain = splitAddress(from.email)?.domain;
  if (!unsubscribeLink || domain === undefined) return [feedbackId];
  return [feedbackId, ["List-Id", `<${senderId.replace("_", "-")}.${domain}>`]];
}

/**
 * Returns the fields that ask for complaints without enrolment. Providers report only to a domain that has signed them (RFC 9477 §3.1),
 * so they need the service's signature.
 */
function complaintFields(
  { serviceDomain, verpKey }: StandingKeys,
  { id, ord, signers }: StandingFacts,
): [name: string, value: string][] {
  if (!signers.some(({ domain }) => domain === serviceDomain)) return [];
  const token = ord === null ? id : recipientToken(verpKey, { messageId: id, ord });
  return [
    ["CFBL-Address", `${complaintAddress(serviceDomain)}; report=arf`],
    ["CFBL-Feedback-ID", token],
  ];
}
