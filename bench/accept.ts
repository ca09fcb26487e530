/**
 * Measures accepted sends per second, and those that one process accepts and sends to a sink: `bun bench/accept.ts
 * [--profile=FOLDER] [--only=NAME] [--rounds=N] [--domains=N] [--json=FILE]`.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../test/support/redis.ts";
import { type Child, startChild } from "./support/children.ts";
import { acceptToSink } from "./support/end-to-end.ts";
import { handOver, rowFigures } from "./support/figures.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import type { LoadOptions, LoadResult } from "./support/http-load.ts";
import { chosen, domains, rounds } from "./support/options.ts";
import { DOMAIN, prepareData, type Prepared, startService } from "./support/service.ts";
import { PROCESSOR, printTable, type Row } from "./support/table.ts";

const CONNECTIONS = 50;
/** Unmeasured time first, because a process that has just started still compiles its code. */
const WARM_MS = 8000;
const MEASURE_MS = 5000;
const SUPPORT = join(import.meta.dir, "support");

const home = benchFolder();
const prepared = await prepareData(home);

/** Starts the process that is measured. Resolves with its port and process. */
type Start = () => Promise<{ port: number; child: Child }>;

function service(data: Prepared, env: Record<string, string>): Start {
  return async () => {
    const { child, httpPort } = await startService(copyOf(data.folder), env);
    return { port: httpPort, child };
  };
}

function floor(kind: "single" | "group"): Start {
  return async () => {
    const folder = join(home, `floor-${Bun.randomUUIDv7()}`);
    mkdirSync(folder);
    const port = freePort();
    const child = await startChild(
      [process.execPath, join(SUPPORT, "floor-accept.ts"), kind, join(folder, "floor.db"), String(port)],
      { ready: "ready", log: join(folder, "floor") },
    );
    return { port, child };
  };
}

async function load(port: number): Promise<LoadResult> {
  const options: LoadOptions = {
    port,
    key: prepared.key,
    from: `news@${DOMAIN}`,
    connections: CONNECTIONS,
    domains: domains(),
    warmMs: WARM_MS,
    measureMs: MEASURE_MS,
  };
  const child = await startChild([process.execPath, join(SUPPORT, "http-load.ts"), JSON.stringify(options)], {
    log: join(home, `load-${Bun.randomUUIDv7()}`),
  });
  return JSON.parse(await child.finished());
}

/** One round of a row: its rate and further columns. */
type Measure = () => Promise<{ perSecond: number; p50: number; p99: number; processor: number }>;

function accepting(start: Start): Measure {
  return async () => {
    const { port, child } = await start();
    const before = child.processor();
    const { answered, ...times } = await load(port);
    const processor = (child.processor() - before) / answered;
    await child.end();
    return { ...times, processor };
  };
}

const subjects: [string, Measure][] = [
  ["accept, api only", accepting(service(prepared, { ROLES: "api" }))],
  ["accept, all roles", accepting(service(prepared, { ROLES: "api,smtp,worker" }))],
  [
    "accept to sink, all roles",
    () => acceptToSink(home, prepared, { connections: CONNECTIONS, domains: domains() }),
  ],
];
const floors: [string, Measure][] = [
  ["one commit a request", accepting(floor("single"))],
  ["one row, group commit", accepting(floor("group"))],
];
const rows = new Map<string, Row & { more: Record<string, number[]> }>();
for (let round = 0; round < rounds(); round++)
  for (const [name, measure] of chosen([...subjects, ...floors])) {
    const row = rows.get(name) ?? { name, rounds: [], more: { "p50 ms": [], "p99 ms": [], [PROCESSOR]: [] } };
    rows.set(name, row);
    const { perSecond, p50, p99, processor } = await measure();
    row.rounds.push(perSecond);
    row.more[PROCESSOR]?.push(processor);
    row.more["p50 ms"]?.push(p50);
    row.more["p99 ms"]?.push(p99);
  }
const rowsOf = (kinds: [string, Measure][]): Row[] => kinds.flatMap(([name]) => rows.get(name) ?? []);
printTable("req/s", rowsOf(subjects), rowsOf(floors));
handOver(rowFigures("req/s", [...rows.values()]));
process.exit(0);
