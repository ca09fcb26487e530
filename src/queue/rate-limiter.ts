import type { Config } from "../config.ts";
import type { Plan } from "../config/families.ts";
import { DEFAULT_PREFIX } from "./port.ts";
import type { RedisLocation } from "./open.ts";
import { openOptionalRedis } from "./optional-redis.ts";
import { redisBuckets } from "./redis-buckets.ts";
import { memoryBuckets, type RateVerdict, type TakeToken } from "./token-bucket.ts";
import type { QueueDeps } from "./limited-log.ts";

/** The plans. If a plan is unknown, the default one applies. */
export type RateLimits = Pick<Config, "plans" | "defaultPlan" | "dkimKeysPerHour">;

const HOUR_SECONDS = 3600;

/** Sign-in attempts from one address: ten at once, and one in six seconds. */
const SIGN_IN_RATE: Plan = { perSecond: 1 / 6, burst: 10 };

/** The rate limiter: a token bucket for each id, with the size and rate of its plan. */
export interface RateBuckets {
  /** Takes one token. Returns null if the plan has no limit. Never rejects, and waits at most ASK_WAIT_MS. */
  take(id: string, plan: string): Promise<RateVerdict | null>;
  /** Takes one token of the sign-in attempts from an address. As `take`. */
  takeSignIn(address: string): Promise<RateVerdict>;
  /** Takes one of the DKIM keys that a project may make in an hour; null if there is no limit. As `take`. */
  takeKey: ((senderId: string) => Promise<RateVerdict>) | null;
  close(): void;
}

/**
 * Opens the rate limiter. Never fails. On Redis, all processes share the buckets. If Redis is away, slow or not
 * connected yet, each process counts for itself.
 */
export function openRateLimiter(deps: QueueDeps, place: RedisLocation, limits: RateLimits): RateBuckets {
  const { redisUrl, prefix = DEFAULT_PREFIX } = place;
  const own = memoryBuckets(() => deps.clock.elapsed());
  const buckets = redisUrl === null ? { take: own, close() {} } : onRedis(deps, redisUrl, prefix, own);
  return {
    async take(id, name) {
      const known = Object.hasOwn(limits.plans, name) ? name : limits.defaultPlan;
      const plan = limits.plans[known] ?? null;
      return plan === null ? null : buckets.take(id, plan);
    },
    takeSignIn: async (address) => buckets.take(`sign-in:${address}`, SIGN_IN_RATE),
    takeKey: keyBuckets(limits.dkimKeysPerHour, buckets.take),
    close: buckets.close,
  };
}

function keyBuckets(
  perHour: number,
  take: (id: string, plan: Plan) => RateVerdict | Promise<RateVerdict>,
): RateBuckets["takeKey"] {
  if (perHour === 0) return null;
  const plan: Plan = { perSecond: perHour / HOUR_SECONDS, burst: perHour };
  return async (senderId) => take(`dkim-keys:${senderId}`, plan);
}

function onRedis(deps: QueueDeps, url: string, prefix: string, own: TakeToken) {
  const asking = openOptionalRedis(deps, url, "request rates are counted in this process only");
  const shared = redisBuckets(asking.client, prefix);
  return {
    take: async (id: string, plan: Plan) => (await asking.ask(() => shared(id, plan))) ?? own(id, plan),
    close: asking.close,
  };
}
