/**
 * Traces the service's calls. Proves that no `202` and no `250` leaves before an fsync of the write-ahead log with
 * the message: `bun bench/prove/fsync.ts [--count=1000] [--control]`.
 * With `--control` the service commits with `synchronous=OFF`: the run must then end with 1.
 */
import { join } from "node:path";
import { benchFolder } from "../support/folder.ts";
import { readDurability } from "./support/durability.ts";
import { tryMail, trySend } from "./support/load.ts";
import { startGround } from "./support/service.ts";
import { mustTrace, traceCalls } from "./support/strace.ts";
import { allOf, atLeast, conclude, fact, isControl, none, numberOption } from "./support/table.ts";

const COUNT = numberOption("count", 1000);
/** Clients of each kind at a time. Few share a commit, so that the trace sees many commits. */
const CLIENTS = 4;
const LIMIT_MS = 300_000;
const CALLS = ["write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg", "fsync", "fdatasync"];
const SYNCHRONOUS_OFF = join(import.meta.dir, "support/synchronous-off.ts");

mustTrace();
const durability = readDurability();
const trace = traceCalls(benchFolder(), CALLS, durability.line);
const ground = await startGround({
  // The trace ignores the writes of workers.
  env: { ROLES: "api,smtp" },
  hook: false,
  launch: { wrap: trace.wrap, ...(isControl() ? { preload: SYNCHRONOUS_OFF } : {}) },
});

/** Brings one item of each number below the count, one after another. Returns the promised ids. */
async function bring(client: number, one: (n: number) => Promise<{ id: string | null }>): Promise<string[]> {
  const ids: string[] = [];
  const until = performance.now() + LIMIT_MS;
  for (let n = client; n < COUNT && performance.now() < until; n += CLIENTS) {
    const { id } = await one(n);
    if (id !== null) ids.push(id);
  }
  return ids;
}

const clients = Array.from({ length: CLIENTS }, (_, client) => client);
const { service } = ground;
const [sends, mails] = await Promise.all([
  Promise.all(clients.map((client) => bring(client, (n) => trySend(service, n)))),
  Promise.all(clients.map((client) => bring(client, (n) => tryMail(service, n)))),
]);
await ground.stop();
await trace.ended;
const keptOf = (ids: readonly string[]): number => ids.filter((id) => durability.kept.has(id)).length;
conclude(`${COUNT} sends and ${COUNT} messages under strace`, [
  atLeast("sends answered 202", sends.flat().length, COUNT),
  atLeast("messages answered 250", mails.flat().length, COUNT),
  fact("fsyncs of the write-ahead log", durability.syncs()),
  allOf("202s after an fsync of their message", keptOf(sends.flat()), COUNT),
  allOf("250s after an fsync of their message", keptOf(mails.flat()), COUNT),
  none("replies before that", durability.early.size),
]);
