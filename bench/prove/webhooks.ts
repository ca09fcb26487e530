/**
 * Proves that a bad webhook endpoint harms no other: `bun bench/prove/webhooks.ts [--control] [--only=KIND]
 * [--rounds=4] [--hung=100]`. Two services have the same load and fifty endpoints each; one of them has an endpoint
 * that behaves badly. Compares the waits of the other endpoints window by window, so that other work of the machine
 * does not count. The services change places from round to round.
 */
import { join } from "node:path";
import { printMarkdown } from "../support/inbound-table.ts";
import { forgetPeak, peakMemory } from "../support/peak-memory.ts";
import { median } from "../support/table.ts";
import {
  type BadEndpoint,
  type Badness,
  RETRY_AFTER_SECONDS,
  startBadEndpoint,
} from "./support/bad-endpoint.ts";
import { type GoodEndpoints, startGoodEndpoints } from "./support/good-endpoints.ts";
import { endWithin } from "./support/limit.ts";
import { type Ledger, openLedger } from "./support/ledger.ts";
import { type Load, startLoad } from "./support/load.ts";
import { expectOk, type Ground, startGround } from "./support/service.ts";
import { standStill } from "./support/stand-still.ts";
import {
  allOf,
  atMost,
  conclude,
  type Finding,
  isControl,
  none,
  numberOption,
  option,
  quantile,
} from "./support/table.ts";

const OTHERS = 49;
const SENDS_PER_SECOND = 4;
const WARM_MS = 4000;
const WINDOW_MS = 2500;
const WINDOWS = 4;
/** Time for running work of the previous slice to end. */
const SETTLE_MS = 3500;
const LIMIT_MS = 900_000;
const DRAIN_LIMIT_MS = 30_000;
/**
 * How much longer the slowest push of twenty to the other endpoints may take. Below a few milliseconds a ratio means
 * nothing.
 */
const FACTOR = 1.1;
const GRAIN_MS = 3;
/** Maximum extra memory of the service at its peak. */
const MEMORY_MIB = 64;
const MEBIBYTE = 1024 * 1024;
const TIMEOUT_SECONDS = 3;
const DELAYS_SECONDS = [0, 1, 2];
/** Random share by which a delay is lengthened, the pause of the sweep, and some time for a turn's work. */
const JITTER = 1.2;
const LATE_MS = 2500;
/** Tolerance between two clocks, milliseconds. */
const EARLY_MS = 20;

interface Kind {
  name: string;
  badness: Badness;
  /** Bad endpoints at a time. */
  count: number;
  /** Milliseconds until an attempt has failed, and the least delay that the endpoint asks for. */
  failsAfterMs: number;
  asksMs: number;
  /** Attempts at a delivery that fails for good. */
  attempts: number;
  /** True if there is room for each attempt to be made in time. */
  prompt: boolean;
}

const usual = { count: 1, failsAfterMs: 0, asksMs: 0, attempts: DELAYS_SECONDS.length, prompt: true };
const slow = { ...usual, failsAfterMs: TIMEOUT_SECONDS * 1000, prompt: false };
const hung = numberOption("hung", 100);
const KINDS: readonly Kind[] = [
  // The measure without a fault. On a machine that is too busy it shows as much as with one.
  { ...usual, name: "answers as it should", badness: "ok", attempts: 1 },
  { ...slow, name: "hangs", badness: "hang" },
  { ...slow, name: "drips an octet a second", badness: "drip" },
  { ...usual, name: "sends 10 GB", badness: "flood", attempts: 1 },
  { ...usual, name: "resets", badness: "reset" },
  { ...usual, name: "301", badness: "301" },
  { ...usual, name: "410", badness: "410", attempts: 1 },
  { ...usual, name: "429 and Retry-After", badness: "429", asksMs: RETRY_AFTER_SECONDS * 1000 },
  { ...slow, name: `${hung} more hang`, badness: "hang", count: hung },
];

endWithin(LIMIT_MS);
const rounds = numberOption("rounds", 4);
const chosen = KINDS.filter(({ name, count }) => name.includes(option("only") ?? "") && count > 0);
/** One of the two services, with its load and its good endpoints. */
interface Twin {
  ground: Ground;
  good: GoodEndpoints;
  ledger: Ledger;
  load: Load;
}

