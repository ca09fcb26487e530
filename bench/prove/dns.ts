/**
 * Proves that a DNS resolver in trouble loses no mail and slows no client: `bun bench/prove/dns.ts [--control]
 * [--seconds=12] [--rounds=2] [--only=TROUBLE]`. Runs one load with the resolver well and in trouble, in turns.
 */
import { join } from "node:path";
import { printMarkdown } from "../support/inbound-table.ts";
import { median } from "../support/table.ts";
import { check, checkedFindings, drained } from "./support/check.ts";
import { type FrontMode, startDnsFront } from "./support/dns-front.ts";
import { openLedger, recordNever } from "./support/ledger.ts";
import { endWithin } from "./support/limit.ts";
import { recipientOf, startLoad } from "./support/load.ts";
import { startGround } from "./support/service.ts";
import { standStill } from "./support/stand-still.ts";
import { allOf, conclude, isControl, none, numberOption, option, quantile } from "./support/table.ts";

const SENDS_PER_SECOND = 50;
const MAILS_PER_SECOND = 2;
const WARM_MS = 5000;
const WINDOW_MS = 4000;
/** Time for remembered answers to expire. */
const FORGET_MS = 2000;
const POLL_MS = 100;
/** Time limit for deferred mail to be delivered after the resolver is well again. */
const DRAIN_LIMIT_MS = 60_000;
const STILL_MS = 30_000;
const LIMIT_MS = 900_000;
/** How much longer the slowest send of a hundred may take. Below a few milliseconds a ratio means nothing. */
const FACTOR = 1.2;
const GRAIN_MS = 3;
const RETRY_SECONDS = "5,10";

const TROUBLES: readonly (readonly [name: string, mode: FrontMode])[] = [
  ["dead: closed port", "dead"],
  ["silent", "silent"],
  ["SERVFAIL", "servfail"],
  ["10 s late", "late"],
];

endWithin(LIMIT_MS);
const rounds = numberOption("rounds", 2);
const windows = Math.ceil((numberOption("seconds", 12) * 1000) / WINDOW_MS);
const troubles = TROUBLES.filter(([name]) => name.includes(option("only") ?? ""));
const ground = await startGround();
const { service, sink } = ground;
const front = await startDnsFront(ground.dns.port);
await service.terminate();
await service.start({ env: { DNS_SERVERS: front.address, DELIVERY_RETRY_SECONDS: RETRY_SECONDS } });
const ledger = await openLedger(join(ground.home, "ledger"));
const load = startLoad(service, {
  sendsPerSecond: SENDS_PER_SECOND,
  mailsPerSecond: MAILS_PER_SECOND,
  ledger,
});

/** Returns the p99 of sends in each window of a slice of time. */
async function measure(): Promise<number[]> {
  const p99s: number[] = [];
  for (let window = 0; window < windows; window++) {
    const { send } = load.latencies;
    const before = send.length;
    await Bun.sleep(WINDOW_MS);
    p99s.push(quantile(send.slice(before), 0.99));
  }
  return p99s;
}

/** Returns the number of messages in a status, up to one page. */
async function count(status: string): Promise<number> {
  const { body } = await service.call("GET", `/v1/emails?direction=outbound&status=${status}&limit=100`);
  return body.data.length;
}

/** Returns the milliseconds until all promised copies have arrived; NaN if they did not. */
async function caughtUp(): Promise<number> {
  const began = performance.now();
  while (performance.now() - began < DRAIN_LIMIT_MS) {
    if (sink.copies() >= ledger.count("send") - SENDS_PER_SECOND) return performance.now() - began;
    await Bun.sleep(POLL_MS);
  }
  return Number.NaN;
}

interface Row {
  name: string;
  /** The p99 of each window. */
  well: number[];
  trouble: number[];
  /** Sends begun in trouble, and the number of them that arrived during the trouble. */
  begun: number;
  arrived: number;
  /** The longest that a message waited for its 250, seconds. */
  slowestMail: number;
  asked: number;
  delayed: number;
  lost: number;
  drainMs: number[];
}

