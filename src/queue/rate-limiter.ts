import type { Config } from "../config.ts";
import type { Plan } from "../config/families.ts";
import { DEFAULT_PREFIX } from "./port.ts";
import type { RedisLocation } from "./open.ts";
import { openOptionalRedis, redisScript } from "./optional-redis.ts";
import { EPSILON, memoryBuckets, type RateVerdict, type TakeToken, verdictOf } from "./token-bucket.ts";
import type { QueueDeps } from "./limited-log.ts";
import type { Redis } from "ioredis";

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

/**
 * Takes one token from one bucket. A script runs alone on the server, and the server's clock is the one that all processes
 * share. The value is `<tokens> <microseconds>`. A refusal does not change it, because refilling is counted from the last
 * change. The key expires when the bucket would be full again. Returns whether a token was taken, and the tokens left, as text
 * with its fractions.
 */
const TAKE = `
local burst, rate, epsilon = tonumber(ARGV[1]), tonumber(ARGV[2]), ${EPSILON}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tokens, at = burst, now
local value = redis.call('GET', KEYS[1])
if value then
  local left, since = string.match(value, '^(%S+) (%S+)$')
  tokens, at = tonumber(left), tonumber(since)
end
tokens = math.min(burst, tokens + math.max(0, now - at) / 1000000 * rate)
local allowed = tokens + epsilon >= 1
if allowed then tokens = math.max(0, tokens - 1) end
if allowed or now < at then
  local ttl = math.max(1, math.ceil((burst - tokens) / rate * 1000))
  redis.call('SET', KEYS[1], string.format('%.17g %.0f', tokens, now), 'PX', string.format('%.0f', ttl))
end
return {allowed and 1 or 0, string.format('%.17g', tokens)}
`;

/** Takes one token. Rejects if Redis cannot. */
type TakeFromRedis = (id: string, plan: Plan) => Promise<RateVerdict>;

/** Returns the buckets on Redis. All processes that name the same Redis and prefix share them. */
function redisBuckets(client: Redis, prefix: string): TakeFromRedis {
  const take = redisScript(client, "takeToken", TAKE);
  return async (id, plan) => {
    const answer = await take(`${prefix}:rate:${id}`, plan.burst, plan.perSecond);
    const [allowed, tokens] = answer as [number, string];
    return verdictOf(plan, allowed === 1, Number(tokens));
  };
}
