import { AppError } from "../../core/errors.ts";

/** The result of taking one request from a bucket. */
export interface RateVerdict {
  allowed: boolean;
  /** Requests that a full bucket holds. */
  limit: number;
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Seconds until the next request is allowed. 0 if this one was. */
  retryAfterSeconds: number;
}

/** Takes one request from the bucket of `id` under a plan. Returns null if the plan has no limit. */
export type RateLimiter = (id: string, plan: string) => Promise<RateVerdict | null>;

/** Takes one sign-in attempt from the bucket of an address. */
export type SignInLimiter = (address: string) => Promise<RateVerdict>;

/** Takes one of the DKIM keys that a project may make in an hour. */
export type KeyLimiter = (senderId: string) => Promise<RateVerdict>;

/** Plan for requests to account-level routes, counted per key. */
export const ACCOUNT_PLAN = "pro";

/**
 * Counts the request and writes the `RateLimit-*` headers.
 * @throws AppError 429 if the bucket is empty
 */
export async function takeRate(
  limiter: RateLimiter | null,
  id: string,
  plan: string,
  headers: Record<string, string | number>,
): Promise<void> {
  const verdict = limiter === null ? null : await limiter(id, plan);
  if (verdict === null) return;
  headers["ratelimit-limit"] = String(verdict.limit);
  headers["ratelimit-remaining"] = String(verdict.remaining);
  headers["ratelimit-reset"] = String(verdict.resetSeconds);
  requireAllowed(verdict);
}

/**
 * Counts a request that makes DKIM keys.
 * @throws AppError 429 if the project has made as many as it may for now
 */
export async function takeKey(limiter: KeyLimiter | null, senderId: string): Promise<void> {
  const verdict = limiter === null ? null : await limiter(senderId);
  if (verdict === null || verdict.allowed) return;
  throw new AppError(
    "rate_limited",
    `A project may make ${verdict.limit} DKIM keys an hour, for new domains and rotations. Try again later.`,
    { retryAfterSeconds: Math.max(1, verdict.retryAfterSeconds) },
  );
}

/** Throws 429 if the bucket was empty. */
export function requireAllowed(verdict: RateVerdict): void {
  if (!verdict.allowed)
    throw new AppError("rate_limited", "Too many requests.", {
      retryAfterSeconds: Math.max(1, verdict.retryAfterSeconds),
    });
}
