import type { Clock } from "../core/clock.ts";
import { REPLIES, type Reply } from "./reply.ts";

/** How a session came to its end. `dropped`: the peer was gone without QUIT, or the connection failed. */
export type SessionEnd =
  | ("quit" | "dropped" | "timeout" | "crowded" | "errors" | "early_talker" | "not_smtp" | "shutdown")
  | "turned_away";

/** Is told of sessions, for counters. */
export interface SmtpMeter {
  /** Seconds from the connection to its end. */
  sessionEnded(seconds: number, end: SessionEnd): void;
  /** A message that never came to the handler. */
  messageRefused(reason: string): void;
}

/** The session's last word says how it ended. */
const ENDS: ReadonlyMap<Reply, SessionEnd> = new Map<Reply, SessionEnd>([
  [REPLIES.bye, "quit"],
  [REPLIES.timeout, "timeout"],
  [REPLIES.tooSlow, "crowded"],
  [REPLIES.tooManyErrors, "errors"],
  [REPLIES.tooMuchInput, "errors"],
  [REPLIES.badChunk, "errors"],
  [REPLIES.earlyTalker, "early_talker"],
  [REPLIES.notSmtp, "not_smtp"],
  [REPLIES.shuttingDown, "shutdown"],
]);

const REFUSALS: ReadonlyMap<Reply, string> = new Map<Reply, string>([
  [REPLIES.tooLarge, "too_large"],
  [REPLIES.bareLineEnd, "bare_line_end"],
  [REPLIES.nulInMessage, "nul"],
  [REPLIES.noRoom, "no_room"],
]);

/** Watches one session by what it says. */
export interface Watch {
  said(reply: Reply): void;
  ended(): void;
}

/** The watch over one session from now on. What it says last, before it is gone, tells how it ended. */
export function watchSession(clock: Clock, meter: SmtpMeter): Watch {
  const startedAt = clock.now();
  let end: SessionEnd = "dropped";
  return {
    said(reply) {
      end = ENDS.get(reply) ?? "dropped";
      const reason = REFUSALS.get(reply);
      if (reason !== undefined) meter.messageRefused(reason);
    },
    ended: () => meter.sessionEnded((clock.now() - startedAt) / 1000, end),
  };
}
