/** Mails taken a second over SMTP: `bun bench/inbound.ts [--profile=FOLDER] [--only=NAME] [--rounds=N]`. */
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../test/support/redis.ts";
import { type Child, startChild } from "./support/children.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import { chosen, rounds } from "./support/options.ts";
import { prepareData, startService } from "./support/service.ts";
import { PROCESSOR, printTable, type Row } from "./support/table.ts";

const SMTP_SOURCE = "/usr/sbin/smtp-source";
const SESSIONS = 20;
const OCTETS = 4096;
const WARM_MAILS = 500;
const MAILS = 4000;

const home = benchFolder();
const prepared = await prepareData(home);

/** What is measured: its process, and how many mails its database holds. */
interface Target {
  port: number;
  stored: () => number;
  child: Child;
}

function counter(file: string, sql: string): () => number {
  return () => {
    using database = new Database(file, { readonly: true });
    return database.query<{ n: number }, []>(sql).get()?.n ?? 0;
  };
}

async function service(): Promise<Target> {
  const folder = copyOf(prepared.folder);
  const { child, smtpPort } = await startService(folder, { ROLES: "smtp" });
  const sql = "SELECT count(*) AS n FROM messages WHERE direction = 'inbound'";
  return { port: smtpPort, stored: counter(join(folder, "postrider.db"), sql), child };
}

async function floor(): Promise<Target> {
  const folder = join(home, `floor-${Bun.randomUUIDv7()}`);
  mkdirSync(folder);
  const [file, port] = [join(folder, "floor.db"), freePort()];
  const script = join(import.meta.dir, "support/floor-inbound.ts");
  const child = await startChild([process.execPath, script, file, String(port)], {
    ready: "ready",
    log: join(folder, "floor"),
  });
  return { port, stored: counter(file, "SELECT count(*) AS n FROM mails"), child };
}

/** Sends mails with smtp-source; resolves with its wall time in seconds. */
async function send(port: number, mails: number, flags: readonly string[]): Promise<number> {
  const begin = performance.now();
  const counts = ["-s", SESSIONS, "-m", mails, "-l", OCTETS].map(String);
  const from = [
    "-f",
    "writer@elsewhere.example",
    "-t",
    prepared.inbox,
    "-S",
    "Measured",
    "-M",
    "elsewhere.example",
  ];
  const child = await startChild([SMTP_SOURCE, ...counts, ...flags, ...from, `127.0.0.1:${port}`], {
    log: join(home, `source-${Bun.randomUUIDv7()}`),
  });
  await child.finished();
  return (performance.now() - begin) / 1000;
}

interface Taken {
  perSecond: number;
  processor: number;
}

async function measure(start: () => Promise<Target>, flags: readonly string[]): Promise<Taken> {
  const target = await start();
  await send(target.port, WARM_MAILS, flags);
  const before = target.child.processor();
  const seconds = await send(target.port, MAILS, flags);
  const processor = (target.child.processor() - before) / MAILS;
  const stored = target.stored();
  await target.child.end();
  if (stored !== WARM_MAILS + MAILS) throw new Error(`${stored} mails are stored`);
  return { perSecond: MAILS / seconds, processor };
}

type Kind = readonly [name: string, start: () => Promise<Target>];
const subject: Kind = ["inbound", service];
const bare: Kind = ["bare listener, group commit", floor];
for (const [way, flags] of [
  ["a session a mail", []],
  ["sessions kept", ["-d"]],
] as const) {
  const rows = new Map<string, Row & { more: Record<typeof PROCESSOR, number[]> }>();
  for (let round = 0; round < rounds(); round++)
    for (const [name, start] of chosen([subject, bare])) {
      const row = rows.get(name) ?? { name: `${name}, ${way}`, rounds: [], more: { [PROCESSOR]: [] } };
      rows.set(name, row);
      const { perSecond, processor } = await measure(start, flags);
      row.rounds.push(perSecond);
      row.more[PROCESSOR].push(processor);
    }
  const rowsOf = ([name]: Kind): Row[] => [rows.get(name)].filter((row) => row !== undefined);
  printTable("msg/s", rowsOf(subject), rowsOf(bare));
  console.log();
}
