/**
 * Measures accept, inbound, outbound and lists on each engine, with the primary at several distances:
 * `SQLD=/path/to/sqld bun bench/engines.ts [--only=NAME] [--seconds=N] [--connections=N] [--json=FILE]`.
 *
 * Each engine starts empty. Messages are accepted, listed, sent to a sink, and received. The round trip of the
 * table is measured: it is that of an HTTP request to the primary. The nearest one is that of loopback; the others
 * add a TCP proxy.
 */
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type EmptyDatabase, emptyDatabase, type EngineName } from "../test/support/database.ts";
import { freePort } from "../test/support/redis.ts";
import { NO_SQLD } from "../test/support/sqld.ts";
import { type Child, processorTime, startChild } from "./support/children.ts";
import "./support/end-on-signal.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import type { LoadOptions, LoadResult } from "./support/http-load.ts";
import { type MailFlags, openSender, send } from "./support/inbound-mail.ts";
import { printMarkdown } from "./support/inbound-table.ts";
import { chosen, numberOption } from "./support/options.ts";
import { DOMAIN, prepareData, type Prepared, type Service, startService } from "./support/service.ts";
import { median } from "./support/table.ts";

const MEASURE_MS = numberOption("seconds", 5) * 1000;
const CONNECTIONS = numberOption("connections", 50);
const WARM_MS = 3000;
/** Messages by which the listener is warmed up, and its rate is guessed. */
const WARM_MAILS = 300;
const MOST_MAILS = 10_000;
const SESSIONS = 20;
const OCTETS = 4096;
const DOMAINS = 50;
const PINGS = 50;
const LISTS = 100;
const POLL_MS = 50;
const SMTP_SINK = "/usr/sbin/smtp-sink";
const LOAD = join(import.meta.dir, "support/http-load.ts");

/** Each engine with the round trip that the link adds, milliseconds. */
const ENGINES: readonly (readonly [name: string, engine: { kind: EngineName; roundTripMs: number }])[] = [
  ["file", { kind: "file", roundTripMs: 0 }],
  ["primary, 0.2 ms", { kind: "sqld", roundTripMs: 0 }],
  ["primary, 1 ms", { kind: "sqld", roundTripMs: 1 }],
  ["primary, 20 ms", { kind: "sqld", roundTripMs: 20 }],
  ["replica, 0.2 ms", { kind: "sqld-replica", roundTripMs: 0 }],
  ["replica, 1 ms", { kind: "sqld-replica", roundTripMs: 1 }],
  ["replica, 20 ms", { kind: "sqld-replica", roundTripMs: 20 }],
];

const home = benchFolder();
const sinkPort = freePort();
const user = process.getuid?.() === 0 ? ["-u", "root"] : [];
await startChild([SMTP_SINK, ...user, `127.0.0.1:${sinkPort}`, "1000"], { log: join(home, "sink") });

/** A rate, and the processor time of each message in the service and in sqld, microseconds. */
interface Rate {
  perSecond: number;
  service: number;
  server: number;
}

interface Scene {
  folder: string;
  prepared: Prepared;
  database: EmptyDatabase;
}

async function load(port: number, key: string): Promise<LoadResult> {
  const options: LoadOptions = {
    port,
    key,
    from: `news@${DOMAIN}`,
    connections: CONNECTIONS,
    domains: DOMAINS,
    warmMs: WARM_MS,
    measureMs: MEASURE_MS,
  };
  const log = join(home, `load-${Bun.randomUUIDv7()}`);
  const child = await startChild([process.execPath, LOAD, JSON.stringify(options)], { log });
  return JSON.parse(await child.finished());
}

/** Starts a clock of processor time, which counts from here. */
function processorClock(
  child: Child,
  { sqld }: EmptyDatabase,
): (messages: number) => Omit<Rate, "perSecond"> {
  const serverTime = (): number => (sqld === null ? 0 : processorTime(sqld.pid()));
  const before = { service: child.processor(), server: serverTime() };
  return (messages) => ({
    service: (child.processor() - before.service) / messages,
    server: (serverTime() - before.server) / messages,
  });
}

async function accept(
  { child, httpPort }: Service,
  { prepared, database }: Scene,
): Promise<LoadResult & Rate> {
  const took = processorClock(child, database);
  const result = await load(httpPort, prepared.key);
  return { ...result, ...took(result.answered) };
}

/** Reads the messages sent so far in the file in which all writes end, and when the last of them was. */
function sentSoFar({ database }: Scene): { count: number; at: number } {
  using db = new Database(database.file ?? "", { readonly: true });
  const sql = `SELECT count(*) AS count, coalesce(max(last_event_at), 0) AS at FROM recipients WHERE status = 'sent'`;
  return db.query<{ count: number; at: number }, []>(sql).get() ?? { count: 0, at: 0 };
}

