import type { Clock } from "../../core/time/clock.ts";
import { REPLIES, type Reply } from "../session/reply.ts";

/** How a session ended. `dropped`: the peer left without QUIT, or the connection failed. */
export type SessionEnd =
  | ("quit" | "dropped" | "timeout" | "crowded" | "errors" | "early_talker" | "not_smtp" | "shutdown")
  | "turned_away";

/** Counts sessions and refused messages. */
export interface SmtpMeter {
  /** Seconds since the connection began. */
  sessionEnded(seconds: number, end: SessionEnd): void;
  /** Counts a message refused before it reached the handler. */
  messageRefused(reason: string): void;
}

/** The last reply tells how the session ended. */
const ENDS: ReadonlyMap<Reply, SessionEnd> = new Map<Reply, SessionEnd>([
  [REPLIES.bye, "quit"],
  [REPLIES.timeout, "timeout"],
  [REPLIES.tooSlow, "crowded"],
  [REPLIES.tooManyErrors, "errors"],
  [REPLIES.tooMuchInput, "errors"],
  [REPLIES.badChunk, "errors"],
  [REPLIES.ambiguousMessage, "errors"],
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

/** Records the replies and the end of one session. */
export interface SessionRecorder {
  replied(reply: Reply): void;
  ended(): void;
}

/** Starts to record a session. Its last reply tells how it ended. */
export function recordSession(clock: Clock, meter: SmtpMeter): SessionRecorder {
  const startedAt = clock.elapsed();
  let end: SessionEnd = "dropped";
  return {
    replied(reply) {
      end = ENDS.get(reply) ?? "dropped";
      const reason = REFUSALS.get(reply);
      if (reason !== undefined) meter.messageRefused(reason);
    },
    ended: () => meter.sessionEnded((clock.elapsed() - startedAt) / 1000, end),
  };
}
