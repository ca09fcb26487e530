/**
 * Makes the database's file calls fail (EIO and ENOSPC, injected by strace), then fills a small disk. Proves that
 * everything accepted is stored and nothing refused is sent: `bun bench/prove/disk.ts [--points=50] [--rounds=10]
 * [--control]`.
 * Needs strace, and root for the tmpfs. With `--control` the service takes a failed commit for a good one: the run
 * must then end with 1.
 */
import { join } from "node:path";
import { damageOf } from "./support/autopsy.ts";
import { type Bursts, burst, noBursts, type Numbers, RECOVERY_LIMIT_MS, recovered } from "./support/burst.ts";
import { check, checkedFindings, drained, unsettled } from "./support/check.ts";
import { type Ledger, openLedger } from "./support/ledger.ts";
import { type Ground, startGround } from "./support/service.ts";
import { mountSmallDisk, type SmallDisk } from "./support/small-disk.ts";
import { type Fault, inject, mustTrace } from "./support/strace.ts";
import {
  atLeast,
  atMost,
  conclude,
  fact,
  type Finding,
  isControl,
  none,
  numberOption,
  printFindings,
} from "./support/table.ts";

const POINTS = numberOption("points", 50);
const ROUNDS = numberOption("rounds", 10);
const WRITES = ["write", "pwrite64", "pwritev", "ftruncate"];
const SYNCS = ["fsync", "fdatasync"];
/** Bursts to wait for a fault. */
const BURSTS_PER_POINT = 6;
/** The failing call is one of this many: the commits of a burst make about this many writes, and a few syncs. */
const WRITE_SPAN = 120;
const SYNC_SPAN = 5;
const DISK_OCTETS = 24 * 1024 * 1024;
/** Maximum room that a full disk has left: less than a commit needs, so that some commits fail halfway. */
const LEFT_OCTETS = 160 * 1024;
/** Longest time that a disk stays full. It grows with each round, so that waiting code reaches its longest pause. */
const LONGEST_FULL_MS = 15_000;
/**
 * Time that the sink needs for a message. Messages accepted just before the disk is full are then delivered while it
 * is.
 */
const SINK_ANSWER_MS = 1000;
const BURST_PAUSE_MS = 100;
const STILL_LIMIT_MS = 30_000;
const DEAF_COMMIT = join(import.meta.dir, "support/deaf-commit.ts");
// A disk of a few megabytes is always low: without the watch it becomes full.
const ENV = {
  MIN_FREE_BYTES: "0",
  DELIVERY_RETRY_SECONDS: "1,2,5",
  WEBHOOK_RETRY_SECONDS: "0,1,2,5,5,5,5,5",
};

/** The faults of one error: single calls and all calls from one on, writes and syncs, each at other moments. */
function faultsOf(error: Fault["error"]): Fault[] {
  return Array.from({ length: POINTS }, (_, at) => {
    const [calls, span] = at % 2 === 0 ? [WRITES, WRITE_SPAN] : [SYNCS, SYNC_SPAN];
    const nth = 1 + ((at * 7) % span);
    return { calls, error, when: `${nth}${at % 4 < 2 ? "" : "+"}` };
  });
}

interface Scene {
  ground: Ground;
  ledger: Ledger;
  numbers: Numbers;
  seen: Bursts;
}

/**
 * Makes one fault: load until it hits, then strace is detached, then the time until all is well. Returns true if it
 * hit.
 */
async function strike({ ground, ledger, numbers, seen }: Scene, fault: Fault): Promise<boolean> {
  const { service } = ground;
  const file = join(service.folder, "postrider.db");
  const injection = await inject(service.pid(), [file, `${file}-wal`], fault);
  for (let at = 0; at < BURSTS_PER_POINT && injection.struck() === 0; at++)
    await burst(ground, ledger, numbers, seen);
  const struck = await injection.end();
  if (!service.alive()) throw new Error(`the service died of ${JSON.stringify(fault)}`);
  await recovered(ground, ledger, numbers, seen);
  return struck > 0;
}

/** Ends every scene: kills the service, checks its files, starts it again, and checks every promise. */
async function reckon({ ground, ledger, seen }: Scene): Promise<Finding[]> {
  await ground.service.kill();
  const damage = damageOf(ground);
  await ground.service.start();
  const promises = ledger.entries();
  await drained(ground, promises, isControl() ? 5000 : STILL_LIMIT_MS);
  const checked = await check(ground, promises);
  const stored = seen.refused.filter((to) => ground.sink.received.has(to));
  for (const line of [...seen.wrong, ...damage, ...stored].slice(0, 5)) console.error(line);
  await ledger.close();
  await ground.stop();
  return [
    fact("sends refused with 5xx and an envelope", seen.refusedSends),
    fact("messages refused with 451", seen.refusedMails),
    none("other answers and broken connections", seen.wrong.length),
    atLeast("refusals", seen.refusedSends + seen.refusedMails, 1),
    atMost("slowest recovery, s", Math.max(...seen.recoveries) / 1000, RECOVERY_LIMIT_MS / 1000),
    none("refused sends that went out", stored.length),
    none("faults of the file that SQLite finds", damage.length),
    ...checkedFindings(checked),
  ];
}

async function scene(env: Record<string, string> = {}, answerMs = 0): Promise<Scene> {
  const launch = isControl() ? { preload: DEAF_COMMIT } : {};
  const ground = await startGround({ env: { ...ENV, ...env }, launch, sink: { answerMs } });
  return {
    ground,
    ledger: await openLedger(join(ground.home, "ledger")),
    numbers: { next: 0 },
    seen: noBursts(),
  };
}

async function injected(error: Fault["error"]): Promise<Finding[]> {
  const stage = await scene();
  let struck = 0;
  for (const fault of faultsOf(error)) if (await strike(stage, fault)) struck++;
  return [atLeast(`points at which ${error} struck`, struck, POINTS), ...(await reckon(stage))];
}

async function full(disk: SmallDisk): Promise<Finding[]> {
  const stage = await scene({ DATA_DIR: disk.folder }, SINK_ANSWER_MS);
  const { ground, ledger, numbers, seen } = stage;
  const settled: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    // The outcomes of these cannot be recorded while the disk is full.
    await burst(ground, ledger, numbers, seen);
    disk.fill(Math.floor((LEFT_OCTETS * round) / ROUNDS));
    const until = performance.now() + Math.min(round * 1000, LONGEST_FULL_MS);
    do {
      await burst(ground, ledger, numbers, seen);
      await Bun.sleep(BURST_PAUSE_MS);
    } while (performance.now() < until);
    disk.free();
    const began = performance.now();
    await recovered(ground, ledger, numbers, seen);
    while (unsettled(ground) > 0 && performance.now() - began < STILL_LIMIT_MS)
      await Bun.sleep(BURST_PAUSE_MS);
    settled.push(performance.now() - began);
  }
  const slowest = Math.max(...settled) / 1000;
  return [
    fact("times the disk was full", ROUNDS),
    // The record of an outcome is tried again after at most ten seconds, and then takes its own time.
    atMost("slowest until no mail was open, s", slowest, RECOVERY_LIMIT_MS / 1000 + 1),
    ...(await reckon(stage)),
  ];
}

mustTrace();
const disk = mountSmallDisk(DISK_OCTETS);
const held = [
  printFindings("EIO", await injected("EIO")),
  printFindings("ENOSPC", await injected("ENOSPC")),
  printFindings("A full disk", await full(disk)),
];
conclude("Disk", [none("scenes whose goal does not hold", held.filter((one) => !one).length)]);
