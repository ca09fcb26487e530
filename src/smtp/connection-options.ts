import type { Clock } from "../core/clock.ts";
import type { Log } from "../log.ts";
import type { SessionOptions } from "./actions.ts";
import type { MailHandler } from "./envelope.ts";
import type { Intake } from "./intake.ts";

export interface ConnectionDeps {
  clock: Clock;
  handler: MailHandler;
  log: Log;
  intake: Intake;
  /** Called once, when the socket is closed and the handler has nothing of it in hand. */
  gone: () => void;
}

export interface ConnectionOptions extends SessionOptions {
  /** Key and certificate chain, PEM, as they are at the moment. */
  tls: () => { key: string; cert: string };
  /** Milliseconds of silence asked of the peer before it is greeted; 0 for none. */
  greetAfterMs: number;
  /** Whether refused recipients are answered ever more slowly. */
  tarpit: boolean;
}
