/**
 * Kills the service at random moments under load, with both queues in turn, and compares every `202` and `250` with
 * the arrivals: `bun bench/prove/crash.ts [--kills=60] [--rate=50] [--control]`.
 * With `--control` the check expects a send and a message that were never brought: the run must then end with 1.
 */
import { join } from "node:path";
import { startRedis, type TestRedis } from "../../test/support/redis.ts";
import { inFlightOf } from "./support/autopsy.ts";
import { check, checkedFindings, drained } from "./support/check.ts";
import { openLedger, recordNever } from "./support/ledger.ts";
import { type Load, startLoad } from "./support/load.ts";
import { type Ground, startGround } from "./support/service.ts";
import { atLeast, conclude, fact, type Finding, isControl, none, numberOption } from "./support/table.ts";

const KILLS = numberOption("kills", 60);
const RATE = numberOption("rate", 50);
/** Longest life after the process is ready; for every sixth life, after its start. */
const LONGEST_LIFE_MS = 5000;
const START_KILLS = 6;
/** Share of kills that must hit a working service: other kills prove little. */
const AT_WORK = 0.75;
/** Time between a message's end and the sink's 250: it is in flight for at least this long. */
const SINK_ANSWER_MS = 30;
/** Load after the last kill. */
const LAST_LIFE_MS = 3000;
const STOP_LIMIT_MS = 120_000;
const STILL_LIMIT_MS = 30_000;

/** The state at one kill. */
interface Kill {
  queue: "in the process" | "BullMQ";
  /** Recipients whose delivery had begun and had no result in the database. */
  inFlight: string[];
  /** True if the process had become ready before. */
  ready: boolean;
}

async function killOnce(ground: Ground, redis: TestRedis, at: number): Promise<Kill> {
  const queue = at % 2 === 0 ? "in the process" : "BullMQ";
  const env: Record<string, string> = queue === "BullMQ" ? { REDIS_URL: redis.url } : {};
  let ready = false;
  const starting = ground.service.start({ env }).then(
    () => {
      ready = true;
    },
    (error: unknown) => error,
  );
  if (at % START_KILLS !== 0) await starting;
  await Bun.sleep(Math.random() * LONGEST_LIFE_MS);
  await ground.service.kill();
  const wasReady = ready;
  await starting;
  return { queue, inFlight: inFlightOf(ground), ready: wasReady };
}

/** Returns the extra copies that no kill explains. Each kill that caught a recipient in flight explains one. */
function unexplained(ground: Ground, kills: readonly Kill[]): number {
  const caught = new Map<string, number>();
  for (const { inFlight } of kills) for (const to of inFlight) caught.set(to, (caught.get(to) ?? 0) + 1);
  let found = 0;
  for (const [to, { count }] of ground.sink.received)
    if (count - 1 > (caught.get(to) ?? 0)) {
      found++;
      console.error(`${to} came ${count} times and was in flight at ${caught.get(to) ?? 0} kills`);
    }
  return found;
}

function killFindings(ground: Ground, kills: readonly Kill[], load: Load): Finding[] {
  const bull = kills.filter(({ queue }) => queue === "BullMQ").length;
  const inFlight = kills.map((kill) => kill.inFlight.length);
  const repeats = [...ground.sink.received.values()].reduce((sum, { count }) => sum + count - 1, 0);
  const broken = (load.answers.get("send broken") ?? 0) + (load.answers.get("mail broken") ?? 0);
  return [
    fact("kills, queue in the process", kills.length - bull),
    fact("kills, BullMQ", bull),
    atLeast("kills of a service at work", kills.filter(({ ready }) => ready).length, kills.length * AT_WORK),
    fact("answers", [...load.answers].map(([said, count]) => `${said}: ${count}`).join(", ")),
    fact("turns left out by the load", load.skipped()),
    atLeast("tries that had no answer", broken, 1),
    fact(
      "deliveries in flight at kills",
      inFlight.reduce((sum, count) => sum + count, 0),
    ),
    fact("most of them at one kill", Math.max(0, ...inFlight)),
    fact("second copies at the sink", repeats),
    none("second copies that were not in flight at a kill", unexplained(ground, kills)),
  ];
}

const ground = await startGround({
  sink: { answerMs: SINK_ANSWER_MS },
  env: { DELIVERY_RETRY_SECONDS: "1,2,5", WEBHOOK_RETRY_SECONDS: "0,1,2,5,5,5,5,5" },
});
const redis = await startRedis();
const ledger = await openLedger(join(ground.home, "ledger"));
if (isControl()) await recordNever(ledger, "send", "mail");
const load = startLoad(ground.service, { sendsPerSecond: RATE, mailsPerSecond: RATE, ledger });
await Bun.sleep(Math.random() * LONGEST_LIFE_MS);
await ground.service.kill();
const kills: Kill[] = [{ queue: "in the process", inFlight: inFlightOf(ground), ready: true }];
while (kills.length < KILLS) kills.push(await killOnce(ground, redis, kills.length));
await ground.service.start();
await Bun.sleep(LAST_LIFE_MS);
const unanswered = await load.stop(STOP_LIMIT_MS);
await ledger.close();
const promises = ledger.entries();
const drainMs = await drained(ground, promises, isControl() ? 5000 : STILL_LIMIT_MS);
const checked = await check(ground, promises);
const findings = [
  ...killFindings(ground, kills, load),
  fact("seconds until all had drained", drainMs / 1000),
  none("items never answered", unanswered),
  ...checkedFindings(checked),
];
await ground.stop();
await redis.stop();
conclude(`${KILLS} kills under ${RATE} sends and ${RATE} messages a second`, findings);
