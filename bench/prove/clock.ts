/**
 * Sets the service's clock forward and back by an hour while mail is scheduled and the service restarts. Proves that
 * each message goes out once and none early: `bun bench/prove/clock.ts [--mails=300] [--control]`.
 * Needs libfaketime (`apt-get install faketime`). With `--control` the run must end with 1: the check then
 * expects each message half a minute later than it was scheduled, and one message that was never scheduled.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { benchFolder } from "../support/folder.ts";
import { FROM, startGround } from "./support/service.ts";
import { atLeast, atMost, conclude, fact, isControl, none, numberOption } from "./support/table.ts";

const MAILS = numberOption("mails", 300);
const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
const LIBRARIES = ["x86_64", "aarch64"].map(
  (machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`,
);
/** The library reads its file once a second. For this long after a step, the service may have either time. */
const STEP_BLUR_MS = 2500;
/** Latest time of a message after its scheduled time, without the time that the clock skipped. */
const LATEST_MS = 60_000;
const WAIT_LIMIT_MS = 60_000;
const POLL_MS = 100;
/** Lead of the control's scheduled times. */
const CONTROL_EARLY_MS = 30 * SECOND_MS;

/** Steps of the script, in seconds after the last message was scheduled. */
const SCRIPT: readonly { at: number; restart?: boolean; stepMs?: number }[] = [
  { at: 6, restart: true },
  { at: 12, stepMs: HOUR_MS },
  // While messages that became due together are being sent.
  { at: 13, restart: true },
  { at: 25, stepMs: -HOUR_MS },
  { at: 32, restart: true },
  { at: 42, stepMs: HOUR_MS, restart: true },
  { at: 50, stepMs: HOUR_MS },
];

const library = LIBRARIES.find((path) => existsSync(path));
if (library === undefined) throw new Error("libfaketime is not here: apt-get install faketime");
const offsetFile = join(benchFolder(), "offset");

/** Difference between the service's clock and ours, milliseconds, from each moment on. */
const offsets: { at: number; offset: number }[] = [];
function putClock(offset: number): void {
  offsets.push({ at: Date.now(), offset });
  writeFileSync(offsetFile, `${offset < 0 ? "" : "+"}${offset / SECOND_MS}\n`);
}

/** Returns the latest time that the service's clock can have shown at a moment of ours. */
function latestTime(at: number): number {
  const before = offsets.filter((step) => step.at <= at);
  const valid = before.filter(
    (_, index) => (before[index + 1]?.at ?? Number.POSITIVE_INFINITY) >= at - STEP_BLUR_MS,
  );
  return at + Math.max(...valid.map(({ offset }) => offset));
}

putClock(0);
const ground = await startGround({
  env: {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: offsetFile,
    // Timers continue: a step of the clock does not shorten a pause.
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    FAKETIME_CACHE_DURATION: "1",
  },
  hook: false,
});
const { service, sink } = ground;

/** Times all over the script's range: near now, in the hour that is skipped, and after it. */
function dueAfter(n: number): number {
  const spread = Math.random();
  if (n % 4 === 0) return 5 * SECOND_MS + spread * 40 * SECOND_MS;
  if (n % 4 === 1) return spread * HOUR_MS + 20 * SECOND_MS;
  return n % 4 === 2 ? HOUR_MS + spread * 60 * SECOND_MS : HOUR_MS + spread * HOUR_MS;
}

const due = new Map<string, number>();
async function schedule(n: number): Promise<void> {
  const to = `scheduled${n}@there${n % 5}.test`;
  const at = Math.floor(Date.now() + dueAfter(n));
  const asked = isControl() ? Math.max(at - CONTROL_EARLY_MS, Date.now() + 2 * SECOND_MS) : at;
  const { status } = await service.call("POST", "/v1/emails", {
    from: { email: FROM },
    to: [{ email: to }],
    subject: to,
    text: "x",
    scheduledAt: new Date(asked).toISOString(),
  });
  if (status !== 202) throw new Error(`a scheduled send is answered ${status}`);
  due.set(to, at);
}

for (let n = 0; n < MAILS; n++) await schedule(n);
if (isControl()) due.set("never@there0.test", Date.now() + HOUR_MS);
const began = Date.now();
let offset = 0;
let restarts = 0;
for (const { at, stepMs = 0, restart = false } of SCRIPT) {
  await Bun.sleep(Math.max(0, began + at * SECOND_MS - Date.now()));
  if (restart) {
    if ((await service.terminate()) !== 0) throw new Error("the service did not stop in order");
    restarts++;
  }
  if (stepMs !== 0) {
    offset += stepMs;
    putClock(offset);
  }
  if (restart) await service.start();
}
const until = Date.now() + (isControl() ? 10_000 : WAIT_LIMIT_MS);
while ([...due.keys()].some((to) => !sink.received.has(to)) && Date.now() < until) await Bun.sleep(POLL_MS);
// Time for a second copy to arrive, if there is one.
await Bun.sleep(5 * SECOND_MS);

let early = 0;
let latest = 0;
let earliest = Number.POSITIVE_INFINITY;
for (const [to, at] of due) {
  for (const time of sink.received.get(to)?.times ?? []) {
    const behind = latestTime(time) - at;
    if (behind < 0) early++;
    earliest = Math.min(earliest, behind);
    // Skipped time is not a delay: count from the first moment at which the clock showed the scheduled time.
    const shown = offsets.map((step, index) => {
      const end = offsets[index + 1]?.at ?? Number.POSITIVE_INFINITY;
      const moment = Math.max(step.at, at - step.offset);
      return moment < end ? moment : Number.POSITIVE_INFINITY;
    });
    latest = Math.max(latest, time - Math.min(...shown));
  }
}
const counts = [...due.keys()].map((to) => sink.received.get(to)?.count ?? 0);
await ground.stop();
conclude(`${MAILS} scheduled messages, a clock set by ±1 h`, [
  atLeast("messages scheduled", due.size, MAILS),
  fact("restarts", restarts),
  fact("steps of the clock", offsets.length - 1),
  none("messages that never went out", counts.filter((count) => count === 0).length),
  none("messages that went out twice", counts.filter((count) => count > 1).length),
  none("messages that went out early", early),
  fact("shortest delay, s", earliest / SECOND_MS),
  atMost("longest delay, s", latest / SECOND_MS, LATEST_MS / SECOND_MS),
]);
