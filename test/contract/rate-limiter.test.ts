import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { openRateLimiter, type RateBuckets, type RateLimits } from "../../src/queue/rate-limiter.ts";
import { MAX_ASKING, ASK_AWAY_MS, ASK_WAIT_MS } from "../../src/queue/optional-redis.ts";
import { manualClock } from "../support/manual-clock.ts";
import { patientClock } from "../support/patient-clock.ts";
import { freePort, startRedis, type TestRedis } from "../support/redis.ts";

// A busy machine is slow to kill a server and start it again.
setDefaultTimeout(90_000);

const LIMITS: RateLimits = {
  defaultPlan: "slow",
  dkimKeysPerHour: 0,
  plans: {
    // Slow, so that the test's own time on a real server adds no token.
    slow: { perSecond: 0.01, burst: 5 },
    uneven: { perSecond: 0.03, burst: 7 },
    wide: { perSecond: 0.01, burst: 100_000 },
    unlimited: null,
  },
};

let redis: TestRedis;
const warnings: string[] = [];
const opened: RateBuckets[] = [];
let prefixes = 0;

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(() => {
  for (const buckets of opened.splice(0)) buckets.close();
  warnings.length = 0;
});
afterAll(() => redis.stop());

function open(clock: Clock, redisUrl: string | null, prefix = `test${++prefixes}`): RateBuckets {
  const log = { info() {}, warn: (message: string) => void warnings.push(message) };
  const buckets = openRateLimiter({ clock, log }, { redisUrl, prefix }, LIMITS);
  opened.push(buckets);
  return buckets;
}

/** Takes from made-up buckets until one of them shows in Redis: from then on the limiter counts there. */
async function connected(buckets: RateBuckets, prefix: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    await buckets.take(`probe${tries}`, "wide");
    if ((await redis.command("EXISTS", `${prefix}:rate:probe${tries}`)) === "1") return;
  }
}

/** Waits for Redis without a limit, because on a busy machine an answer may exceed the usual one. */
const PATIENT = patientClock(ASK_WAIT_MS);

async function openOnRedis(clock: Clock = PATIENT, prefix = `test${++prefixes}`) {
  const buckets = open(clock, redis.url, prefix);
  await connected(buckets, prefix);
  return { buckets, prefix };
}

/** Advances time by moving a bucket's own past back, because the server's clock cannot be set. */
const AGE = `local left, at = string.match(redis.call('GET', KEYS[1]), '^(%S+) (%S+)$')
redis.call('SET', KEYS[1], left .. ' ' .. string.format('%.0f', at - ARGV[1] * 1000), 'KEEPTTL')`;

interface Adapter {
  buckets: RateBuckets;
  /** Seconds begun since it was opened, by its clock, in addition to those that `advance` adds. */
  spent(): number;
  advance(id: string, ms: number): Promise<void>;
  /** Sets the wall clock back. */
  setBack(id: string, ms: number): Promise<void>;
}

const ADAPTERS: readonly { name: string; start: () => Promise<Adapter> }[] = [
  {
    name: "in the process",
    async start() {
      const clock = manualClock();
      return {
        buckets: open(clock, null),
        spent: () => 0,
        advance: async (_, ms) => clock.advance(ms),
        setBack: async (_, ms) => clock.step(-ms),
      };
    },
  },
  {
    name: "on Redis",
    async start() {
      const { buckets, prefix } = await openOnRedis();
      const openedAt = systemClock.now();
      const advance = async (id: string, ms: number) => {
        await redis.command("EVAL", AGE, "1", `${prefix}:rate:${id}`, String(ms));
      };
      return {
        buckets,
        spent: () => Math.ceil((systemClock.now() - openedAt) / 1000),
        advance,
        setBack: (id, ms) => advance(id, -ms),
      };
    },
  },
];

async function passed(buckets: RateBuckets, id: string, plan: string, takes: number): Promise<number> {
  let count = 0;
  for (let at = 0; at < takes; at++) if ((await buckets.take(id, plan))?.allowed) count++;
  return count;
}