async function suffer(row: Row, mode: FrontMode): Promise<void> {
  load.forgetLatencies();
  row.well.push(...(await measure()));
  await front.set(mode);
  await Bun.sleep(FORGET_MS);
  const goOn = isControl() ? standStill(service.pid()) : () => undefined;
  const [first, asked] = [load.begun().send, front.asked()];
  row.trouble.push(...(await measure()));
  goOn();
  for (let n = first; n < load.begun().send; n++, row.begun++)
    if (sink.received.has(recipientOf(n))) row.arrived++;
  row.asked += front.asked() - asked;
  row.delayed += await count("delivery_delayed");
  for (const status of ["bounced", "failed", "rejected"]) row.lost += await count(status);
  await front.set("well");
  row.drainMs.push(await caughtUp());
  row.slowestMail = Math.max(row.slowestMail, ...load.latencies.mail.map((ms) => ms / 1000));
}

await Bun.sleep(WARM_MS);
const rows: Row[] = [];
for (const [name, mode] of troubles) {
  const none = { begun: 0, arrived: 0, slowestMail: 0, asked: 0, delayed: 0, lost: 0 };
  const row: Row = { name, well: [], trouble: [], ...none, drainMs: [] };
  for (let round = 0; round < rounds; round++) await suffer(row, mode);
  rows.push(row);
}
const unanswered = await load.stop(DRAIN_LIMIT_MS);
if (isControl()) await recordNever(ledger, "send");
const promises = ledger.entries();
await drained(ground, promises, isControl() ? WARM_MS : STILL_MS);
const checked = await check(ground, promises);
await ground.stop();
front.stop();

const round1 = (value: number): string => String(Math.round(value * 10) / 10);
printMarkdown(
  [
    "resolver",
    "send p99 well ms",
    "send p99 in trouble ms",
    "ratio",
    "questions",
    "sends in trouble",
    "arrived during it",
    "put off (100: or more)",
    "bounced or failed",
    "all arrived after s",
    "slowest 250 s",
  ],
  rows.map(({ name, well, trouble, begun, arrived, slowestMail, asked, delayed, lost, drainMs }) => [
    name,
    ...[median(well), median(trouble)].map(round1),
    (median(trouble) / median(well)).toFixed(2),
    ...[asked, begun, arrived, delayed, lost].map(String),
    drainMs.map((ms) => round1(ms / 1000)).join(", "),
    round1(slowestMail),
  ]),
);
console.log("");
const quick = ({ well, trouble }: Row): boolean =>
  median(trouble) <= Math.max(FACTOR * median(well), median(well) + GRAIN_MS);
/** If mail gets through, the trouble proves nothing. Some mail was on its way when it began. */
const waited = ({ begun, arrived }: Row): boolean => arrived < begun / 2;
// Without DNS a policy of `reject` cannot be ruled out: the client gets 451 and brings the message again.
const refused = [...load.answers].filter(([said]) => !["send 202", "mail 250", "mail 451"].includes(said));
for (const [said, times] of refused) console.error(`${said}: ${times} times`);
conclude("dns", [
  allOf(
    `troubles in which send p99 is at most ${FACTOR}x, or ${GRAIN_MS} ms more`,
    rows.filter(quick).length,
    rows.length,
  ),
  allOf("troubles in which most mail waited", rows.filter(waited).length, rows.length),
  none(
    "messages bounced, failed or rejected",
    rows.reduce((sum, { lost }) => sum + lost, 0),
  ),
  allOf(
    "troubles after which all mail arrived within a minute",
    rows.filter(({ drainMs }) => !drainMs.some(Number.isNaN)).length,
    rows.length,
  ),
  ...checkedFindings(checked),
  none("recipients with several copies", checked.duplicates.length),
  none(
    "sends refused or broken",
    refused.filter(([said]) => said.startsWith("send")).reduce((sum, [, times]) => sum + times, 0),
  ),
  none("requests without an answer at the end", unanswered),
]);
