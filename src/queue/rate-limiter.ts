import type { Config, Plan } from "../config.ts";
import { DEFAULT_PREFIX } from "./bullmq.ts";
import type { Place } from "./open.ts";
import { openAsking } from "./redis-asking.ts";
import { redisBuckets } from "./redis-buckets.ts";
import { memoryBuckets, type Taken, type TakeToken } from "./token-bucket.ts";
import type { QueueDeps } from "./trouble.ts";

/** Which plans there are. A plan that is named nowhere counts as the default one. */
export type RateLimits = Pick<Config, "plans" | "defaultPlan">;

/** The rate limiter: a token bucket for each id, filled and bounded by its plan. */
export interface RateBuckets {
  /** Takes one token; null where the plan has no limit. Never rejects, and waits ASK_WAIT_MS at most. */
  take(id: string, plan: string): Promise<Taken | null>;
  /** Lets go of the connection. */
  close(): void;
}

/**
 * Opens the rate limiter; never fails. On a Redis the buckets are shared by all processes; while it is away, slow or
 * not yet reached, each process counts for itself.
 */
export function openRateLimiter(deps: QueueDeps, place: Place, limits: RateLimits): RateBuckets {
  const { redisUrl, prefix = DEFAULT_PREFIX } = place;
  const own = memoryBuckets(() => deps.clock.now());
  const buckets = redisUrl === null ? { take: own, close() {} } : onRedis(deps, redisUrl, prefix, own);
  return {
    async take(id, name) {
      const known = Object.hasOwn(limits.plans, name) ? name : limits.defaultPlan;
      const plan = limits.plans[known] ?? null;
      return plan === null ? null : buckets.take(id, plan);
    },
    close: buckets.close,
  };
}

function onRedis(deps: QueueDeps, url: string, prefix: string, own: TakeToken) {
  const asking = openAsking(deps, url, "request rates are counted in this process only");
  const shared = redisBuckets(asking.client, prefix);
  return {
    take: async (id: string, plan: Plan) => (await asking.ask(() => shared(id, plan))) ?? own(id, plan),
    close: asking.close,
  };
}