async function startTwin(): Promise<Twin> {
  const ground = await startGround({
    hook: false,
    env: {
      DELIVERY: "capture",
      // Fault of `--control`: retries come at once, and the service pauses at times while an endpoint is bad.
      WEBHOOK_RETRY_SECONDS: (isControl() ? [0, 0, 0] : DELAYS_SECONDS).join(","),
      WEBHOOK_TIMEOUT_SECONDS: String(TIMEOUT_SECONDS),
    },
  });
  const good = startGoodEndpoints(OTHERS);
  for (let nth = 0; nth < OTHERS; nth++) await subscribe(ground, good.url(nth));
  const ledger = await openLedger(join(ground.home, "ledger"));
  const load = startLoad(ground.service, { sendsPerSecond: SENDS_PER_SECOND, mailsPerSecond: 0, ledger });
  return { ground, good, ledger, load };
}

async function subscribe({ service }: Ground, url: string): Promise<string> {
  return (await expectOk(service, "POST", "/v1/webhooks", { url, eventTypes: ["delivery"] })).id;
}

/** Results of a slice of time: the other endpoints' p95 in each window, and the bad endpoint's view. */
interface Slice {
  p95s: { without: number; withIt: number }[];
  /** Highest memory, bytes. */
  peak: { without: number; withIt: number };
  endpoint: BadEndpoint;
  /** The webhook's record at the end. */
  webhook: { enabled: boolean; disabledReason: string | null };
  ended: number;
}

async function slice(bad: Twin, fine: Twin, { badness, count }: Kind): Promise<Slice> {
  const [endpoint, honest] = [startBadEndpoint(badness), startBadEndpoint("ok")];
  const { service } = bad.ground;
  const ids: string[] = [];
  const honestIds: string[] = [];
  for (let nth = 0; nth < count; nth++) {
    ids.push(await subscribe(bad.ground, endpoint.url(String(nth))));
    honestIds.push(await subscribe(fine.ground, honest.url(String(nth))));
  }
  const goOn = isControl() ? standStill(service.pid()) : () => undefined;
  for (const { ground } of [bad, fine]) forgetPeak(ground.service.pid());
  const p95s: Slice["p95s"] = [];
  for (let window = 0; window < WINDOWS; window++) {
    for (const { good } of [bad, fine]) good.forget();
    await Bun.sleep(WINDOW_MS);
    p95s.push({ without: p95(fine), withIt: p95(bad) });
  }
  goOn();
  const webhook = await expectOk(service, "GET", `/v1/webhooks/${ids[0]}`);
  for (const id of ids) await expectOk(service, "DELETE", `/v1/webhooks/${id}`);
  for (const id of honestIds) await expectOk(fine.ground.service, "DELETE", `/v1/webhooks/${id}`);
  endpoint.stop();
  honest.stop();
  const [without, withIt] = [fine, bad].map(({ ground }) => peakMemory(ground.service.pid()));
  return { p95s, peak: { without: without ?? 0, withIt: withIt ?? 0 }, endpoint, webhook, ended: Date.now() };
}

function p95({ good }: Twin): number {
  return quantile(good.latencies(), 0.95);
}

/** Returns the deliveries with an attempt that came too early, too late or once too often, or did not come. */
function offSchedule(kind: Kind, { endpoint, ended }: Slice): number {
  const dueMs = DELAYS_SECONDS.slice(1).map((seconds) => Math.max(seconds * 1000, kind.asksMs));
  const longest = dueMs.reduce((sum, due) => sum + due * JITTER + LATE_MS, 0);
  let off = 0;
  for (const times of endpoint.attempts.values()) {
    const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0) - kind.failsAfterMs);
    const early = gaps.some((gap, at) => gap < (dueMs[at] ?? Number.POSITIVE_INFINITY) - EARLY_MS);
    const late = kind.prompt && gaps.some((gap, at) => gap > (dueMs[at] ?? 0) * JITTER + LATE_MS);
    const over = ended - (times[0] ?? ended) > longest;
    const missing = kind.prompt && over && times.length < kind.attempts;
    if (early || late || missing || times.length > kind.attempts) off++;
  }
  return off;
}

