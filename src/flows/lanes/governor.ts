import { HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import type { ReplyCategory } from "../../mail/bounces/reply-phrases.ts";

// A lane's reactions to a provider's answers. `RULES` may be read aloud.

/** The most that a lane may do. */
export interface LaneLimits {
  /** Messages a minute. */
  rate: number;
  connections: number;
}

/** How far a lane has come down from its limits. Times are milliseconds since the epoch. */
export interface LaneState {
  /** Messages a minute. */
  rate: number;
  connections: number;
  /** The amount that the next minute of acceptance adds to the rate. */
  step: number;
  /** When rate or connections were lowered last, and raised last. */
  loweredAt: number | null;
  raisedAt: number | null;
  /** Nothing goes out before this time. */
  opensAt: number | null;
  /** Length of the last rest, milliseconds. 0 if a message was accepted since. */
  restMs: number;
  /** Refusals of our address in a row, without an acceptance. */
  refusals: number;
  /** The reply that lowered, rested or blocked the lane. Null: none. */
  cause: LaneCause | null;
}

/** Why a lane is slowed. */
export interface LaneCause {
  category: ReplyCategory;
  /** The reply, in one line. */
  reply: string;
  at: number;
}

/**
 * The meaning of an answer for a lane.
 * - `accepted`: the provider took a message.
 * - `rate`: it wants fewer messages. `connections`: it wants fewer connections.
 * - `reputation`: it wants nothing for a time. `blocked`: it refuses our address for good.
 */
export type SignKind = "accepted" | "rate" | "connections" | "reputation" | "blocked";

/** An answer, as the governor reads it. */
export interface Sign {
  kind: SignKind;
  now: number;
  limits: LaneLimits;
  /** When the answered message began. */
  startedAt: number;
  /** Milliseconds that the reply names until another try. Null if it names none. */
  namedMs: number | null;
  /** Messages that the provider took in the minute before, and when it took the first of them. */
  took: { count: number; since: number };
  cause: LaneCause | null;
}

/**
 * The fate of the message. `normal`: what its own reply says. `later`: it is due when the lane opens. `doubtful`:
 * its refusal counts as one for now at its first try, because our address may be blocked. `held`: it is, until the
 * lane opens.
 */
export type Fate = "normal" | "later" | "doubtful" | "held";

/** Refusals of our address in a row that block a lane. */
export const REFUSALS_TO_BLOCK = 3;
/** First and longest rest after a reply about our reputation, milliseconds. */
export const FIRST_REST_MS = 15 * MINUTE_MS;
export const LONGEST_REST_MS = 4 * HOUR_MS;
/** Rest of a blocked lane, milliseconds. */
export const BLOCK_MS = HOUR_MS;
/** Longest rest that a reply may name, milliseconds. */
export const LONGEST_NAMED_MS = 24 * HOUR_MS;
/** Least rate, messages a minute. */
export const LEAST_RATE = 1;
/** Share of the limit that a minute of acceptance adds at most. */
export const GROWTH = 1 / 20;
/** Messages taken in a minute from which their number shows what the provider takes. */
const TELLING = 10;
/** A lowered rate, as a share of what the provider took. The rest allows for differences in counting. */
const KEPT = 0.9;

/** Returns the state of a lane that was never slowed. */
export function steady({ rate, connections }: LaneLimits): LaneState {
  return {
    rate,
    connections,
    step: 0,
    loweredAt: null,
    raisedAt: null,
    opensAt: null,
    restMs: 0,
    refusals: 0,
    cause: null,
  };
}

/** Returns true if a lane is at its limits and nothing is held against it. */
export function isSteady(state: LaneState, limits: LaneLimits, now: number): boolean {
  return (
    state.rate >= limits.rate &&
    state.connections >= limits.connections &&
    state.refusals === 0 &&
    !rests(state, now) &&
    state.restMs === 0
  );
}

/** Returns true if nothing goes out now. */
export function rests({ opensAt }: LaneState, now: number): boolean {
  return opensAt !== null && opensAt > now;
}

/** Returns true if the provider refuses our address. */
export function isBlocked({ refusals }: LaneState): boolean {
  return refusals >= REFUSALS_TO_BLOCK;
}

interface Rule {
  lane(state: LaneState, sign: Sign): LaneState;
  /** The fate of the message, after that effect. */
  message(state: LaneState): Fate;
}

const RULES: Readonly<Record<SignKind, Rule>> = {
  // Too many messages: the rate falls, and the lane waits for the time named, else until a minute's messages are old.
  rate: { lane: (state, sign) => paused(lowered(state, sign, slower), sign), message: () => "later" },
  // Too many connections: half of them, and the rest as for the rate.
  connections: {
    lane: (state, sign) => lowered(state, sign, narrower),
    message: () => "later",
  },
  // Our reputation: a rest of 15 minutes, which doubles up to 4 hours. Then one message tries, at half the rate.
  reputation: {
    lane: (state, sign) =>
      rested(lowered(state, sign, slower), sign, { first: FIRST_REST_MS, longest: LONGEST_REST_MS }),
    message: () => "later",
  },
  // Our address is refused: the third time in a row, the lane is blocked and rests for an hour.
  blocked: {
    lane: (state, sign) => refused(state, sign),
    message: (state) => (isBlocked(state) ? "held" : "doubtful"),
  },
  // Accepted: nothing is held against the lane any more, and each minute it grows by a step.
  accepted: { lane: (state, sign) => raised(forgiven(state, sign), sign), message: () => "normal" },
};

/** Returns the state of a lane after a sign, and the fate of the message that got it. */
export function govern(state: LaneState, sign: Sign): { state: LaneState; fate: Fate } {
  const { lane, message } = RULES[sign.kind];
  const next = lane(state, sign);
  return { state: next, fate: message(next) };
}

/** Lowers rate or connections, at most once a minute. */
function lowered(
  state: LaneState,
  sign: Sign,
  lower: (state: LaneState, sign: Sign) => LaneState,
): LaneState {
  const noted = { ...state, cause: sign.cause ?? state.cause };
  // A message that began before says nothing new.
  if (isWithin(state.loweredAt, sign.now, MINUTE_MS) || (state.loweredAt ?? 0) > sign.startedAt) return noted;
  return { ...lower(noted, sign), loweredAt: sign.now };
}

function isWithin(at: number | null, now: number, ms: number): boolean {
  return at !== null && Math.abs(now - at) < ms;
}

/** Nine tenths of what the provider took in the last minute, if that tells enough; else half the rate. */
function slower(state: LaneState, { took }: Sign): LaneState {
  const taken = took.count >= TELLING ? took.count * KEPT : state.rate / 2;
  const rate = Math.max(LEAST_RATE, Math.min(taken, state.rate * KEPT));
  return { ...state, rate, step: rate * GROWTH };
}

function narrower(state: LaneState): LaneState {
  return { ...state, connections: Math.max(1, Math.floor(state.connections / 2)) };
}

/**
 * Waits until the messages of the last minute are a minute old, and the provider's count of them is over. If it took none,
 * it counts over a longer time: the wait then doubles up to the first rest.
 */
function paused(state: LaneState, sign: Sign): LaneState {
  const { now, namedMs, took } = sign;
  if (namedMs !== null) return closedFor(state, namedMs, sign);
  if (took.count > 0) return closedFor(state, Math.min(MINUTE_MS, took.since + MINUTE_MS - now), sign);
  return rested(state, sign, { first: MINUTE_MS, longest: FIRST_REST_MS });
}

/** @param ms at most LONGEST_NAMED_MS count. A lane that is closed for longer stays so. */
function closedFor(state: LaneState, ms: number, { now }: Sign): LaneState {
  return { ...state, opensAt: Math.max(state.opensAt ?? 0, now + Math.min(ms, LONGEST_NAMED_MS)) };
}

function rested(
  state: LaneState,
  sign: Sign,
  { first, longest }: { first: number; longest: number },
): LaneState {
  // A message that began before the lane opened says nothing new.
  if (sign.startedAt < (state.opensAt ?? 0)) return state;
  const restMs = Math.max(state.restMs, Math.min(longest, Math.max(first, state.restMs * 2)));
  return closedFor({ ...state, restMs }, Math.max(restMs, sign.namedMs ?? 0), sign);
}

function refused(state: LaneState, sign: Sign): LaneState {
  const refusals = Math.min(REFUSALS_TO_BLOCK, state.refusals + 1);
  const next = { ...state, refusals, cause: sign.cause ?? state.cause };
  if (refusals < REFUSALS_TO_BLOCK || (isBlocked(state) && rests(state, sign.now))) return next;
  return closedFor(lowered(next, sign, slower), Math.max(BLOCK_MS, sign.namedMs ?? 0), sign);
}

/** A message that began before the lane closed does not open it. */
function forgiven(state: LaneState, { now }: Sign): LaneState {
  if (rests(state, now)) return state;
  return { ...state, refusals: 0, restMs: 0, opensAt: null };
}

/** Raises rate and connections, at most once a minute. The step doubles, up to a twentieth of the limit. */
function raised(state: LaneState, { now, limits }: Sign): LaneState {
  if (
    rests(state, now) ||
    isWithin(state.loweredAt, now, MINUTE_MS) ||
    isWithin(state.raisedAt, now, MINUTE_MS)
  )
    return state;
  if (state.rate >= limits.rate && state.connections >= limits.connections) return state;
  const most = limits.rate * GROWTH;
  const step = Math.min(most, Math.max(state.step, LEAST_RATE));
  return {
    ...state,
    rate: Math.min(limits.rate, state.rate + step),
    step: Math.min(most, step * 2),
    connections: Math.min(limits.connections, state.connections + 1),
    raisedAt: now,
  };
}
