import type { Credentials, Login } from "./login.ts";
import type { Reply } from "./reply.ts";

/** Everything known about a message besides its bytes: client, connection, sender and recipients. */
export interface Envelope {
  /** The reverse-path of MAIL FROM without brackets; "" is the null sender of bounces. */
  mailFrom: string;
  /** Recipients accepted so far, without duplicates, in order. */
  rcptTo: string[];
  /** The client's address. If it is IPv4, in dotted form even on an IPv6 socket. */
  ip: string;
  /** The name in HELO or EHLO. It has only letters, digits and `.-_:[]`, and is not verified. */
  helo: string;
  /** The TLS version, such as "TLSv1.3"; null in plain text. */
  tls: string | null;
  /** True if MAIL had SMTPUTF8 (RFC 6531). */
  smtpUtf8: boolean;
  /** Size that MAIL announced, if any. */
  announcedOctets?: number;
  /** Set if the peer said HELO. */
  plainSmtp?: true;
  /** Set if the client has logged in. */
  login?: Login;
}

/** The answer to a login: the client's identity, or the reply that refuses it. */
export type LoginVerdict = { identity: string } | Reply;

/** The part of the service that decides about recipients and stores messages. */
export interface MailHandler {
  /** Decides about one RCPT TO: null accepts (250 2.1.5). If the promise rejects, the reply is 451 4.3.0. */
  recipient(address: string, envelope: Envelope): Promise<Reply | null>;
  /**
   * Takes custody of a whole message: dots unstuffed, all line ends CRLF. Resolves with the reply to DATA, which is 250
   * only after the commit. If the promise rejects, the reply is 451 4.3.0. After it resolves, the caller reuses the
   * memory of `raw`: copy what is needed longer.
   */
  message(envelope: Envelope, raw: Uint8Array): Promise<Reply>;
  /** Decides about a login. Missing if the server takes none. If the promise rejects, the reply is 451 4.3.0. */
  login?(credentials: Credentials, envelope: Envelope): Promise<LoginVerdict>;
  /** The listener is stopping: answer the current messages soon, and skip optional waits. */
  stopping?(): void;
}
