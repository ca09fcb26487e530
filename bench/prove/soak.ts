/**
 * Runs the service for a long time at a steady load while its surroundings fail in turns. Proves that nothing is lost
 * and nothing grows: `bun bench/prove/soak.ts [--minutes=30] [--rate=25] [--control]`.
 * Kills the service in the first third of the time. The rest is one life, in which memory is measured.
 * With `--control` the check expects items that were never brought, the service leaks memory, and a reader keeps its
 * write-ahead log open. The run must then end with 1; from two minutes on, each of the three shows.
 */
import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { startRedis } from "../../test/support/redis.ts";
import { check, checkedFindings, drained } from "./support/check.ts";
import { killFault, type NamedFault, surroundingFaults } from "./support/faults.ts";
import { openLedger, recordNever } from "./support/ledger.ts";
import { startLoad } from "./support/load.ts";
import { type Ground, startGround } from "./support/service.ts";
import {
  atLeast,
  atMost,
  conclude,
  fact,
  type Finding,
  isControl,
  none,
  numberOption,
  quantile,
} from "./support/table.ts";
import { type Sample, slopePerMinute } from "./support/trend.ts";

const MINUTES = numberOption("minutes", 30);
const RATE = numberOption("rate", 25);
const RUN_MS = MINUTES * 60_000;
const KILLING_MS = RUN_MS / 3;
/** Part of the measured life in which caches fill. */
const WARM_SHARE = 0.4;
const SHORTEST_PAUSE_MS = 3000;
const LONGEST_PAUSE_MS = 12_000;
const SAMPLE_MS = 2000;
/** Maximum growth of memory over the measured time, as a share. More is not noise of the collector. */
const GROWTH_SHARE = 0.1;
/** The log is written back at 4 MiB. Eight times that is more than one reader explains. */
const WAL_LIMIT_MIB = 32;
const MEBIBYTE = 1024 * 1024;
const STOP_LIMIT_MS = 120_000;
const STILL_LIMIT_MS = 45_000;
const LEAK = join(import.meta.dir, "support/leak.ts");

const redis = await startRedis();
const env = {
  REDIS_URL: redis.url,
  DELIVERY_RETRY_SECONDS: "1,2,5,10",
  WEBHOOK_RETRY_SECONDS: "0,1,2,5,10,10,10,10,10,10,10,10",
  WEBHOOK_TIMEOUT_SECONDS: "3",
};
const ground = await startGround({ env, sink: { answerMs: 5 } });
const ledger = await openLedger(join(ground.home, "ledger"));

/** Begins the last life, with the control's leak and its reader, which keeps the log from being reused. */
async function lastLife({ service, file }: Ground): Promise<Database | null> {
  if (!isControl()) return null;
  await service.kill();
  await service.start({ env, preload: LEAK });
  const reader = new Database(file, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT COUNT(*) FROM messages").get();
  await recordNever(ledger, "send", "mail");
  return reader;
}

/** Makes one fault after another until the time is over. Returns how often each came. */
async function faultsUntil(at: number, faults: readonly NamedFault[]): Promise<Map<string, number>> {
  const came = new Map<string, number>();
  while (performance.now() < at) {
    await Bun.sleep(SHORTEST_PAUSE_MS + Math.random() * (LONGEST_PAUSE_MS - SHORTEST_PAUSE_MS));
    const fault = faults[Math.floor(Math.random() * faults.length)];
    if (fault === undefined) break;
    await fault.run();
    came.set(fault.name, (came.get(fault.name) ?? 0) + 1);
  }
  return came;
}

/** Returns the size of the write-ahead log. */
function walBytes(): number {
  const log = `${ground.file}-wal`;
  return existsSync(log) ? statSync(log).size : 0;
}

const memory: Sample[] = [];
let largestWal = 0;
const sampling = setInterval(() => {
  if (!ground.service.alive()) return;
  memory.push({ at: performance.now(), value: ground.service.memory() / MEBIBYTE });
  largestWal = Math.max(largestWal, walBytes() / MEBIBYTE);
}, SAMPLE_MS);

/** Returns the median of each fifth: the course of the figure. */
function fifths(values: readonly number[]): number[] {
  const length = Math.ceil(values.length / 5);
  return [0, 1, 2, 3, 4].map((at) => Math.round(quantile(values.slice(at * length, (at + 1) * length), 0.5)));
}

function growthFindings(samples: readonly Sample[]): Finding[] {
  const slope = slopePerMinute(samples);
  const values = samples.map(({ value }) => value);
  const minutes = ((samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0)) / 60_000;
  return [
    fact("measured minutes of the last life", minutes),
    atLeast("looks at its memory", samples.length, 10),
    fact("RSS, median, MiB", quantile(values, 0.5)),
    fact("RSS, medians of fifths, MiB", fifths(values).join(" → ")),
    fact("RSS, most, MiB", Math.max(...values)),
    fact("RSS slope, MiB a minute", slope),
    atMost(
      "RSS growth by that slope, %",
      ((slope * minutes) / quantile(values, 0.5)) * 100,
      GROWTH_SHARE * 100,
    ),
    atMost("largest write-ahead log, MiB", largestWal, WAL_LIMIT_MIB),
  ];
}

const began = performance.now();
const load = startLoad(ground.service, { sendsPerSecond: RATE, mailsPerSecond: RATE, ledger });
const faults = surroundingFaults(ground, redis);
const kill = killFault(ground, env);
// Every other fault of the first third is a kill.
const early = await faultsUntil(
  began + KILLING_MS,
  faults.flatMap((fault) => [fault, kill]),
);
const reader = await lastLife(ground);
const lifeBegan = performance.now();
const late = await faultsUntil(began + RUN_MS, faults);
clearInterval(sampling);
reader?.close();
const measuredFrom = lifeBegan + (performance.now() - lifeBegan) * WARM_SHARE;
const growth = growthFindings(memory.filter(({ at }) => at >= measuredFrom));
const unanswered = await load.stop(STOP_LIMIT_MS);
await ledger.close();
const promises = ledger.entries();
const drainMs = await drained(ground, promises, isControl() ? 5000 : STILL_LIMIT_MS);
const checked = await check(ground, promises);
const came = new Map(early);
for (const [name, count] of late) came.set(name, (came.get(name) ?? 0) + count);
const findings = [
  ...[...came].map(([name, count]) => fact(`fault: ${name}`, count)),
  atLeast("kills", came.get("kill -9") ?? 0, 1),
  ...growth,
  fact("second copies at the sink", ground.sink.copies() - ground.sink.received.size),
  fact("turns left out by the load", load.skipped()),
  none("items never answered", unanswered),
  fact("seconds until all had drained", drainMs / 1000),
  ...checkedFindings(checked),
];
await ground.stop();
await redis.stop();
conclude(`${MINUTES} minutes at ${RATE} sends and ${RATE} messages a second`, findings);
