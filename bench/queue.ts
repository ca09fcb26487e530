/**
 * Measures the cost of a long queue. It compares the rate from a short and a long queue to a sink, and takes the delay
 * of a message while other messages wait for a dead destination. `bun bench/queue.ts [--only=NAME] [--rounds=N] [--long=N] [--dead=N]
 * [--json=FILE]`. Takes over two minutes per round.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { startDns } from "../test/support/dns.ts";
import { startMx } from "../test/support/mx.ts";
import { freePort, startRedis } from "../test/support/redis.ts";
import { startChild } from "./support/children.ts";
import { handOver, rowFigures } from "./support/figures.ts";
import { fillQueue, moveTo } from "./support/fill-queue.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import { chosen, numberOption, rounds } from "./support/options.ts";
import { DOMAIN, prepareData, startService } from "./support/service.ts";
import { median, PROCESSOR, printTable, type Row } from "./support/table.ts";

const SMTP_SINK = "/usr/sbin/smtp-sink";
const SHORT = 5_000;
const LONG = numberOption("long", 100_000);
const DOMAINS = 50;
/** Unmeasured messages first, and the most that are measured. */
const WARM = 1_000;
const MEASURED = 10_000;
const DEAD = numberOption("dead", 50_000);
const PROBES = 30;
const PROBE_PAUSE_MS = 500;
const POLL_MS = 100;
/** Time limit for the messages of one run to leave. */
const LIMIT_MS = 120_000;
const MEGABYTE = 1_000_000;

const home = benchFolder();
const prepared = await prepareData(home);

