import { readReply } from "../../mail/bounces/reply-reading.ts";
import type { ReplyCategory } from "../../mail/bounces/reply-phrases.ts";
import type { SignKind } from "./governor.ts";

/** A peer's reply to one command. */
export interface Reply {
  stage: string;
  code: number;
  enhanced: string | null;
  text: string;
}

/** The meaning of a reply for the lane. */
export interface LaneSign {
  kind: SignKind;
  category: ReplyCategory;
  /** Milliseconds that the text names until another try. Null if it names none. */
  namedMs: number | null;
}

/** Words about sessions rather than messages. */
const CONNECTIONS = /\b(?:connections?|connexions|sessions?|verbindungen)\b/i;

/** Returns what a refusal says about the lane; null if it is about its message alone. */
export function signOf(reply: Reply): LaneSign | null {
  const { laneEffect, category, namedMs } = readReply(reply);
  const sign = (kind: SignKind): LaneSign => ({ kind, category, namedMs });
  switch (laneEffect) {
    case "none":
      return null;
    case "slow":
      return sign(CONNECTIONS.test(reply.text) ? "connections" : "rate");
    case "rest":
      return sign("reputation");
    case "block":
      return sign("blocked");
  }
}
