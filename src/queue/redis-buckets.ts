import type { Redis } from "ioredis";
import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { Plan } from "../config.ts";
import { EPSILON, type Taken, takenOf } from "./token-bucket.ts";

/**
 * One token from one bucket, for all processes at once: a script runs alone on the server, and the server's is the
 * one clock they share. The value is `<tokens> <microseconds>`; a refusal leaves it, since what comes back is
 * reckoned from the last change. A bucket goes when it would be full again. The library hands in its points and their
 * duration last, and wants points consumed and the milliseconds until all are back, here as text with its fractions.
 */
const TAKE = `
local burst, epsilon = tonumber(ARGV[3]), ${EPSILON}
local rate = burst / tonumber(ARGV[4])
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
local untilFull = (burst - tokens) / rate * 1000
if allowed or now < at then
  local ttl = math.max(1, math.ceil(untilFull))
  redis.call('SET', KEYS[1], string.format('%.17g %.0f', tokens, now), 'PX', string.format('%.0f', ttl))
end
return {allowed and math.ceil(burst - tokens - epsilon) or burst + 1, string.format('%.17g', untilFull)}
`;

/** Takes one token; rejects where Redis cannot. */
export type TakeFromRedis = (id: string, plan: Plan) => Promise<Taken>;

/** Below a second of duration the library counts without the script; the script has no use for this one. */
const BY_SCRIPT = { customDuration: 1 };

/** Buckets on Redis, shared by all processes that name the same one. */
export function redisBuckets(client: Redis, prefix: string): TakeFromRedis {
  const limiters = new Map<Plan, RateLimiterRedis>();
  return async (id, plan) => {
    const limiter = limiters.get(plan) ?? limiterOf(client, prefix, plan);
    limiters.set(plan, limiter);
    try {
      return read(plan, true, await limiter.consume(id, 1, BY_SCRIPT));
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      return read(plan, false, refused);
    }
  };
}

function limiterOf(client: Redis, prefix: string, { burst, perSecond }: Plan): RateLimiterRedis {
  return new RateLimiterRedis({
    storeClient: client,
    keyPrefix: `${prefix}:rate`,
    points: burst,
    duration: burst / perSecond,
    customIncrTtlLuaScript: TAKE,
  });
}

function read(plan: Plan, allowed: boolean, { msBeforeNext }: RateLimiterRes): Taken {
  return takenOf(plan, allowed, plan.burst - (Number(msBeforeNext) / 1000) * plan.perSecond);
}
