import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { openSharedPacer, type SharedPacer } from "../../src/queue/destination-pacer.ts";
import { ASK_WAIT_MS } from "../../src/queue/optional-redis.ts";
import { patientClock } from "../support/patient-clock.ts";
import { freePort, startRedis, type TestRedis } from "../support/redis.ts";

setDefaultTimeout(90_000);

/** The moment that a pacer of the process itself gives; no shared moment is equal to it. */
const OWN = 123_456;
let redis: TestRedis;
const opened: SharedPacer[] = [];
const log = { info() {}, warn() {} };
/** Waits for Redis without a limit, because on a busy machine an answer may exceed the usual one. */
const PATIENT = patientClock(ASK_WAIT_MS);

/** A pacer with one rate. */
interface PacerOfRate {
  pace(key: string): Promise<number>;
}

function open(perSecond: number, prefix: string, redisUrl = redis.url, clock: Clock = PATIENT): PacerOfRate {
  const pacer = openSharedPacer({ clock, log }, { redisUrl, prefix }, () => OWN);
  opened.push(pacer);
  return { pace: (key) => pacer.pace(key, perSecond * 60) };
}

/** The first moment that Redis gives. Until it is connected, the process paces itself. */
async function connected(pacer: PacerOfRate): Promise<void> {
  while ((await pacer.pace("warm-up")) === OWN) await Bun.sleep(5);
}

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(() => {
  for (const pacer of opened.splice(0)) pacer.close();
});
afterAll(() => redis.stop());

test("processes on one Redis share the moments of a destination, which are evenly spaced", async () => {
  const pacers = [open(2, "shared"), open(2, "shared")];
  await Promise.all(pacers.map(connected));
  const startedAt = systemClock.now();
  // Half a second apart, less the time that the calls themselves took.
  for (let turn = 0; turn < 6; turn++) {
    const wait = (await pacers[turn % 2]?.pace("mx:a.test:25")) ?? OWN;
    const spent = systemClock.now() - startedAt;
    expect(wait).toBeLessThanOrEqual(turn * 500);
    expect(wait).toBeGreaterThanOrEqual(Math.max(0, turn * 500 - spent - 1));
  }
  expect(await pacers[0]?.pace("mx:b.test:25")).toBe(0);
});

test("two prefixes have separate moments, and a key leaves nothing behind when its moment has passed", async () => {
  const [one, two] = [open(1000, "one"), open(1000, "two")];
  await Promise.all([connected(one), connected(two)]);
  expect([await one.pace("a"), await two.pace("a")]).toEqual([0, 0]);
  while ((await redis.command("keys", "one:pace:*")).trim() !== "") await Bun.sleep(5);
});

test("no moment is more than ten seconds ahead, or one interval if that is longer", async () => {
  const [quick, slow] = [open(1, "quick"), open(0.05, "slow")];
  await Promise.all([connected(quick), connected(slow)]);
  const last = async (pacer: PacerOfRate): Promise<number> => {
    let wait = 0;
    for (let turn = 0; turn < 15; turn++) wait = await pacer.pace("a");
    return wait;
  };
  expect(await last(quick)).toBe(10_000);
  expect(await last(slow)).toBe(20_000);
});

test("each process paces itself if Redis is away, or does not answer in time", async () => {
  expect(await open(1, "none", `redis://127.0.0.1:${freePort()}`).pace("a")).toBe(OWN);
  const pacer = open(1, "frozen", redis.url, systemClock);
  await connected(pacer);
  redis.freeze();
  const startedAt = systemClock.now();
  expect(await pacer.pace("a")).toBe(OWN);
  expect(systemClock.now() - startedAt).toBeLessThan(ASK_WAIT_MS * 20);
  redis.thaw();
});
