/**
 * Proves that slow clients do not slow other clients: `bun bench/prove/slow.ts [--control] [--http=2000]
 * [--smtp=2000] [--idle=10000] [--seconds=16] [--rounds=3]`. Measures one live load without them and with them, in
 * turns.
 */
import { join } from "node:path";
import { type Child, startChild } from "../support/children.ts";
import { median } from "../support/table.ts";
import { endWithin } from "./support/limit.ts";
import { openLedger } from "./support/ledger.ts";
import { startLoad } from "./support/load.ts";
import { INBOX, startGround } from "./support/service.ts";
import type { SlowOptions, SlowState } from "./support/slow-options.ts";
import { standStill } from "./support/stand-still.ts";
import { atLeast, atMost, conclude, fact, isControl, none, numberOption, quantile } from "./support/table.ts";

const SENDS_PER_SECOND = 25;
const MAILS_PER_SECOND = 25;
const WARM_MS = 5000;
const WINDOW_SECONDS = 4;
const OPEN_LIMIT_MS = 120_000;
const POLL_MS = 500;
const REST_MS = 3000;
const STOP_LIMIT_MS = 30_000;
const LIMIT_MS = 360_000;
/** How much longer the slowest of twenty live requests may take. */
const FACTOR = 2;
/** Share of the wanted connections that must be open; with fewer the run proves nothing. */
const SHARE_STANDING = 0.9;
const MEBIBYTE = 1024 * 1024;

const seconds = numberOption("seconds", 16);
const rounds = numberOption("rounds", 3);
const counts = {
  http: numberOption("http", 2000),
  smtp: numberOption("smtp", 2000),
  idle: numberOption("idle", 10_000),
};
const total = counts.http + counts.smtp + counts.idle;
endWithin(LIMIT_MS);

const ground = await startGround();
const { service, home } = ground;
const ledger = await openLedger(join(home, "ledger"));
const load = startLoad(service, {
  sendsPerSecond: SENDS_PER_SECOND,
  mailsPerSecond: MAILS_PER_SECOND,
  ledger,
});

/** Measurements of the live load over some time. */
interface Slice {
  /** Milliseconds, window by window. */
  send: number[][];
  mail: number[][];
  memory: number;
}

async function measure(): Promise<Slice> {
  const slice: Slice = { send: [], mail: [], memory: 0 };
  for (let window = 0; window < seconds / WINDOW_SECONDS; window++) {
    load.forgetLatencies();
    await Bun.sleep(WINDOW_SECONDS * 1000);
    slice.send.push([...load.latencies.send]);
    slice.mail.push([...load.latencies.mail]);
  }
  return { ...slice, memory: service.memory() };
}

/** Resolves when all slow clients are connected, or as many as possible. */
async function openSlow(round: number): Promise<Child> {
  const { httpPort, smtpPort, key } = service;
  const wanted: SlowOptions = { httpPort, smtpPort, key, inbox: INBOX, ...counts };
  const clients = await startChild(
    [process.execPath, join(import.meta.dir, "support/slow-clients.ts"), JSON.stringify(wanted)],
    { ready: "standing", log: join(home, `slow-${round}`) },
  );
  const until = performance.now() + OPEN_LIMIT_MS;
  while (sum(stateOf(clients.output())) < total && performance.now() < until) await Bun.sleep(POLL_MS);
  await Bun.sleep(REST_MS);
  return clients;
}

/** Returns the last whole line that the slow clients have printed. */
function stateOf(output: string): SlowState {
  return JSON.parse(output.slice(0, output.lastIndexOf("\n")).split("\n").at(-1) ?? "");
}

function sum({ standing }: SlowState): number {
  return Object.values(standing).reduce((total, one) => total + one, 0);
}

await Bun.sleep(WARM_MS);
const without: Slice[] = [await measure()];
const withThem: Slice[] = [];
let state: SlowState = { standing: {}, reopened: 0 };
for (let round = 0; round < rounds; round++) {
  const clients = await openSlow(round);
  const goOn = isControl() ? standStill(service.pid()) : () => undefined;
  withThem.push(await measure());
  goOn();
  state = stateOf(clients.output());
  await clients.end();
  await Bun.sleep(REST_MS);
  without.push(await measure());
}
const unanswered = await load.stop(STOP_LIMIT_MS);
const refused = [...load.answers].filter(([said]) => !["send 202", "mail 250"].includes(said));
for (const [said, times] of refused) console.error(`${said}: ${times} times`);
await ground.stop();

/** Returns the median of the p95s of short windows, so that a moment of other work does not count. */
const p95 = (kind: "send" | "mail", slices: readonly Slice[]) =>
  median(slices.flatMap((slice) => slice[kind].map((window) => quantile(window, 0.95))));
const memory = (slices: readonly Slice[]) => median(slices.map((slice) => slice.memory)) / MEBIBYTE;
const waits = (kind: "send" | "mail") => [
  fact(`${kind} p95 without, ms`, p95(kind, without)),
  fact(`${kind} p95 with them, ms`, p95(kind, withThem)),
  atMost(`${kind} p95 with them, of that without`, p95(kind, withThem) / p95(kind, without), FACTOR, "x"),
];
conclude("slow", [
  ...Object.entries(state.standing).map(([kind, standing]) => fact(`standing, ${kind}`, standing)),
  fact("closed by the service and opened again", state.reopened),
  atLeast("connections that stand", sum(state), SHARE_STANDING * total),
  ...waits("send"),
  ...waits("mail"),
  fact("RSS without, MiB", memory(without)),
  fact("RSS with them, MiB", memory(withThem)),
  none(
    "live requests refused or broken",
    refused.reduce((sum, [, times]) => sum + times, 0),
  ),
  none("live requests without an answer at the end", unanswered),
]);
