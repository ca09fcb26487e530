import { MINUTE_MS } from "../../core/time-units.ts";

/** Where in a delivery something happened. `final` is the reply to the message itself. */
export type Stage = "connect" | "ehlo" | "starttls" | "auth" | "mail" | "rcpt" | "data" | "final";

/** What came of asking a peer. */
export type PeerResult =
  /** The peer has spoken: `final` with 2xx means it has the message, any other reply that it has not. */
  | { kind: "reply"; stage: Stage; code: number; enhanced: string | null; text: string }
  /**
   * Nothing was sent because the peer cannot take such a message: over its SIZE, or 8-bit content or addresses it does
   * not know. `code` and `enhanced` are what a peer would have answered; trying again does not help.
   */
  | { kind: "unsendable"; stage: "mail"; code: number; enhanced: string; text: string }
  /** Connection, TLS or protocol failed, or time ran out: try again later. */
  | { kind: "trouble"; stage: Stage; reason: string };

/** The end of one delivery to one recipient. `withdrawn`: its owner says that it is not to go any more; the peer does not have it. */
export type SendResult = PeerResult | { kind: "withdrawn" };

/** The reason of trouble by which a pool that closes ends what is not through. */
export const SHUTTING_DOWN = "shutting down";

/** One message for one recipient. */
export interface OutboundMail {
  /** The return path; "" is the null reverse-path. */
  mailFrom: string;
  rcptTo: string;
  /** The message with CRLF line ends. */
  raw: Uint8Array;
  /** The header holds UTF-8 (RFC 6532), so that the peer must offer SMTPUTF8. Addresses beyond ASCII are seen here. */
  smtpUtf8?: boolean;
  /** Whether `raw` has octets over 127; looked up where not given. */
  eightBit?: boolean;
  /** Asked before the transaction begins, and once more before the content, whether it is still to go. Left out: it is. */
  mayGo?: () => boolean | Promise<boolean>;
}

/**
 * `never`: in the clear. `opportunistic`: TLS where offered, whatever the certificate, else in the clear (RFC 7435).
 * `encrypted`: TLS, whatever the certificate, else no delivery. `verified`: TLS with a certificate that is valid for
 * the host's name, else no delivery.
 */
export type TlsMode = "never" | "opportunistic" | "encrypted" | "verified";

/** A TLSA record (RFC 6698 §2.1). */
export interface TlsaRecord {
  usage: number;
  selector: number;
  matchingType: number;
  data: Uint8Array;
}

/** What DANE asks of a peer's certificate (RFC 7672 §3). */
export interface DaneDemand {
  /** Usable records, of which one must match. */
  records: readonly TlsaRecord[];
  /**
   * Names of which the certificate must bear one, where a trust anchor (usage 2) vouches for it. The first one is that
   * under which the records lie.
   */
  names: readonly string[];
}

/** What a published policy asks of the connection to one host. */
export interface HostSecurity {
  tls: Exclude<TlsMode, "never">;
  /** With `verified`: the certificate is judged by these records in place of the authorities. */
  dane?: DaneDemand;
  /** Which policy it is and what it asks, for the transcript. */
  policy: string;
}

export interface Credentials {
  user: string;
  pass: string;
  /** Lets the password go over a connection that is not encrypted or not verified. */
  insecure: boolean;
}

export interface DestinationHost {
  /** Name for the certificate and the record. */
  name: string;
  addresses: readonly string[];
  /** In place of the destination's `tls`; to be told apart by the destination's `key`. */
  security?: HostSecurity;
}

/** Where to deliver. Deliveries of the same `key` share connections, so all else must then be the same. */
export interface Destination {
  key: string;
  /** In the order they are tried. */
  hosts: readonly DestinationHost[];
  port: number;
  tls: TlsMode;
  /** TLS from the first octet (RFC 8314 §3.3), as `smtps:` wants. */
  implicitTls?: boolean;
  auth?: Credentials;
  /** Our own name, for EHLO. */
  ehloName: string;
}

export interface DeliveryReport {
  result: SendResult;
  /** The host and address last spoken to; null where there was none. */
  mx: string | null;
  ip: string | null;
  /** TLS version and cipher; null in the clear. */
  tls: string | null;
  /** Whether the certificate was valid for the host's name, or by DANE where that was asked for. */
  tlsVerified: boolean;
  /** Commands and replies, without message and secrets. */
  transcript: string[];
  /** Milliseconds since the epoch. */
  startedAt: number;
  durationMs: number;
}

/** How long each step may take, in milliseconds. */
export interface Timeouts {
  connect: number;
  tls: number;
  greeting: number;
  ehlo: number;
  auth: number;
  mail: number;
  rcpt: number;
  data: number;
  /** For each part of the message that the peer takes. */
  block: number;
  final: number;
  quit: number;
}

/** Those of a conversation in which no mail is to pass: so long for the connection, and for each step behind it. Milliseconds. */
export function shortTimeouts(connectMs: number, stepMs: number): Timeouts {
  return {
    connect: connectMs,
    ...{ tls: stepMs, greeting: stepMs, ehlo: stepMs, auth: stepMs, mail: stepMs, rcpt: stepMs },
    ...{ data: stepMs, block: stepMs, final: stepMs, quit: stepMs },
  };
}

/** RFC 5321 §4.5.3.2; what it leaves open (connect, TLS, AUTH, QUIT) is ours. */
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
