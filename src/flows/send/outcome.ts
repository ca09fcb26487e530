/** Facts of one try, whatever came of it. Times are milliseconds. */
export interface AttemptFacts {
  /** Host that answered, or the last one tried; null where none was. */
  mx: string | null;
  ip: string | null;
  /** e.g. `TLSv1.3`; null where the conversation was in the clear. */
  tls: string | null;
  /** Lines of the conversation, without message body and secrets. */
  transcript: readonly string[];
  startedAt: number;
  durationMs: number;
}

/** A peer's reply that decided the try. */
export interface PeerReply {
  /** Where the conversation stood: `connect`, `ehlo`, `mail`, `rcpt`, `data`, `final`. */
  stage: string;
  code: number;
  /** RFC 3463 code; null where the reply has none. */
  enhanced: string | null;
  text: string;
}

/**
 * What came of one try to hand a mail over.
 * - `accepted`: the peer took custody.
 * - `refused`: the peer said no, for now (4xx) or for good (5xx).
 * - `trouble`: nothing was settled (no connection, a timeout, no route): to be tried again.
 * - `undeliverable`: known without asking a peer. `bounce` is hard for a domain that takes no mail; `failed` for a
 *   mail no peer there could take.
 */
export type DeliveryReport = AttemptFacts &
  (
    | { kind: "accepted"; reply: PeerReply }
    | { kind: "refused"; reply: PeerReply }
    | { kind: "trouble"; stage: string; reason: string }
    | { kind: "undeliverable"; verdict: "hard" | "failed"; reason: string }
  );

/** A composed mail on its way to one recipient. */
export interface Shipment {
  /** The VERP return path. */
  mailFrom: string;
  rcptTo: string;
  /** The recipient's domain, A-labels. */
  domain: string;
  raw: Buffer;
  smtpUtf8: boolean;
}

/** Hands one mail over. Every outcome of mail is a report; a throw is a bug. */
export type Deliver = (shipment: Shipment) => Promise<DeliveryReport>;

/** The facts of a try that reached no peer. Times in milliseconds. */
export function noFacts(startedAt: number, durationMs = 0): AttemptFacts {
  return { mx: null, ip: null, tls: null, transcript: [], startedAt, durationMs };
}
