/**
 * Proves that a Redis that hangs, dies, forgets or is full loses nothing and locks no client out: `bun
 * bench/prove/redis.ts [--control] [--rounds=1] [--pause=10] [--only=FAULT]`. In full: `--rounds=5 --pause=60`.
 */
import { join } from "node:path";
import { startRedis } from "../../test/support/redis.ts";
import { printMarkdown } from "../support/inbound-table.ts";
import { check, checkedFindings, drained } from "./support/check.ts";
import { openLedger, recordNever } from "./support/ledger.ts";
import { endWithin } from "./support/limit.ts";
import { recipientOf, startLoad } from "./support/load.ts";
import { startGround } from "./support/service.ts";
import {
  allOf,
  atMost,
  conclude,
  fact,
  isControl,
  none,
  numberOption,
  option,
  quantile,
} from "./support/table.ts";

const SENDS_PER_SECOND = 30;
const MAILS_PER_SECOND = 5;
const CALM_MS = 4000;
const POLL_MS = 50;
const FLUSHES = 30;
const FLUSH_PAUSE_MS = 100;
const QUEUES = ["transmit", "retry", "push"];
/** Memory limit for Redis, below the memory that it uses. */
const EVICTED_OCTETS = 2000;
/** Time limit for the backlog after Redis is well again. */
const DRAIN_LIMIT_MS = 120_000;
/** Time for the rest of each fault, without the pauses. */
const ROUND_LIMIT_MS = 180_000;
/** Longest time without an arrival at the end of the run. After it, missing messages count as lost. */
const STILL_MS = 120_000;

const rounds = numberOption("rounds", 1);
const pauseMs = numberOption("pause", 10) * 1000;

const redis = await startRedis();
const pause = () => Bun.sleep(pauseMs);
/** The keys that Redis evicted when it had to evict some. */
let evicted = 0;

/** Each fault, from its beginning until Redis is well again. */
const FAULTS: Readonly<Record<string, () => Promise<void>>> = {
  async "stands still (SIGSTOP)"() {
    redis.freeze();
    await pause();
    redis.thaw();
  },
  async "killed, away, then empty"() {
    await redis.kill();
    await pause();
    await redis.restart();
  },
  "restarted empty at once": () => redis.restart(),
  async "FLUSHALL ten times a second"() {
    for (let times = 0; times < FLUSHES; times++) {
      await redis.command("FLUSHALL");
      await Bun.sleep(FLUSH_PAUSE_MS);
    }
  },
  // The worst that an eviction can leave: the jobs, and the keys that keep them from being added again, without their
  // lists.
  async "lists of waiting jobs gone, their keys kept"() {
    for (let times = 0; times < FLUSHES; times++) {
      await redis.command("DEL", ...QUEUES.map((name) => `postrider:${name}:wait`));
      await Bun.sleep(FLUSH_PAUSE_MS);
    }
  },
  async "maxmemory reached"() {
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    await pause();
    await redis.command("CONFIG", "SET", "maxmemory", "0");
  },
  async "maxmemory reached, all keys evicted"() {
    await redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random");
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    await pause();
    await redis.command("CONFIG", "SET", "maxmemory", "0");
    await redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  },
  async "maxmemory reached, some keys evicted"() {
    await redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random");
    for (const until = performance.now() + pauseMs; performance.now() < until; ) {
      const used = Number(/^used_memory:(\d+)/m.exec(await redis.command("INFO", "memory"))?.[1]);
      await redis.command("CONFIG", "SET", "maxmemory", String(used - EVICTED_OCTETS));
      await Bun.sleep(FLUSH_PAUSE_MS);
    }
    await redis.command("CONFIG", "SET", "maxmemory", "0");
    await redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
    evicted += Number(/^evicted_keys:(\d+)/m.exec(await redis.command("INFO", "stats"))?.[1]);
    await redis.command("CONFIG", "RESETSTAT");
  },
};
const faults = Object.entries(FAULTS).filter(([name]) => name.includes(option("only") ?? ""));
endWithin(60_000 + rounds * faults.length * (pauseMs + ROUND_LIMIT_MS));

const ground = await startGround({ env: { REDIS_URL: redis.url } });
const ledger = await openLedger(join(ground.home, "ledger"));
const load = startLoad(ground.service, {
  sendsPerSecond: SENDS_PER_SECOND,
  mailsPerSecond: MAILS_PER_SECOND,
  ledger,
});

/** Returns the number of promised sends that are not at the sink yet. */
function backlog(): string[] {
  const promised = ledger.entries().filter(({ kind }) => kind === "send");
  return promised.map(({ n }) => recipientOf(n)).filter((to) => !ground.sink.received.has(to));
}

/** Returns the milliseconds until all have arrived; more than the limit if they did not. */
async function gone(recipients: readonly string[]): Promise<number> {
  const began = performance.now();
  let left = recipients;
  while (performance.now() - began <= DRAIN_LIMIT_MS) {
    left = left.filter((to) => !ground.sink.received.has(to));
    if (left.length === 0) break;
    await Bun.sleep(POLL_MS);
  }
  return performance.now() - began;
}

interface Round {
  accepted: number;
  slowest: number;
  p95: number;
  backlog: number;
  drainMs: number;
}

async function suffer(fault: () => Promise<void>): Promise<Round> {
  await Bun.sleep(CALM_MS);
  load.forgetLatencies();
  await fault();
  const left = backlog();
  const { send } = load.latencies;
  const [accepted, slowest, p95] = [send.length, Math.max(0, ...send), quantile(send, 0.95)];
  return { accepted, slowest, p95, backlog: left.length, drainMs: await gone(left) };
}

const suffered = new Map<string, Round[]>();
for (let round = 0; round < rounds; round++)
  for (const [name, fault] of faults)
    suffered.set(name, [...(suffered.get(name) ?? []), await suffer(fault)]);
const unanswered = await load.stop(DRAIN_LIMIT_MS);
if (isControl()) await recordNever(ledger, "send");
const promises = ledger.entries();
await drained(ground, promises, isControl() ? CALM_MS : STILL_MS);
const checked = await check(ground, promises);
await ground.stop();
await redis.stop();

printMarkdown(
  ["Redis", "times", "accepted during it", "p95 ms", "slowest ms", "backlog at its end", "drained after s"],
  [...suffered].map(([name, all]) => [
    name,
    String(all.length),
    all.map(({ accepted }) => accepted).join(", "),
    all.map(({ p95 }) => p95.toFixed(1)).join(", "),
    all.map(({ slowest }) => slowest.toFixed(0)).join(", "),
    all.map((round) => round.backlog).join(", "),
    all.map(({ drainMs }) => (drainMs / 1000).toFixed(1)).join(", "),
  ]),
);
console.log("");
const all = [...suffered.values()].flat();
const refused = [...load.answers].filter(([said]) => !["send 202", "mail 250"].includes(said));
for (const [said, times] of refused) console.error(`${said}: ${times} times`);
conclude("redis", [
  fact("keys evicted where some were", evicted),
  ...checkedFindings(checked),
  none("recipients with several copies", checked.duplicates.length),
  none(
    "requests refused or broken",
    refused.reduce((sum, [, times]) => sum + times, 0),
  ),
  none("requests without an answer at the end", unanswered),
  allOf(
    "faults after which the backlog was gone within 2 min",
    all.filter(({ drainMs }) => drainMs <= DRAIN_LIMIT_MS).length,
    rounds * faults.length,
  ),
  atMost(
    "longest time until it was gone, s",
    Math.max(...all.map(({ drainMs }) => drainMs)) / 1000,
    DRAIN_LIMIT_MS / 1000,
  ),
]);
