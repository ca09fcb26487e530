import type { Redis } from "ioredis";
import type { Plan } from "../config/families.ts";
import { redisScript } from "./optional-redis.ts";
import { EPSILON, type RateVerdict, verdictOf } from "./token-bucket.ts";

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
export type TakeFromRedis = (id: string, plan: Plan) => Promise<RateVerdict>;

/** Returns the buckets on Redis. All processes that name the same Redis and prefix share them. */
export function redisBuckets(client: Redis, prefix: string): TakeFromRedis {
  const take = redisScript(client, "takeToken", TAKE);
  return async (id, plan) => {
    const answer = await take(`${prefix}:rate:${id}`, plan.burst, plan.perSecond);
    const [allowed, tokens] = answer as [number, string];
    return verdictOf(plan, allowed === 1, Number(tokens));
  };
}
