/**
 * Measures messages sent per second from the queue to a sink: `bun bench/outbound.ts [--profile=FOLDER] [--only=NAME]
 * [--rounds=N] [--domains=N] [--json=FILE]`.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { freePort } from "../test/support/redis.ts";
import { startChild } from "./support/children.ts";
import { handOver, rowFigures } from "./support/figures.ts";
import type { FloorOutboundOptions, FloorOutboundResult } from "./support/floor-outbound.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import type { LoadOptions, LoadResult } from "./support/http-load.ts";
import { chosen, domains, rounds } from "./support/options.ts";
import { postfixMissing, relayThroughPostfix } from "./support/postfix.ts";
import { DOMAIN, prepareData, startService } from "./support/service.ts";
import { PROCESSOR, printTable, type Row } from "./support/table.ts";

const SMTP_SINK = "/usr/sbin/smtp-sink";
const MAILS = 5000;
/** Unmeasured messages first: compiling takes up to a sixth of the processor time of the first twenty thousand. */
const WARM_MAILS = 20_000;
/** Unmeasured messages for peers that compile nothing. */
const PEER_WARM_MAILS = 5000;
const CONNECTIONS = 20;
const ACCEPT_CONNECTIONS = 50;
const POLL_MS = 200;
/** Time limit of one run. */
const LIMIT_MS = 120_000;
const MEGABYTE = 1_000_000;
const FROM = `news@${DOMAIN}`;
const SUPPORT = join(import.meta.dir, "support");

const home = benchFolder();
const prepared = await prepareData(home);
const sinkPort = freePort();
// If root starts the sink, it must know which user to run as. It listens long before the first message is accepted.
const user = process.getuid?.() === 0 ? ["-u", "root"] : [];
await startChild([SMTP_SINK, ...user, `127.0.0.1:${sinkPort}`, "1000"], { log: join(home, "sink") });

interface Sent {
  perSecond: number;
  memory: number;
  processor: number;
}

/** Accepts the messages without a worker. Resolves with the data folder that has them. */
async function fill(): Promise<string> {
  const folder = copyOf(prepared.folder);
  const { child, httpPort } = await startService(folder, { ROLES: "api" });
  const load: LoadOptions = {
    port: httpPort,
    key: prepared.key,
    from: FROM,
    connections: ACCEPT_CONNECTIONS,
    domains: domains(),
    warmMs: 0,
    measureMs: 0,
    count: WARM_MAILS + MAILS,
  };
  const client = await startChild([process.execPath, join(SUPPORT, "http-load.ts"), JSON.stringify(load)], {
    log: join(home, "load"),
  });
  const { answered }: LoadResult = JSON.parse(await client.finished());
  await child.end();
  if (answered !== WARM_MAILS + MAILS) throw new Error(`${answered} mails were accepted`);
  return folder;
}

interface Progress {
  sent: number;
  /** Time at which the last of them was settled; null if none is. */
  ended: number | null;
}

/** Sends the messages of a copy of the folder. Measures from the end of the warm-up to the last settled message. */
async function drain(filled: string): Promise<Sent> {
  const folder = copyOf(filled);
  const { child } = await startService(folder, {
    ROLES: "worker",
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${sinkPort}`,
    DESTINATION_CONNECTIONS: String(CONNECTIONS),
    DESTINATION_RATE: "1000000",
  });
  using database = new Database(join(folder, "postrider.db"), { readonly: true });
  const query = database.query<Progress, []>(
    "SELECT count(*) AS sent, max(last_event_at) AS ended FROM recipients WHERE status = 'sent'",
  );
  const until = performance.now() + LIMIT_MS;
  const reached = async (mails: number): Promise<{ sent: number; ended: number; processor: number }> => {
    for (let now = query.get(); ; now = query.get()) {
      if (now !== null && now.ended !== null && now.sent >= mails)
        return { sent: now.sent, ended: now.ended, processor: child.processor() };
      if (performance.now() > until) throw new Error(`only ${now?.sent} mails were sent`);
      await Bun.sleep(POLL_MS);
    }
  };
  const warm = await reached(WARM_MAILS);
  const all = await reached(WARM_MAILS + MAILS);
  const memory = child.memory();
  await child.end();
  const mails = all.sent - warm.sent;
  const processor = (all.processor - warm.processor) / mails;
  return { perSecond: (1000 * mails) / (all.ended - warm.ended), memory, processor };
}

async function floor(): Promise<Sent> {
  const options: FloorOutboundOptions = {
    port: sinkPort,
    warm: WARM_MAILS,
    count: MAILS,
    connections: CONNECTIONS,
    domains: domains(),
    from: FROM,
  };
  const child = await startChild(
    [process.execPath, join(SUPPORT, "floor-outbound.ts"), JSON.stringify(options)],
    {
      log: join(home, `floor-${Bun.randomUUIDv7()}`),
    },
  );
  const { seconds, memory, processor }: FloorOutboundResult = JSON.parse(await child.finished());
  return { perSecond: MAILS / seconds, memory, processor: processor / MAILS };
}

/**
 * Postfix signs when it accepts a message, so its time includes its accepting, except for messages that it accepted
 * while it warmed up.
 */
function peer(signing: boolean): Promise<Sent> {
  return relayThroughPostfix({
    home,
    sinkPort,
    warm: PEER_WARM_MAILS,
    count: MAILS,
    connections: CONNECTIONS,
    signing,
    limitMs: LIMIT_MS,
  });
}

type Kind = readonly [name: string, run: () => Promise<Sent>];
const filled = await fill();
const subjects = chosen<Kind>([["queue to sink", () => drain(filled)]]);
const missing = postfixMissing();
if (missing !== null) console.log(`Without Postfix and OpenDKIM: ${missing}.`);
const peers: readonly Kind[] = [
  ["Postfix with OpenDKIM, taking and relaying", () => peer(true)],
  ["Postfix alone, taking and relaying", () => peer(false)],
];
const floors = chosen<Kind>([["nodemailer, nothing stored", floor], ...(missing === null ? peers : [])]);
const rows = new Map<string, Row & { more: Record<"RSS MB" | typeof PROCESSOR, number[]> }>();
for (let round = 0; round < rounds(); round++)
  for (const [name, run] of [...subjects, ...floors]) {
    const row = rows.get(name) ?? { name, rounds: [], more: { [PROCESSOR]: [], "RSS MB": [] } };
    rows.set(name, row);
    const { perSecond, memory, processor } = await run();
    row.rounds.push(perSecond);
    row.more[PROCESSOR].push(processor);
    row.more["RSS MB"].push(memory / MEGABYTE);
  }
const rowsOf = (kinds: readonly Kind[]): Row[] => kinds.flatMap(([name]) => rows.get(name) ?? []);
printTable("msg/s", rowsOf(subjects), rowsOf(floors));
handOver(rowFigures("msg/s", [...rows.values()]));
process.exit(0);