/** Measures rate, processor time and memory of a relay while its queue is long. */
async function relay(queued: number, redisUrl = ""): Promise<Row> {
  const folder = await fillQueue(copyOf(prepared.folder), prepared, queued, DOMAINS);
  const port = freePort();
  const user = process.getuid?.() === 0 ? ["-u", "root"] : [];
  const sink = await startChild([SMTP_SINK, ...user, `127.0.0.1:${port}`, "1000"], {
    log: join(home, "sink"),
  });
  const { child } = await startService(folder, {
    ROLES: "worker",
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${port}`,
    DESTINATION_CONNECTIONS: "20",
    REDIS_URL: redisUrl,
  });
  const sent = leaving(folder, queued);
  const end = Math.min(queued, WARM + MEASURED);
  await sent.reached(WARM);
  const before = { count: sent.count(), at: performance.now(), processor: child.processor() };
  let memory = child.memory();
  const until = before.at + LIMIT_MS;
  while (sent.count() < end) {
    if (performance.now() > until) throw new Error(`only ${sent.count()} of ${end} have left`);
    memory = Math.max(memory, child.memory());
    await Bun.sleep(POLL_MS);
  }
  const count = sent.count() - before.count;
  const perSecond = (1000 * count) / (performance.now() - before.at);
  const processor = (child.processor() - before.processor) / count;
  await Promise.all([child.end(), sink.end()]);
  return {
    name: `relay, ${queued} queued${redisUrl === "" ? "" : ", BullMQ"}`,
    rounds: [perSecond],
    more: { [PROCESSOR]: [processor], "most RSS MB": [memory / MEGABYTE] },
  };
}

/** Measures the relay with the queue in a Redis of the bench's own. */
async function relayOverRedis(queued: number): Promise<Row> {
  const redis = await startRedis();
  const row = await relay(queued, redis.url);
  await redis.stop();
  return row;
}

/** Counts the recipients that left the queue, in the service's own database. */
function leaving(folder: string, queued: number) {
  const database = new Database(join(folder, "postrider.db"), { readonly: true });
  // Uses the condition of the due index: a scan of the table would cost the service disk and processor time.
  const query = database.query<{ n: number }, []>(
    "SELECT count(*) AS n FROM recipients WHERE due_at IS NOT NULL AND status <> 'accepted'",
  );
  const count = (): number => queued - (query.get()?.n ?? 0);
  return {
    count,
    async reached(wanted: number): Promise<void> {
      const until = performance.now() + LIMIT_MS;
      while (count() < wanted) {
        if (performance.now() > until) throw new Error(`only ${count()} of ${wanted} have left`);
        await Bun.sleep(POLL_MS);
      }
    },
  };
}

/** Returns the number of recipients in a state. */
function inState(folder: string, status: string): number {
  using database = new Database(join(folder, "postrider.db"), { readonly: true });
  const query = database.query<{ n: number }, [string]>(
    "SELECT count(*) AS n FROM recipients WHERE status = ?",
  );
  return query.get(status)?.n ?? 0;
}

/**
 * Measures the time from accepting a message to its arrival, while many wait for a destination that hangs or refuses.
 */
async function besideDead(how: "hangs" | "refuses"): Promise<Row> {
  const folder = await fillQueue(copyOf(prepared.folder), prepared, DEAD, 1);
  moveTo(folder, "dead.example");
  const good = startMx();
  const hung = startMx({ ip: "127.0.0.2", port: good.port, banner: "silent" });
  const ip = how === "hangs" ? "127.0.0.2" : "127.0.0.3";
  const dns = await startDns(
    { name: "dead.example", type: "A", data: ip },
    { name: "good.example", type: "A", data: "127.0.0.1" },
  );
  const { child, url } = await startService(folder, {
    DELIVERY: "mx",
    SMTP_OUT_PORT: String(good.port),
    DNS_SERVERS: dns.address,
    ALLOW_PRIVATE_MX: "1",
  });
  const times: number[] = [];
  let memory = 0;
  for (let probe = 1; probe <= PROBES; probe++) {
    const at = performance.now();
    const answer = await fetch(`${url}/v1/emails`, {
      method: "POST",
      headers: { authorization: `Bearer ${prepared.key}`, "content-type": "application/json" },
      body: JSON.stringify({
        from: { email: `news@${DOMAIN}` },
        to: [{ email: `person${probe}@good.example` }],
        subject: "Now",
        text: "Now\n",
      }),
    });
    if (answer.status !== 202) throw new Error(`a send was answered with ${await answer.text()}`);
    await good.messages.reached(probe);
    times.push(performance.now() - at);
    memory = Math.max(memory, child.memory());
    await Bun.sleep(PROBE_PAUSE_MS);
  }
  const delayed = inState(folder, "delivery_delayed");
  await child.end();
  for (const one of [good, hung, dns]) one.stop();
  return {
    name: `message next to ${DEAD} for a host that ${how}`,
    rounds: times,
    more: { "p50 ms": [median(times)], "most RSS MB": [memory / MEGABYTE], "put off": [delayed] },
  };
}

/** Returns the rounds of one kind as one row. */
function together(before: Row | undefined, row: Row): Row {
  if (before === undefined) return row;
  const more = Object.entries(row.more ?? {}).map(([column, values]) => [
    column,
    [...(before.more?.[column] ?? []), ...values],
  ]);
  return { ...row, rounds: [...before.rounds, ...row.rounds], more: Object.fromEntries(more) };
}

type Run = () => Promise<Row>;
const RATE = "msg/s";
const WAIT = "ms";
const kinds = chosen<readonly [name: string, kind: { unit: string; run: Run }]>([
  ["short", { unit: RATE, run: () => relay(SHORT) }],
  ["long", { unit: RATE, run: () => relay(LONG) }],
  ["redis", { unit: RATE, run: () => relayOverRedis(LONG) }],
  ["hangs", { unit: WAIT, run: () => besideDead("hangs") }],
  ["refuses", { unit: WAIT, run: () => besideDead("refuses") }],
]);
const measured = new Map<string, Row>();
for (let round = 0; round < rounds(1); round++)
  for (const [name, { run }] of kinds) measured.set(name, together(measured.get(name), await run()));
const figures: Record<string, Record<string, number>> = {
  queued: { short: SHORT, long: LONG, dead: DEAD },
};
for (const unit of [RATE, WAIT]) {
  const names = kinds.filter(([, kind]) => kind.unit === unit).map(([name]) => name);
  const rows = names.flatMap((name) => measured.get(name) ?? []);
  if (rows.length > 0) printTable(unit, rows, []);
  Object.assign(
    figures,
    rowFigures(
      unit,
      rows.map((row, at) => ({ ...row, name: names[at] ?? row.name })),
    ),
  );
}
handOver(figures);
process.exit(0);
