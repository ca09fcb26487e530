import type { Key } from "../../core/crypto/key-ring.ts";
import { createHash, timingSafeEqual } from "node:crypto";
import type { RelayProviderName } from "../../core/messages/relay-providers.ts";
import { firstValue, rawFields } from "../reading/raw-headers.ts";
import { mailgunToken, readMailgun } from "./mailgun.ts";
import { postmarkFields, readPostmark } from "./postmark.ts";
import { type GetDocument, idOfMessageId, type RelayEvent, type RelayRequest } from "./relay-events.ts";
import { isSignedBySendgrid, readSendgrid, sendgridFields, sendgridKey } from "./sendgrid.ts";
import { confirmationUrl, idInReply, isSignedBySns, isTopicArn, readSes } from "./ses.ts";

/** The field that proves a provider's events. */
export type ProofField = "topicArn" | "secret" | "signingKey" | "publicKey";

/** How a provider's events are proven and read, and how they name a message of ours. */
export interface RelayProvider {
  proof: ProofField;
  /** Returns whether a text can be its proof. */
  isProof: (text: string) => boolean;
  /** The form of the proof, in words. */
  form: string;
  /** Returns whether the provider sent a request. */
  isProven: (request: RelayRequest, proof: string, get: GetDocument) => boolean | Promise<boolean>;
  /** Returns what a request with the same signature must not differ in; null: the signature is over all of it. */
  replayKey: ((request: RelayRequest, proof: string) => string | null) | null;
  /** Returns the URL to get, so that the provider begins to send events; null: there is none. */
  confirmation: (body: unknown, proof: string) => string | null;
  /** @param key key of the ids that the provider gives back */
  read: (body: unknown, key: Key) => RelayEvent[];
  /** Header fields that go before a message with that id. */
  fields: (relayId: string, key: Key) => string[];
  /** Returns the id by which events name a message. @param reply the relay's reply to its content */
  relayId: (raw: Uint8Array, reply: string) => string | null;
}

/** Secrets in URLs: long enough that nobody guesses them, and plain in a query. */
const SECRET = /^[\w-]{24,128}$/;
const SIGNING_KEY = /^[\x21-\x7e]{16,128}$/;

const ofMessageId = (raw: Uint8Array) => idOfMessageId(firstValue(rawFields(raw), "message-id"));
const nothing = () => null;

export const RELAYS: Readonly<Record<RelayProviderName, RelayProvider>> = {
  ses: {
    proof: "topicArn",
    isProof: isTopicArn,
    form: "the ARN of an SNS topic, such as arn:aws:sns:eu-west-1:123456789012:mail",
    isProven: isSignedBySns,
    replayKey: null,
    confirmation: confirmationUrl,
    read: readSes,
    fields: () => [],
    relayId: (_, reply) => idInReply(reply),
  },
  postmark: {
    proof: "secret",
    isProof: (text) => SECRET.test(text),
    form: "24 to 128 letters, digits, _ and -",
    isProven: ({ secret }, proof) => secret !== null && isSame(secret, proof),
    replayKey: null,
    confirmation: nothing,
    read: readPostmark,
    fields: postmarkFields,
    relayId: ofMessageId,
  },
  mailgun: {
    proof: "signingKey",
    isProof: (text) => SIGNING_KEY.test(text),
    form: "the HTTP webhook signing key of the Mailgun account",
    isProven: (request, proof) => mailgunToken(request, proof) !== null,
    replayKey: mailgunToken,
    confirmation: nothing,
    read: readMailgun,
    fields: () => [],
    relayId: ofMessageId,
  },
  sendgrid: {
    proof: "publicKey",
    isProof: (text) => sendgridKey(text) !== null,
    form: "the verification key that SendGrid shows, base64",
    isProven: isSignedBySendgrid,
    replayKey: null,
    confirmation: nothing,
    read: readSendgrid,
    fields: sendgridFields,
    relayId: ofMessageId,
  },
};

/** Compares in constant time. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

/** Returns a message with the provider's fields before it, but for those that it has already. */
export function withRelayFields(provider: RelayProvider, raw: Buffer, key: Key): Buffer {
  const id = provider.relayId(raw, "");
  const fields = id === null ? [] : provider.fields(id, key);
  if (fields.length === 0) return raw;
  const present = new Set(rawFields(raw).map(({ name }) => name));
  const added = fields.filter((field) => !present.has(field.slice(0, field.indexOf(":")).toLowerCase()));
  return Buffer.concat([Buffer.from(added.map((field) => `${field}\r\n`).join("")), raw]);
}
