import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { type QueueParts, queueChecks } from "../../src/flows/health/queues.ts";
import { redisFacts } from "../../src/queue/redis-facts.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";

let redis: TestRedis;
let primary: TestRedis;
beforeAll(async () => {
  [redis, primary] = await Promise.all([startRedis(), startRedis()]);
});
afterAll(() => Promise.all([redis.stop(), primary.stop()]));

const set = (name: string, value: string) => redis.command("config", "set", name, value);

async function finding() {
  const parts: Pick<QueueParts, "redis"> = { redis: () => redisFacts(redis.url) };
  const db = (): never => {
    throw new Error("the database is not asked");
  };
  const check = queueChecks({ ...parts, db, clock: systemClock })[0];
  const found = await check?.run();
  return `${found?.status} ${found?.message.replace(/^Redis \S+ /, "")}`;
}

test("what a Redis cannot do for the queues is said of it, the worst first", async () => {
  expect(await finding()).toStartWith("warn keeps no file");
  await set("appendonly", "yes");
  expect(await finding()).toBe("ok answers, evicts nothing and keeps a file");
  const used = Number(/used_memory:(\d+)/.exec(await redis.command("info", "memory"))?.[1]);
  await set("maxmemory", String(Math.round(used * 1.06)));
  expect(await finding()).toMatch(/^warn uses 9\d % of its memory limit/);
  await set("maxmemory", String(Math.round(used / 2)));
  expect(await finding()).toMatch(/^fail uses [12]\d\d % of its memory limit/);
  await set("maxmemory", "0");
  await set("maxmemory-policy", "allkeys-lru");
  expect(await finding()).toStartWith("fail drops entries");
  await redis.command("replicaof", "127.0.0.1", String(primary.port));
  expect(await finding()).toBe("fail is a replica and takes no writes");
});
