import type { Plan } from "../config/families.ts";
import { setBounded } from "../core/collections.ts";

/** The state of a bucket after its last change: its tokens, and the time in milliseconds. */
export interface Bucket {
  tokens: number;
  at: number;
}

/** The result of taking one token. */
export interface RateVerdict {
  allowed: boolean;
  /** Tokens that the bucket holds when full. */
  limit: number;
  /** Whole tokens left. */
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Seconds until there is a token again. 0 if one was taken. */
  retryAfterSeconds: number;
}

/** Takes one token from the bucket of `id`. */
export type TakeToken = (id: string, plan: Plan) => RateVerdict;

/**
 * Tolerance for sums of fractions. Without it, a rounding error would refuse a client that comes back exactly after
 * `retryAfterSeconds`.
 */
export const EPSILON = 1e-9;

/** Maximum number of buckets kept in memory. */
const MAX_BUCKETS = 100_000;

function refilled({ tokens, at }: Bucket, plan: Plan, now: number): number {
  return Math.min(plan.burst, tokens + ((now - at) / 1000) * plan.perSecond);
}

/** Returns the verdict for a bucket with `tokens` left. */
export function verdictOf(plan: Plan, allowed: boolean, tokens: number): RateVerdict {
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
 * Returns the buckets of this process. If there are more than MAX_BUCKETS, evicts the one that was unused longest.
 * It is usually full, as a new one is, so its owner gains nothing.
 */
export function memoryBuckets(now: () => number, maxBuckets = MAX_BUCKETS): TakeToken {
  const buckets = new Map<string, Bucket>();
  return (id, plan) => {
    const at = now();
    const before = buckets.get(id) ?? { tokens: plan.burst, at };
    const tokens = refilled(before, plan, at);
    const allowed = tokens + EPSILON >= 1;
    const left = allowed ? Math.max(0, tokens - 1) : tokens;
    setBounded(buckets, id, { tokens: left, at }, maxBuckets);
    return verdictOf(plan, allowed, left);
  };
}
