import type { Clock } from "../../core/time/clock.ts";
import type { Log } from "../../log.ts";
import type { SessionOptions } from "../session/actions.ts";
import type { MailHandler } from "../session/envelope.ts";
import type { Intake } from "./intake.ts";

export interface ConnectionDeps {
  clock: Clock;
  handler: Required<MailHandler>;
  log: Log;
  intake: Intake;
  /** Called once, when the socket is closed and the handler has answered. */
  onClosed: () => void;
}

export interface ConnectionOptions extends SessionOptions {
  /** Returns the current key and certificate chain, in PEM. */
  tls: () => { key: string; cert: string };
  /** Milliseconds to wait before the greeting; 0 for none. */
  greetAfterMs: number;
  /** If true, replies to refused recipients are delayed after the first few. */
  tarpit: boolean;
}
