import type { HostSecurity } from "../../core/tls-policy.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { omittedLinesNotice, MAX_TRANSCRIPT_LINES } from "../../core/text.ts";

/** Step of a delivery. `final` is the reply to the message content. */
export type Stage = "connect" | "ehlo" | "starttls" | "auth" | "mail" | "rcpt" | "data" | "final";

/** Result of talking to a peer. */
export type PeerResult =
  /** The peer replied. `final` with 2xx means that it has the message; any other reply that it has not. */
  | { kind: "reply"; stage: Stage; code: number; enhanced: string | null; text: string }
  /**
   * Nothing was sent, because the peer cannot take this message: it is over SIZE, or needs 8-bit content or SMTPUTF8.
   * `code` and `enhanced` are what a peer would have replied. Another attempt would not help.
   */
  | { kind: "unsendable"; stage: "mail"; code: number; enhanced: string; text: string }
  /** Connection, TLS or protocol failed, or a timeout passed: try again later. */
  | { kind: "trouble"; stage: Stage; reason: string };

/** Result of a delivery. `withdrawn`: its owner no longer wants it sent, and the peer does not have it. */
export type SendResult = PeerResult | { kind: "withdrawn" };

/** Reason for deliveries that end because the pool closes. */
export const SHUTTING_DOWN = "shutting down";

/** One message for one recipient. */
export interface OutboundMail {
  /** The return path; "" is the null reverse-path. */
  mailFrom: string;
  rcptTo: string;
  /** The message, with CRLF line ends. */
  raw: Uint8Array;
  /** True if the header has UTF-8 (RFC 6532), which needs SMTPUTF8. Addresses are checked separately. */
  smtpUtf8?: boolean;
  /** True if `raw` has octets over 127. If undefined, it is determined. */
  eightBit?: boolean;
  /** Returns whether the message should still be sent. Called before the transaction and again before the content. */
  stillWanted?: () => boolean | Promise<boolean>;
}

/**
 * `never`: plain text. `opportunistic`: TLS if offered, with any certificate, else plain text (RFC 7435). `encrypted`:
 * TLS with any certificate, else no delivery. `verified`: TLS with a certificate valid for the host's name, else no
 * delivery.
 */
export type TlsMode = "never" | "opportunistic" | "encrypted" | "verified";

export interface Credentials {
  user: string;
  pass: string;
  /** Allows sending the password over a connection that is not encrypted or not verified. */
  insecure: boolean;
}

export interface DestinationHost {
  /** Name for the certificate check and the record. */
  name: string;
  addresses: readonly string[];
  /** Replaces the destination's `tls`. Destinations that differ in it must have different keys. */
  security?: HostSecurity;
}

/** Limits that destinations share, such as all domains of one provider. Their owner may change them at any time. */
export interface SharedLimits {
  key: string;
  /** Returns the maximum number of connections now. */
  connections(): number;
  /** Maximum number of messages on one connection, after which it is replaced. */
  messagesPerConnection: number;
  /** Returns whether another host may be asked after this reply. */
  mayAskNextHost(reply: PeerResult): boolean;
  /** Hears that a connection failed while further ones are open, so no delivery reports it. */
  onConnectionFailed(result: PeerResult): void;
}

/** Where to deliver. Deliveries with the same `key` share connections, so all other fields must be equal. */
export interface Destination {
  key: string;
  /** If left out, the destination shares its limits with no other. */
  limits?: SharedLimits;
  /** Tried in this order. */
  hosts: readonly DestinationHost[];
  port: number;
  tls: TlsMode;
  /** TLS from the first octet (RFC 8314 §3.3), as `smtps:` wants. */
  implicitTls?: boolean;
  auth?: Credentials;
  /** Our name in EHLO. */
  ehloName: string;
  /** Our own address, which connections come from. If left out, the system chooses it. */
  localAddress?: string;
}

export interface DeliveryReport {
  result: SendResult;
  /** Host and address of the last connection or attempt; null if there was none. */
  mx: string | null;
  ip: string | null;
  /** TLS version and cipher; null in plain text. */
  tls: string | null;
  /** True if the certificate was valid for the host's name, or matched DANE if that was required. */
  tlsVerified: boolean;
  /** Commands and replies, without content and secrets. */
  transcript: string[];
  /** Milliseconds since the epoch. */
  startedAt: number;
  durationMs: number;
}

/** Time limits of each step, in milliseconds. */
export interface Timeouts {
  connect: number;
  tls: number;
  greeting: number;
  ehlo: number;
  auth: number;
  mail: number;
  rcpt: number;
  data: number;
  /** For each part of the message that the peer accepts. */
  block: number;
  final: number;
  quit: number;
}

/**
 * Creates short timeouts for a session that sends no mail: one for connecting, one for each later step. Milliseconds.
 */
export function shortTimeouts(connectMs: number, stepMs: number): Timeouts {
  return {
    connect: connectMs,
    tls: stepMs,
    greeting: stepMs,
    ehlo: stepMs,
    auth: stepMs,
    mail: stepMs,
    rcpt: stepMs,
    data: stepMs,
    block: stepMs,
    final: stepMs,
    quit: stepMs,
  };
}

/** RFC 5321 §4.5.3.2. It has no limits for connect, TLS, AUTH and QUIT, so those are ours. */
export const DEFAULT_TIMEOUTS: Timeouts = {
  connect: 30_000,
  tls: MINUTE_MS,
  greeting: 5 * MINUTE_MS,
  ehlo: 5 * MINUTE_MS,
  auth: 5 * MINUTE_MS,
  mail: 5 * MINUTE_MS,
  rcpt: 5 * MINUTE_MS,
  data: 2 * MINUTE_MS,
  block: 3 * MINUTE_MS,
  final: 10 * MINUTE_MS,
  quit: 5000,
};

/** Lines kept from the start of a transcript. */
const FIRST_LINES = MAX_TRANSCRIPT_LINES / 2;

/**
 * Adds lines to a transcript: `C:` from us, `S:` from the peer, `*` for events. If it is too long, keeps its start and
 * end, which tell most, and replaces the middle by one line.
 */
export function note(transcript: string[], ...lines: string[]): void {
  transcript.push(...lines);
  const tooMany = transcript.length - MAX_TRANSCRIPT_LINES;
  if (tooMany <= 0) return;
  const gone = transcript.splice(FIRST_LINES, tooMany + 1);
  transcript.splice(FIRST_LINES, 0, omittedLinesNotice(gone));
}
