import { type Key, makingKey, opened } from "../../core/crypto/key-ring.ts";
import { createHash, createHmac } from "node:crypto";
import type { ReplyOutcome } from "../bounces/reply-class.ts";

/** What a relay says about one recipient of a message that we gave it. */
export interface RelayEvent {
  kind: "delivered" | "deferred" | "bounced" | "complained";
  /** The id by which the relay's events name the message, as its attempt has it. */
  relayId: string;
  email: string;
  /** The meaning of a bounce in the relay's words. Null: the diagnostic decides. */
  outcome: Exclude<ReplyOutcome, "deferred"> | null;
  /** The reply of the recipient's server, or the relay's reason. */
  diagnostic: string | null;
  /** The recipient's server. */
  mx: string | null;
  /** RFC 5965 type of a complaint. */
  feedbackType: string;
}

/** A request that says it comes from a relay. */
export interface RelayRequest {
  /** The body as it came, which signatures are over. */
  bytes: Uint8Array;
  body: unknown;
  header: (name: string) => string | null;
  /** The secret in the query. */
  secret: string | null;
  /** Milliseconds. */
  now: number;
}

/** Gets a document of another host, within limits of size and time. Null if it cannot be had. */
export type GetDocument = (url: string) => Promise<Uint8Array | null>;

/** The object that a value is; an empty one if it is none. */
export type Fields = Readonly<Record<string, unknown>>;

const NONE: Fields = {};
/** Maximum characters of a string that is kept. */
const MAX_CHARS = 2000;

/** Returns a value as an object. */
export function fieldsIn(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : NONE;
}

/** Returns a value as a list. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns a value as a string, cut to what is kept; null for any other. Numbers are written out. */
export function textIn(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value.slice(0, MAX_CHARS).toWellFormed() : null;
}

/** Returns an event; null unless it names a message and a recipient. */
export function relayEvent(
  kind: RelayEvent["kind"],
  relayId: string | null,
  email: unknown,
  more: Partial<RelayEvent> = {},
): RelayEvent[] {
  const address = textIn(email);
  if (relayId === null || address === null) return [];
  const none = { outcome: null, diagnostic: null, mx: null, feedbackType: "abuse" };
  return [{ ...none, ...more, kind, relayId, email: address }];
}

/** Hexadecimal characters of the hash that stands for a Message-ID, and of the proof that we have made it. */
const HASH_CHARS = 32;
const PROOF_CHARS = 16;

/** Returns the id of a message whose relay keeps our Message-ID. */
export function idOfMessageId(messageId: unknown): string | null {
  const plain = typeof messageId === "string" ? messageId.trim().replace(/^<|>$/g, "") : "";
  return plain === "" ? null : createHash("sha256").update(plain).digest("hex").slice(0, HASH_CHARS);
}

/**
 * Returns an id as a relay gets it to give it back. Senders may write header fields of their own, so without the proof one
 * could have the events of its mail count for another's.
 */
export function provenId(relayId: string, key: Key): string {
  const proof = createHmac("sha256", makingKey(key))
    .update(`relay:${relayId}`)
    .digest("hex")
    .slice(0, PROOF_CHARS);
  return `${relayId}.${proof}`;
}

/** Returns the id in what a relay gives back; null unless we have made it. */
export function givenBack(value: unknown, key: Key): string | null {
  const [, id = null] = /^([0-9a-f]{32})\.[0-9a-f]{16}$/.exec(typeof value === "string" ? value : "") ?? [];
  return id === null ? null : opened(key, (one) => (provenId(id, one) === value ? id : null));
}
