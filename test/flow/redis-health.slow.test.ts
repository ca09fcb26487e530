import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, rmSync } from "node:fs";
import { systemClock } from "../../src/clock.ts";
import { type QueueParts, queueChecks } from "../../src/flows/health/queues.ts";
import { databaseRefusal, redisFacts } from "../../src/queue/redis-facts.ts";
import { openBullQueue } from "../../src/queue/bullmq.ts";
import { newFolder } from "../support/folder.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { postrider } from "./command-program.ts";

setDefaultTimeout(90_000);

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

/** Redis has 16 databases by default. */
const NO_DATABASE = "/99";

test("a database that Redis does not have is not replaced by another: a start refuses it, and makes nothing", async () => {
  const folder = newFolder("command");
  const env = { DATA_DIR: folder, HOST: "127.0.0.1", PORT: "0", SMTP_PORT: "0" };
  const ran = await postrider(["serve"], { ...env, REDIS_URL: redis.url + NO_DATABASE });
  expect([ran.code, ran.stdout, readdirSync(folder)]).toEqual([78, "", []]);
  expect(ran.stderr).toContain("REDIS_URL names a database that its Redis does not give (ERR DB index");
  rmSync(folder, { recursive: true });
});

test("a queue that finds it missing later, when Redis is back, is not ready, and doctor says the same", async () => {
  const log = { info: () => undefined, warn: () => undefined };
  const queue = openBullQueue({ clock: systemClock, log }, redis.url + NO_DATABASE);
  await expect(queue.check()).rejects.toThrow("ERR DB index is out of range");
  await expect(redisFacts(redis.url + NO_DATABASE)).rejects.toThrow("ERR DB index is out of range");
  await queue.close(1000);
});

test("a user who may not choose a database gets the first one, and is refused any other", async () => {
  await redis.command("acl", "setuser", "bound", "on", ">secret", "~*", "+@all", "-select");
  const url = redis.url.replace("//", "//bound:secret@");
  expect(await databaseRefusal(url)).toBeNull();
  expect(await databaseRefusal(`${url}/1`)).toStartWith("NOPERM");
  expect(await databaseRefusal(url.replace("secret", "wrong"))).toBeNull();
  expect(await databaseRefusal(`${url.replace("secret", "wrong")}/1`)).toBeNull();
});

test("missing abilities of a Redis are reported, the worst first", async () => {
  expect(await finding()).toStartWith("warn keeps no file");
  await set("appendonly", "yes");
  expect(await finding()).toBe("ok answers, evicts nothing and keeps a file.");
  const used = Number(/used_memory:(\d+)/.exec(await redis.command("info", "memory"))?.[1]);
  await set("maxmemory", String(Math.round(used * 1.06)));
  expect(await finding()).toMatch(/^warn uses 9\d % of its memory limit/);
  await set("maxmemory", String(Math.round(used / 2)));
  expect(await finding()).toMatch(/^fail uses [12]\d\d % of its memory limit/);
  await set("maxmemory", "0");
  await set("maxmemory-policy", "allkeys-lru");
  expect(await finding()).toStartWith("fail drops entries");
  await redis.command("replicaof", "127.0.0.1", String(primary.port));
  expect(await finding()).toBe("fail is a replica and takes no writes.");
});
