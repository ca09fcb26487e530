import type { Envelope } from "./envelope.ts";
import type { Reply } from "./reply.ts";
import type { SessionLimits } from "./verbs.ts";

/** What the session wants done, in order. */
export type Action =
  | { kind: "write"; text: string }
  | { kind: "recipient"; address: string; envelope: Envelope }
  | { kind: "message"; envelope: Envelope; raw: Uint8Array }
  /** Turn the connection to TLS once all is written, then call `secured`. */
  | { kind: "startTls" }
  /** Close the connection once all is written. */
  | { kind: "close" };

/** `waiting`: a recipient or a message was asked about. `tls`: plain text is over, TLS has not begun. */
export type Phase = "command" | "data" | "waiting" | "tls" | "closed";

export interface SessionOptions extends SessionLimits {
  /** The peer's address. */
  ip: string;
  /** Is told each reply, for counters. */
  said?: (reply: Reply) => void;
}
