import type { Envelope } from "./envelope.ts";
import type { Credentials } from "./login.ts";
import type { Reply } from "./reply.ts";
import type { SessionLimits } from "./verbs.ts";

/** An action that the session asks the connection to carry out, in order. */
export type Action =
  | { kind: "write"; text: string }
  | { kind: "recipient"; address: string; envelope: Envelope }
  | { kind: "message"; envelope: Envelope; raw: Uint8Array }
  | { kind: "login"; credentials: Credentials; envelope: Envelope }
  /** After all replies are written, start TLS; then call `secured`. */
  | { kind: "startTls" }
  /** After all replies are written, close the connection. */
  | { kind: "close" };

/** `waiting`: for the handler's answer. `tls`: STARTTLS was accepted, and the handshake is not done. */
export type Phase = "command" | "data" | "waiting" | "tls" | "closed";

export interface SessionOptions extends SessionLimits {
  /** The peer's address. */
  ip: string;
  /** If true, the session begins with a TLS handshake (RFC 8314 §3.3). */
  implicitTls?: boolean;
  /** Called with each reply, for metrics. */
  onReply?: (reply: Reply) => void;
}
