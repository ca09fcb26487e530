import { createHash } from "node:crypto";
import type { Redis } from "ioredis";
import type { Plan } from "../config.ts";
import { EPSILON, type Taken, takenOf } from "./token-bucket.ts";

/**
 * One token from one bucket, for all processes at once: a script runs alone on the server, and the server's is the
 * one clock they share. The value is `<tokens> <microseconds>`; a refusal leaves it, since what comes back is
 * reckoned from the last change. A bucket goes when it would be full again.
 */
const TAKE = `
local rate, burst, epsilon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
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
  local untilFull = math.max(1, math.ceil((burst - tokens) / rate * 1000))
  redis.call('SET', KEYS[1], string.format('%.17g %.0f', tokens, now), 'PX', string.format('%.0f', untilFull))
end
return {allowed and 1 or 0, string.format('%.17g', tokens)}
`;

/** Takes one token; rejects where Redis cannot. */
export type TakeFromRedis = (id: string, plan: Plan) => Promise<Taken>;

/** Buckets on Redis, shared by all processes that name the same one. */
export function redisBuckets(client: Redis, prefix: string): TakeFromRedis {
  const sha = createHash("sha1").update(TAKE).digest("hex");
  return async (id, plan) => {
    const key = `${prefix}:rate:${id}`;
    const args = [plan.perSecond, plan.burst, EPSILON];
    let answer: unknown;
    try {
      answer = await client.evalsha(sha, 1, key, ...args);
    } catch (error) {
      // A server that was started or flushed anew does not know the script yet.
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      answer = await client.eval(TAKE, 1, key, ...args);
    }
    return read(answer, plan);
  };
}

function read(answer: unknown, plan: Plan): Taken {
  if (!Array.isArray(answer)) throw new Error("redis gave no pair");
  const tokens = Number(answer[1]);
  if (Number.isNaN(tokens)) throw new Error("redis gave no number of tokens");
  return takenOf(plan, answer[0] === 1, tokens);
}
