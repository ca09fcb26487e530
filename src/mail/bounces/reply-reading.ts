import { classifyReply, type Refusal, type ReplyClass } from "./reply-class.ts";
import type { ReplyCategory } from "./reply-phrases.ts";
import { MINUTE_MS } from "../../core/time/units.ts";

/**
 * The effect of a refusal on everything that leaves for the same provider.
 * - `none`: the refusal is about one message or one recipient.
 * - `slow`: the provider gets more than it wants, so send less.
 * - `rest`: the provider wants nothing for a time.
 * - `block`: the provider refuses our address for good. Several in a row, without one acceptance, close the lane; a
 *   closed lane holds its messages instead of failing them.
 */
export type LaneEffect = "none" | "slow" | "rest" | "block";

/** The party that can change the outcome: the recipient, the sender (`you`), the operator (`us`) or the provider. */
export type ResponsibleParty = "recipient" | "you" | "us" | "provider";

/** All that a refusal says: its class, its subject, and what to do about it. */
export interface ReplyReading extends ReplyClass {
  who: ResponsibleParty;
  laneEffect: LaneEffect;
  /** Milliseconds before which another try makes no sense. Null if the refusal is final. */
  retryAfterMs: number | null;
}

type Effect = Omit<ReplyReading, "outcome" | "category">;

/** What each category asks for unless the text says otherwise. */
const BY_CATEGORY: Readonly<Record<ReplyCategory, Effect>> = {
  recipient: { who: "recipient", laneEffect: "none", retryAfterMs: 0 },
  "mailbox-full": { who: "recipient", laneEffect: "none", retryAfterMs: 0 },
  policy: { who: "provider", laneEffect: "none", retryAfterMs: 0 },
  reputation: { who: "us", laneEffect: "rest", retryAfterMs: 15 * MINUTE_MS },
  authentication: { who: "you", laneEffect: "none", retryAfterMs: 60 * MINUTE_MS },
  rate: { who: "us", laneEffect: "slow", retryAfterMs: 15 * MINUTE_MS },
  greylist: { who: "provider", laneEffect: "none", retryAfterMs: 5 * MINUTE_MS },
  content: { who: "you", laneEffect: "none", retryAfterMs: 0 },
  infrastructure: { who: "provider", laneEffect: "none", retryAfterMs: 0 },
  protocol: { who: "us", laneEffect: "none", retryAfterMs: 0 },
  other: { who: "provider", laneEffect: "none", retryAfterMs: 0 },
};

/** Reads a refusal: what it means for its message, for its provider's lane, and when to try again. */
export function readReply(refusal: Refusal): ReplyReading {
  const { outcome, category } = classifyReply(refusal);
  const { who, laneEffect, retryAfterMs } = BY_CATEGORY[category];
  if (outcome === "deferred") return { outcome, category, who, laneEffect, retryAfterMs };
  const final = laneEffect === "rest" ? "block" : laneEffect;
  return { outcome, category, who, laneEffect: final, retryAfterMs: null };
}
