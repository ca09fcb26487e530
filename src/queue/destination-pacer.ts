import { createHash } from "node:crypto";
import { DEFAULT_PREFIX } from "./bullmq.ts";
import { openAsking } from "./redis-asking.ts";
import { script } from "./redis-script.ts";
import type { QueueDeps } from "./trouble.ts";

/**
 * The next free moment of one key, which is taken by this call: microseconds from now. The server's clock is the one
 * that all processes share; a moment too far ahead comes of a clock that was put back.
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

/** Longest wait for a moment, microseconds, where one message a second or more may go. */
const LONGEST_WAIT_US = 10_000_000;
const SECOND_US = 1_000_000;

/** Milliseconds until the next moment of a key, which is taken by asking for it. */
export type PaceOf = (key: string) => number | Promise<number>;

/** Moments that all processes on one Redis share. */
export interface SharedPacer {
  /** Never rejects. */
  pace(key: string): Promise<number>;
  close(): void;
}

/**
 * Opens a pacer on Redis; never fails.
 * @param own paces in this process alone, while Redis is away or slow
 */
export function openSharedPacer(
  deps: QueueDeps,
  place: { redisUrl: string; prefix?: string },
  perSecond: number,
  own: PaceOf,
): SharedPacer {
  const { redisUrl, prefix = DEFAULT_PREFIX } = place;
  const asking = openAsking(deps, redisUrl, "destination rates are counted in this process only");
  const reserve = script(RESERVE);
  const spacing = Math.ceil(SECOND_US / perSecond);
  return {
    async pace(key) {
      // A destination's key names all its hosts, and may be long.
      const short = createHash("sha256").update(key).digest("base64url");
      const answer = await asking.ask(() =>
        reserve(asking.client, `${prefix}:pace:${short}`, spacing, Math.max(LONGEST_WAIT_US, spacing)),
      );
      const us = answer === null ? Number.NaN : Number(answer);
      return Number.isNaN(us) ? own(key) : us / 1000;
    },
    close: asking.close,
  };
}