for (const { name, start } of ADAPTERS) {
  describe(`the rate limiter ${name}`, () => {
    test("allows a burst and returns the rest, then refuses until there is a token again", async () => {
      const { buckets, advance, spent } = await start();
      /** Takes, and compares the seconds it returns with these, less the test's own time. */
      const takes = async (wanted: { allowed: boolean; remaining: number }, reset: number, retry: number) => {
        const { resetSeconds = 0, retryAfterSeconds = 0, ...rest } = (await buckets.take("a", "slow")) ?? {};
        expect(rest).toEqual({ ...wanted, limit: 5 });
        for (const [told, most] of [
          [resetSeconds, reset],
          [retryAfterSeconds, retry],
        ] as const) {
          expect(told).toBeLessThanOrEqual(most);
          expect(told).toBeGreaterThanOrEqual(Math.max(0, most - spent()));
        }
      };
      for (const remaining of [4, 3, 2, 1, 0])
        await takes({ allowed: true, remaining }, (5 - remaining) * 100, 0);
      await takes({ allowed: false, remaining: 0 }, 500, 100);
      await advance("a", 60_000);
      await takes({ allowed: false, remaining: 0 }, 440, 40);
      await advance("a", 40_000);
      expect(await passed(buckets, "a", "slow", 3)).toBe(1);
    });

    test("allows the burst plus the rate times the time in the long run, whenever it is called", async () => {
      const { buckets, advance } = await start();
      let count = await passed(buckets, "a", "uneven", 10);
      for (let step = 0; step < 20; step++) {
        await advance("a", step % 2 === 0 ? 30_000 : 70_000);
        count += await passed(buckets, "a", "uneven", 5);
      }
      // 20 steps of 50 s on average, at 0.03 a second, after a burst of 7.
      expect(count).toBe(7 + 30);
    });

    test("never fills a bucket above its burst", async () => {
      const { buckets, advance } = await start();
      await buckets.take("a", "slow");
      await advance("a", 1_000_000_000);
      expect(await passed(buckets, "a", "slow", 20)).toBe(5);
    });

    test("gives requests that come together exactly the available tokens", async () => {
      const { buckets } = await start();
      const takes = Array.from({ length: 50 }, () => buckets.take("a", "slow"));
      expect((await Promise.all(takes)).filter((taken) => taken?.allowed)).toHaveLength(5);
    });

    test("keeps buckets separate", async () => {
      const { buckets } = await start();
      await passed(buckets, "a", "slow", 6);
      expect(await buckets.take("b", "slow")).toMatchObject({ allowed: true, remaining: 4 });
    });

    test("a smaller plan takes effect at once", async () => {
      const { buckets } = await start();
      await buckets.take("a", "wide");
      expect(await buckets.take("a", "slow")).toMatchObject({ limit: 5, remaining: 4 });
    });

    test("a plan without limit is not counted, and an unknown one counts as the default", async () => {
      const { buckets } = await start();
      expect(await buckets.take("a", "unlimited")).toBeNull();
      expect(await buckets.take("a", "gone")).toMatchObject({ limit: 5, remaining: 4 });
      expect(await buckets.take("a", "constructor")).toMatchObject({ limit: 5, remaining: 3 });
    });

    test("setting the clock back neither fills nor blocks a bucket", async () => {
      const { buckets, advance, setBack, spent } = await start();
      await passed(buckets, "a", "slow", 5);
      await setBack("a", 3_600_000);
      const refused = await buckets.take("a", "slow");
      expect([refused?.allowed, 100 - (refused?.retryAfterSeconds ?? 0) <= spent()]).toEqual([false, true]);
      await advance("a", 100_000);
      expect(await passed(buckets, "a", "slow", 2)).toBe(1);
    });
  });
}

