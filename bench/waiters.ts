/**
 * Measures requests that wait for a message: their memory, next to requests that a bare server does not answer, and the
 * time from a send to the answer of the one that waits for it, alone and among all others. `bun bench/waiters.ts
 * [--waiters=N] [--wakes=N] [--json=FILE]`. At most 1000 of a project wait, so there are several projects.
 */
import { join } from "node:path";
import { MAX_WAITS_PER_PROJECT } from "../src/flows/live/waits.ts";
import { freePort } from "../test/support/redis.ts";
import { type Child, startChild } from "./support/children.ts";
import { handOver, MOST } from "./support/figures.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import { printMarkdown } from "./support/inbound-table.ts";
import { numberOption } from "./support/options.ts";
import { DOMAIN, prepareData, type Service, startService } from "./support/service.ts";
import { quantile } from "./prove/support/table.ts";
import { waitingClient, type WaitingClient } from "./support/waiting-client.ts";

const WAITERS = numberOption("waiters", 10_000);
const WAKES = numberOption("wakes", 100);
/** Connections opened at a time: as many as a listener's queue holds. */
const AT_A_TIME = 100;
const WARM_WAKES = 100;
/** Requests that are answered at once, before anything is measured: each process keeps some memory for requests. */
const WARM_REQUESTS = 10_000;
const WARM_CONNECTIONS = 50;
/** Time for a process to settle and to collect garbage before its memory is read. */
const REST_MS = 10_000;
/** Time for a request to begin to wait. */
const BEGIN_MS = 50;
const LONGEST_SECONDS = 60;
const MEGABYTE = 1_000_000;

const home = benchFolder();
const prepared = await prepareData(home);

/** Returns keys of projects in which so many requests may wait, and one more in each. */
async function keysFor({ url }: Service): Promise<string[]> {
  const headers = { authorization: `Bearer ${prepared.accountKey}`, "content-type": "application/json" };
  const make = async (path: string, body: unknown): Promise<{ id: string; secret: string }> => {
    const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    // The part of the API's answer that this bench needs.
    return (await response.json()) as { id: string; secret: string };
  };
  const keys = [prepared.key];
  while (keys.length * (MAX_WAITS_PER_PROJECT - 1) < WAITERS) {
    const { id: senderId } = await make("/v1/senders", { name: `p${keys.length}`, plan: "unlimited" });
    keys.push((await make("/v1/api-keys", { name: "waits", senderId })).secret);
  }
  return keys;
}

/** Opens connections that each send a request which is not answered. */
async function openAll(port: number, keyOf: (nth: number) => string): Promise<WaitingClient[]> {
  const clients: WaitingClient[] = [];
  const open = async (nth: number): Promise<WaitingClient> => {
    const client = await waitingClient(port);
    const path = `/v1/emails?wait=${LONGEST_SECONDS}&to=person${nth}@there.example&q=Your%20code`;
    void client.ask(path, keyOf(nth)).then((answer) => {
      throw new Error(`a request did not wait: ${answer}`);
    });
    return client;
  };
  while (clients.length < WAITERS) {
    const first = clients.length;
    clients.push(...(await Promise.all(Array.from({ length: AT_A_TIME }, (_, nth) => open(first + nth)))));
  }
  return clients;
}

/** Sends requests that are answered at once. */
async function warm(port: number): Promise<void> {
  const many = async (): Promise<void> => {
    const client = await waitingClient(port);
    for (let nth = 0; nth < WARM_REQUESTS / WARM_CONNECTIONS; nth++)
      await client.ask(`/v1/emails?to=warm${nth}@there.example&q=Your%20code`, prepared.key);
    client.end();
  };
  await Promise.all(Array.from({ length: WARM_CONNECTIONS }, many));
}

/** Opens all connections. Returns by how much that makes the process grow, in MB, and the connections. */
async function growthOf(child: Child, port: number, keyOf: (nth: number) => string) {
  await Bun.sleep(REST_MS);
  const before = child.memory();
  const clients = await openAll(port, keyOf);
  await Bun.sleep(REST_MS);
  return { clients, growth: (child.memory() - before) / MEGABYTE };
}

/** Milliseconds to the answer of the request that waits, of each round. */
interface Wakes {
  /** From the send's own answer, which comes with its commit. */
  afterCommit: number[];
  /** From the send, which includes the commit. */
  afterSend: number[];
}

/** Sends a message again and again to a request that waits for it. */
async function wakes({ url, httpPort }: Service, count: number): Promise<Wakes> {
  const client = await waitingClient(httpPort);
  const headers = { authorization: `Bearer ${prepared.key}`, "content-type": "application/json" };
  const times: Wakes = { afterCommit: [], afterSend: [] };
  for (let wake = 0; wake < count; wake++) {
    const to = `${crypto.randomUUID()}@there.example`;
    let at = 0;
    const answered = client.ask(`/v1/emails?wait=20&to=${to}`, prepared.key).then((answer) => {
      at = performance.now();
      if (!answer.includes(to)) throw new Error(answer);
    });
    await Bun.sleep(BEGIN_MS);
    if (at !== 0) throw new Error("the request was answered before the send");
    const item = { from: `news@${DOMAIN}`, to: [to], subject: "Your code", text: "123456" };
    const sentAt = performance.now();
    const response = await fetch(`${url}/v1/emails`, { method: "POST", headers, body: JSON.stringify(item) });
    const committedAt = performance.now();
    if (response.status !== 202) throw new Error(await response.text());
    await answered;
    times.afterCommit.push(Math.max(0, at - committedAt));
    times.afterSend.push(at - sentAt);
  }
  client.end();
  return times;
}

async function floor(): Promise<number> {
  const port = freePort();
  const child = await startChild(
    [process.execPath, join(import.meta.dir, "support/floor-waiters.ts"), String(port)],
    { ready: "ready", log: join(home, "floor"), env: { BUN_JSC_forceRAMSize: "400000000" } },
  );
  await warm(port);
  const { clients, growth } = await growthOf(child, port, () => prepared.key);
  for (const client of clients) client.end();
  await child.end();
  return growth;
}

const bare = await floor();
const service = await startService(copyOf(prepared.folder), { ROLES: "api" });
const keys = await keysFor(service);
await warm(service.httpPort);
await wakes(service, WARM_WAKES);
const alone = await wakes(service, WAKES);
const { clients, growth } = await growthOf(
  service.child,
  service.httpPort,
  (nth) => keys[nth % keys.length] ?? "",
);
const among = await wakes(service, WAKES);
for (const client of clients) client.end();
await service.child.end();

function row({ afterCommit, afterSend }: Wakes): Record<string, number> {
  return {
    "p50 ms": quantile(afterCommit, 0.5),
    [MOST]: Math.max(...afterCommit),
    "p50 ms after the send": quantile(afterSend, 0.5),
    "most ms after the send": Math.max(...afterSend),
  };
}

const figures = {
  waiters: { count: clients.length, "growth MB": growth, "bare server MB": bare },
  alone: row(alone),
  among: row(among),
};
console.log(
  `${clients.length} waiters: ${growth.toFixed(1)} MB; the same at a bare server: ${bare.toFixed(1)} MB\n`,
);
printMarkdown(
  ["wake-up of one", ...Object.keys(figures.alone)],
  (["alone", "among"] as const).map((name) => [
    name,
    ...Object.values(figures[name]).map((value) => value.toFixed(1)),
  ]),
);
handOver(figures);
