import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { openBullQueue } from "../../src/queue/bullmq.ts";
import type { Job, Queue } from "../../src/queue/port.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { startRelay } from "../support/relay.ts";
import { until } from "../support/poll.ts";

setDefaultTimeout(90_000);

const MANY = 1000;
const LOOK_MS = 3000;
/** A worker polls once a second, and some commands of its chores are refused as well. */
const MOST_REFUSALS = 30;

let redis: TestRedis;
let queue: Queue | null = null;

beforeEach(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  await queue?.close(0);
  await redis.stop();
});

function openAt(port: number): Queue {
  const log = { info: () => undefined, warn: () => undefined };
  queue = openBullQueue({ clock: systemClock, log }, `redis://127.0.0.1:${port}`);
  return queue;
}

const job = (n: number): Job => ({ key: `key${n}`, lane: "lane" });

/** Commands that the server has refused since its counters were reset. */
async function refusals(): Promise<number> {
  const stats = await redis.command("INFO", "errorstats");
  return [...stats.matchAll(/:count=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

test("a Redis that refuses jobs while some wait is not polled all the time, and hands them out once it may", async () => {
  const at = openAt(redis.port);
  let done = 0;
  at.work("transmit", async () => void (await Bun.sleep(done++ === 0 ? 0 : 10)), 1);
  await at.add(
    "transmit",
    Array.from({ length: MANY }, (_, n) => job(n)),
  );
  await until(() => done > 0);
  await redis.command("ACL", "SETUSER", "default", "-evalsha");
  await until(async () => (await refusals()) > 0);
  await redis.command("CONFIG", "RESETSTAT");
  const before = done;
  await Bun.sleep(LOOK_MS);
  expect(done - before).toBe(0);
  expect(done).toBeLessThan(MANY);
  expect(await refusals()).toBeLessThan(MOST_REFUSALS);
  await redis.command("ACL", "SETUSER", "default", "+evalsha");
  await until(() => done > before);
});

test("if its name leads to another primary, a replica that keeps our connections is abandoned", async () => {
  const primary = await startRedis();
  const name = startRelay(redis.port);
  const at = openAt(name.port);
  const seen = new Set<string>();
  at.work("transmit", async ({ key }) => void seen.add(key), 4);
  await at.add("transmit", [job(0)]);
  await until(() => seen.size === 1);
  name.leadTo(primary.port);
  await redis.command("REPLICAOF", "127.0.0.1", String(primary.port));
  let n = 1;
  await until(async () => {
    await at.add("transmit", [job(n++)]).catch(() => undefined);
    return seen.size > 1;
  });
  await at.check();
  name.stop();
  await primary.stop();
});
