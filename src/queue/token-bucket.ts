import type { Plan } from "../config.ts";
import { setNewest } from "../core/newest.ts";

/** A bucket as it was left: tokens in it, and when that was, milliseconds. */
export interface Bucket {
  tokens: number;
  at: number;
}

/** What taking one token came to. */
export interface Taken {
  allowed: boolean;
  /** Tokens that the bucket holds when full. */
  limit: number;
  /** Whole tokens left. */
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Seconds until there is a token again; 0 where one was taken. */
  retryAfterSeconds: number;
}

/** Takes one token from the bucket of `id`. */
export type TakeToken = (id: string, plan: Plan) => Taken;

/**
 * What a sum of fractions may fall short of a whole token: without it, a client that comes back after just the
 * time it was told would be refused for the last bit of a number.
 */
export const EPSILON = 1e-9;

/** Buckets kept at most. */
const MAX_BUCKETS = 100_000;

/** Tokens in a bucket at `now`. A clock that was set back fills nothing and takes nothing away. */
function refilled({ tokens, at }: Bucket, plan: Plan, now: number): number {
  return Math.min(plan.burst, tokens + (Math.max(0, now - at) / 1000) * plan.perSecond);
}

/** The answer for a bucket with `tokens` in it after the taking. */
export function takenOf(plan: Plan, allowed: boolean, tokens: number): Taken {
  const secondsTo = (wanted: number): number =>
    Math.max(0, Math.ceil((wanted - tokens) / plan.perSecond - EPSILON));
  return {
    allowed,
    limit: plan.burst,
    remaining: Math.floor(tokens + EPSILON),
    resetSeconds: secondsTo(plan.burst),
    retryAfterSeconds: allowed ? 0 : secondsTo(1),
  };
}

/**
 * Buckets in this process. Over MAX_BUCKETS the one left alone longest goes; it is full by then, and a bucket
 * made anew is full too, so nothing is given away unless so many were used within the time that fills one.
 */
export function memoryBuckets(now: () => number, maxBuckets = MAX_BUCKETS): TakeToken {
  const buckets = new Map<string, Bucket>();
  return (id, plan) => {
    const at = now();
    const before = buckets.get(id) ?? { tokens: plan.burst, at };
    const tokens = refilled(before, plan, at);
    const allowed = tokens + EPSILON >= 1;
    const left = allowed ? Math.max(0, tokens - 1) : tokens;
    setNewest(buckets, id, { tokens: left, at }, maxBuckets);
    return takenOf(plan, allowed, left);
  };
}