interface Row {
  kind: Kind;
  without: number;
  withIt: number;
  /** Median of the windows' ratios, and of their differences. */
  ratio: number;
  more: number;
  deliveries: number;
  attempts: number;
  off: number;
  growth: number;
  written: number;
  disabled: number;
}

function rowOf(kind: Kind, slices: readonly Slice[]): Row {
  const windows = slices.flatMap(({ p95s }) => p95s);
  const total = (of: (one: Slice) => number) => slices.reduce((sum, one) => sum + of(one), 0);
  return {
    kind,
    without: median(windows.map(({ without }) => without)),
    withIt: median(windows.map(({ withIt }) => withIt)),
    ratio: median(windows.map(({ without, withIt }) => withIt / without)),
    more: median(windows.map(({ without, withIt }) => withIt - without)),
    deliveries: total(({ endpoint }) => endpoint.attempts.size),
    attempts: total(({ endpoint }) => [...endpoint.attempts.values()].flat().length),
    off: total((one) => offSchedule(kind, one)),
    growth: Math.max(...slices.map(({ peak }) => peak.withIt - peak.without)) / MEBIBYTE,
    written: total(({ endpoint }) => endpoint.written()) / MEBIBYTE,
    disabled: total(({ webhook }) => (!webhook.enabled && /410/.test(webhook.disabledReason ?? "") ? 1 : 0)),
  };
}

const first = await startTwin();
const second = await startTwin();
await Bun.sleep(WARM_MS);
const slices = new Map<Kind, Slice[]>();
for (let round = 0; round < rounds; round++)
  for (const kind of chosen) {
    await Bun.sleep(SETTLE_MS);
    const [bad, fine] = round % 2 === 0 ? [first, second] : [second, first];
    slices.set(kind, [...(slices.get(kind) ?? []), await slice(bad, fine, kind)]);
  }
const rows = [...slices].map(([kind, all]) => rowOf(kind, all));
const twins = [first, second];
await Promise.all(twins.map(({ load }) => load.stop(DRAIN_LIMIT_MS)));

/** Returns the events that one of the good endpoints did not get. */
function untold(): number {
  return twins.reduce((sum, { good, ledger }) => {
    const messages = ledger.entries().map(({ id }) => id);
    return sum + good.told.reduce((of, told) => of + messages.filter((id) => !told.has(id)).length, 0);
  }, 0);
}

for (const until = performance.now() + DRAIN_LIMIT_MS; untold() > 0 && performance.now() < until; )
  await Bun.sleep(WINDOW_MS);
for (const { ground, good } of twins) {
  await ground.stop();
  good.stop();
}

const round1 = (value: number): string => String(Math.round(value * 10) / 10);
printMarkdown(
  [
    "endpoint",
    "other endpoints' p95 without ms",
    "with ms",
    "middle ratio",
    "its deliveries",
    "attempts",
    "off schedule",
    "peak RSS more MiB",
    "octets written MiB",
  ],
  rows.map(({ kind, without, withIt, ratio, deliveries, attempts, off, growth, written }) => [
    kind.name,
    ...[without, withIt].map(round1),
    ratio.toFixed(2),
    ...[deliveries, attempts, off].map(String),
    ...[growth, written].map(round1),
  ]),
);
console.log("");
const quick = ({ ratio, more }: Row) => ratio <= FACTOR || more <= GRAIN_MS;
const findings: Finding[] = [
  allOf(
    `kinds with which the other endpoints' p95 is at most ${FACTOR}x, or ${GRAIN_MS} ms more`,
    rows.filter(quick).length,
    rows.length,
  ),
  allOf(
    "kinds whose endpoint was pushed to",
    rows.filter(({ deliveries }) => deliveries > 0).length,
    rows.length,
  ),
  none(
    "deliveries off their schedule",
    rows.reduce((sum, { off }) => sum + off, 0),
  ),
  atMost("peak RSS more than without, MiB", Math.max(...rows.map(({ growth }) => growth)), MEMORY_MIB),
  none("events that one of the other endpoints never got", untold()),
];
const gone = rows.find(({ kind }) => kind.badness === "410");
if (gone !== undefined)
  findings.push(allOf("endpoints with 410 disabled with the reason", gone.disabled, rounds));
conclude("webhooks", findings);
