import { createHash } from "node:crypto";
import { DEFAULT_PREFIX } from "./port.ts";
import { openOptionalRedis, redisScript } from "./optional-redis.ts";
import type { QueueDeps } from "./limited-log.ts";

/**
 * Reserves the next free moment of one key, and returns the microseconds until then. All processes share the server's
 * clock. If that clock was set back, a stored moment may be too far ahead, so the wait is limited.
 */
const RESERVE = `
local spacing, longest = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local at = math.min(math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0')), now + longest)
local ttl = math.ceil((at + spacing - now) / 1000)
redis.call('SET', KEYS[1], string.format('%.0f', at + spacing), 'PX', string.format('%.0f', ttl))
return string.format('%.0f', at - now)
`;

/** Longest wait for a moment, microseconds, if the rate is one message per second or more. */
const LONGEST_WAIT_US = 10_000_000;
const MINUTE_US = 60_000_000;

/** Reserves a key's next slot at `perMinute`, and returns the milliseconds until then. */
export type PaceOf = (key: string, perMinute: number) => number | Promise<number>;

/** Moments that all processes on one Redis share. */
export interface SharedPacer {
  /** Never rejects. */
  pace(key: string, perMinute: number): Promise<number>;
  close(): void;
}

/**
 * Opens a pacer on Redis. Never fails.
 * @param own paces in this process only, while Redis is away or slow
 */
export function openSharedPacer(
  deps: QueueDeps,
  place: { redisUrl: string; prefix?: string },
  own: PaceOf,
): SharedPacer {
  const { redisUrl, prefix = DEFAULT_PREFIX } = place;
  const asking = openOptionalRedis(deps, redisUrl, "destination rates are counted in this process only");
  const reserve = redisScript(asking.client, "reserveMoment", RESERVE);
  return {
    async pace(key, perMinute) {
      const spacing = Math.ceil(MINUTE_US / perMinute);
      // The key of a destination names all its hosts, so it may be long.
      const short = createHash("sha256").update(key).digest("base64url");
      const answer = await asking.ask(() =>
        reserve(`${prefix}:pace:${short}`, spacing, Math.max(LONGEST_WAIT_US, spacing)),
      );
      const us = answer === null ? Number.NaN : Number(answer);
      return Number.isNaN(us) ? own(key, perMinute) : us / 1000;
    },
    close: asking.close,
  };
}
