import type { Reply } from "./reply.ts";

/** Who brings a message, over which connection, from whom and to whom: all that is known besides its bytes. */
export interface Envelope {
  /** The reverse-path of MAIL FROM without its brackets; "" is the null sender of bounces. */
  mailFrom: string;
  /** Recipients accepted so far, each once, in the order given. */
  rcptTo: string[];
  /** The peer's address; an IPv4 one in dotted form even on an IPv6 socket. */
  ip: string;
  /** What the peer called itself in HELO or EHLO. Letters, digits and `.-_:[]` only; otherwise unchecked. */
  helo: string;
  /** The TLS version, such as "TLSv1.3"; null in plain text. */
  tls: string | null;
  /** Whether MAIL carried SMTPUTF8 (RFC 6531). */
  smtpUtf8: boolean;
  /** Left out: the peer said EHLO. */
  plainSmtp?: true;
}

/** What the receiving end asks of the rest of the service. */
export interface MailHandler {
  /** Verdict on one RCPT TO; null = accepted (250 2.1.5). A rejection of the promise is answered 451 4.3.0. */
  recipient(address: string, envelope: Envelope): Promise<Reply | null>;
  /**
   * Custody of a whole message, dots unstuffed, every line ending in CRLF. Resolves with the reply to DATA; 250 only
   * after the commit. A rejection is answered 451 4.3.0. The bytes are the caller's again when it resolves: whoever is to
   * have them for longer takes a copy.
   */
  message(envelope: Envelope, raw: Uint8Array): Promise<Reply>;
  /** The listener stops: what is in hand is to be answered soon, and waits for nothing it can do without. */
  stopping?(): void;
}
