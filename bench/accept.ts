/**
 * Measures accepted sends per second: `bun bench/accept.ts [--profile=FOLDER] [--only=NAME] [--rounds=N]
 * [--domains=N] [--json=FILE]`.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../test/support/redis.ts";
import { type Child, startChild } from "./support/children.ts";
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

const subjects: [string, Start][] = [
  ["accept, api only", service(prepared, { ROLES: "api" })],
  ["accept, all roles", service(prepared, { ROLES: "api,smtp,worker" })],
];
const floors: [string, Start][] = [
  ["one commit a request", floor("single")],
  ["one row, group commit", floor("group")],
];
const rows = new Map<string, Row & { more: Record<string, number[]> }>();
for (let round = 0; round < rounds(); round++)
  for (const [name, start] of chosen([...subjects, ...floors])) {
    const row = rows.get(name) ?? { name, rounds: [], more: { "p50 ms": [], "p99 ms": [], [PROCESSOR]: [] } };
    rows.set(name, row);
    const { port, child } = await start();
    const before = child.processor();
    const { answered, perSecond, p50, p99 } = await load(port);
    row.more[PROCESSOR]?.push((child.processor() - before) / answered);
    await child.end();
    row.rounds.push(perSecond);
    row.more["p50 ms"]?.push(p50);
    row.more["p99 ms"]?.push(p99);
  }
const rowsOf = (kinds: [string, Start][]): Row[] => kinds.flatMap(([name]) => rows.get(name) ?? []);
printTable("req/s", rowsOf(subjects), rowsOf(floors));
handOver(rowFigures("req/s", [...rows.values()]));