/** Sends what was accepted for some seconds, after some to warm up. Throws if that was too little. */
async function outbound(scene: Scene): Promise<Rate> {
  const { child } = await startService(scene.folder, {
    ROLES: "worker",
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${sinkPort}`,
    DESTINATION_CONNECTIONS: String(SESSIONS),
    DESTINATION_RATE: "1000000",
    ...scene.database.env,
  });
  while (sentSoFar(scene).count === 0) await Bun.sleep(POLL_MS);
  await Bun.sleep(WARM_MS);
  const warm = sentSoFar(scene);
  const took = processorClock(child, scene.database);
  await Bun.sleep(MEASURE_MS);
  const all = sentSoFar(scene);
  const rate = took(all.count - warm.count);
  await child.end();
  if (all.at - warm.at < MEASURE_MS / 2)
    throw new Error("everything was sent before the end of the measurement");
  return { ...rate, perSecond: (1000 * (all.count - warm.count)) / (all.at - warm.at) };
}

/** Receives as many messages as fit into the time. */
async function inbound(
  { child, smtpPort }: Service,
  { folder, database }: Scene,
  mail: MailFlags,
): Promise<Rate> {
  const some = { port: smtpPort, sessions: SESSIONS, kept: true, mail };
  const warmSeconds = await send(folder, { ...some, mails: WARM_MAILS });
  const mails = Math.min(MOST_MAILS, Math.ceil((WARM_MAILS / warmSeconds) * (MEASURE_MS / 1000)));
  const took = processorClock(child, database);
  const seconds = await send(folder, { ...some, mails });
  return { ...took(mails), perSecond: mails / seconds };
}

/** Reads first pages one after another. */
async function lists({ url }: Service, { prepared }: Scene): Promise<{ p50: number; p99: number }> {
  const headers = { authorization: `Bearer ${prepared.key}` };
  const times: number[] = [];
  for (let at = -LISTS / 2; at < LISTS; at++) {
    const began = performance.now();
    const answer = await fetch(`${url}/v1/emails?limit=50`, { headers });
    await answer.arrayBuffer();
    if (answer.status !== 200) throw new Error(`a list was answered with ${answer.status}`);
    if (at >= 0) times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  return { p50: median(times), p99: times[Math.floor(LISTS * 0.99)] ?? 0 };
}

/** Returns the median time of an HTTP request to the primary, milliseconds; 0 without one. */
async function roundTrip({ sqld }: EmptyDatabase): Promise<number> {
  if (sqld === null) return 0;
  const times: number[] = [];
  for (let at = 0; at < PINGS; at++) {
    const began = performance.now();
    await (await fetch(`${sqld.url}/health`)).arrayBuffer();
    times.push(performance.now() - began);
  }
  return median(times);
}

/** Measures an engine. Returns its row of the table. */
async function measure(name: string, kind: EngineName, roundTripMs: number): Promise<Record<string, number>> {
  const parent = join(home, name.replace(/\W+/g, "-"));
  // The folder that `prepareData` uses.
  const folder = join(parent, "prepared-rsa");
  mkdirSync(folder, { recursive: true });
  const database = await emptyDatabase(folder, kind, { roundTripMs });
  const prepared = await prepareData(parent, "rsa", database.env);
  const scene = { folder, prepared, database };
  const trip = await roundTrip(database);
  const sender = await openSender(parent, prepared.inbox, false);
  const service = await startService(folder, {
    ROLES: "api,smtp",
    DNS_SERVERS: sender.dns.address,
    ...database.env,
  });
  const accepted = await accept(service, scene);
  const listed = await lists(service, scene);
  const received = await inbound(service, scene, await sender.mail("text", OCTETS));
  await service.child.end();
  sender.dns.stop();
  const sent = await outbound(scene);
  await database.stop();
  const row = { "round trip, ms": trip, "accept p50, ms": accepted.p50, "accept p99, ms": accepted.p99 };
  for (const [way, rate] of Object.entries({ accept: accepted, inbound: received, outbound: sent }))
    Object.assign(row, {
      [`${way}/s`]: rate.perSecond,
      [`${way}, µs`]: rate.service,
      [`${way}, µs of sqld`]: rate.server,
    });
  return { ...row, "list p50, ms": listed.p50, "list p99, ms": listed.p99 };
}

const figures: Record<string, Record<string, number>> = {};
for (const [name, { kind, roundTripMs }] of chosen(ENGINES))
  if (kind !== "file" && NO_SQLD !== null) console.log(`${name}: skipped, ${NO_SQLD}`);
  else {
    figures[name] = await measure(name, kind, roundTripMs);
    console.error(name, JSON.stringify(figures[name]));
  }
const heads = Object.keys(Object.values(figures)[0] ?? {});
const shown = (value: number): string => value.toFixed(value < 10 ? 1 : 0);
printMarkdown(
  ["", ...heads],
  Object.entries(figures).map(([name, row]) => [name, ...heads.map((head) => shown(row[head] ?? 0))]),
);
handOver(figures);
process.exit(0);