describe("the rate limiter on Redis", () => {
  test("shares its buckets with other processes", async () => {
    const first = await openOnRedis();
    const second = await openOnRedis(PATIENT, first.prefix);
    const takes = Array.from({ length: 20 }, (_, at) =>
      (at % 2 === 0 ? first : second).buckets.take("a", "slow"),
    );
    expect((await Promise.all(takes)).filter((taken) => taken?.allowed)).toHaveLength(5);
  });

  test("the rate limiter on Redis keeps a bucket no longer than it takes to fill", async () => {
    const { buckets, prefix } = await openOnRedis();
    await buckets.take("a", "slow");
    const ttl = Number(await redis.command("PTTL", `${prefix}:rate:a`));
    expect(ttl).toBeGreaterThan(90_000);
    expect(ttl).toBeLessThanOrEqual(100_000);
  });

  test("continues when the server has lost its script", async () => {
    const { buckets } = await openOnRedis();
    await buckets.take("a", "slow");
    await redis.command("SCRIPT", "FLUSH");
    expect(await buckets.take("a", "slow")).toMatchObject({ remaining: 3 });
    expect(warnings).toEqual([]);
  });

  test("the rate limiter on Redis counts in the process if a key has another type", async () => {
    const { buckets, prefix } = await openOnRedis();
    await redis.command("SET", `${prefix}:rate:a`, "nonsense");
    expect(await buckets.take("a", "slow")).toMatchObject({ allowed: true, remaining: 4 });
    expect(warnings).toEqual(["request rates are counted in this process only"]);
  });

  test("the rate limiter on Redis counts in the process before it has reached the server", async () => {
    const buckets = open(systemClock, `redis://127.0.0.1:${freePort()}`);
    expect(await passed(buckets, "a", "slow", 10)).toBe(5);
  });

  test("a server that has died fails no request, and is used again when it is back", async () => {
    const { buckets, prefix } = await openOnRedis();
    await redis.kill();
    expect(await passed(buckets, "a", "slow", 10)).toBe(5);
    await redis.restart();
    await connected(buckets, prefix);
    expect(await redis.command("EXISTS", `${prefix}:rate:a`)).toBe("0");
  });

  test("a server that hangs delays a request by at most its time limit, and later ones not at all", async () => {
    const clock = manualClock();
    const { buckets, prefix } = await openOnRedis(clock);
    redis.freeze();
    try {
      const asked = [buckets.take("a", "slow"), buckets.take("a", "slow")];
      clock.advance(ASK_WAIT_MS);
      expect(await Promise.all(asked)).toMatchObject([{ remaining: 4 }, { remaining: 3 }]);
      expect(warnings).toEqual(["request rates are counted in this process only"]);
      // The clock stands: a request that waited for Redis now would wait for ever.
      expect(await passed(buckets, "a", "slow", 10)).toBe(3);
      // The probe still finds it hanging, and no request waits for the probe.
      clock.advance(ASK_AWAY_MS);
      expect(await passed(buckets, "a", "slow", 1)).toBe(0);
      clock.advance(ASK_WAIT_MS);
    } finally {
      redis.thaw();
    }
    while ((await redis.command("EXISTS", `${prefix}:rate:back`)) !== "1") {
      clock.advance(ASK_AWAY_MS);
      await redis.command("PING");
      await buckets.take("back", "wide");
    }
    expect(clock.pending()).toBe(0);
  });

  test("one request over the number that may wait for a hanging server does not wait", async () => {
    const clock = manualClock();
    const { buckets } = await openOnRedis(clock);
    redis.freeze();
    try {
      const waiting = Array.from({ length: MAX_ASKING }, () => buckets.take("a", "wide"));
      expect(await buckets.take("b", "slow")).toMatchObject({ allowed: true, remaining: 4 });
      clock.advance(ASK_WAIT_MS);
      expect((await Promise.all(waiting)).every((taken) => taken?.allowed)).toBe(true);
    } finally {
      redis.thaw();
    }
  });
});
