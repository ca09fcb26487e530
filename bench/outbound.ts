/**
 * Measures messages sent per second from the queue to a sink: `bun bench/outbound.ts [--profile=FOLDER] [--only=NAME]
 * [--rounds=N] [--dkim=rsa|ed25519|both] [--domains=N] [--json=FILE]`. Without `--dkim` it measures RSA, then Ed25519.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { DkimChoice } from "../src/core/domains/dkim-keys.ts";
import { startChild } from "./support/children.ts";
import { handOver, rowFigures } from "./support/figures.ts";
import type { FloorOutboundOptions, FloorOutboundResult } from "./support/floor-outbound.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import type { LoadOptions, LoadResult } from "./support/http-load.ts";
import { progressOf } from "./support/progress.ts";
import { chosen, dkimChoices, domains, rounds } from "./support/options.ts";
import { postfixMissing, relayThroughPostfix } from "./support/postfix.ts";
import { DOMAIN, prepareData, startService } from "./support/service.ts";
import { relayTo, SINK_CONNECTIONS, startSink } from "./support/sink.ts";
import { PROCESSOR, printTable, type Row } from "./support/table.ts";

const MAILS = 5000;
/** Unmeasured messages first: compiling takes up to a sixth of the processor time of the first twenty thousand. */
const WARM_MAILS = 20_000;
/** Unmeasured messages for peers that compile nothing. */
const PEER_WARM_MAILS = 5000;
const ACCEPT_CONNECTIONS = 50;
const POLL_MS = 200;
/** Time limit of one run. */
const LIMIT_MS = 120_000;
const MEGABYTE = 1_000_000;
const FROM = `news@${DOMAIN}`;
const SUPPORT = join(import.meta.dir, "support");

const home = benchFolder();
const sinkPort = await startSink(home);

interface Sent {
  perSecond: number;
  memory: number;
  processor: number;
}

/** Accepts the messages without a worker. Resolves with the data folder that has them. */
async function fill(dkimKeys: DkimChoice): Promise<string> {
  const prepared = await prepareData(home, dkimKeys);
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
    log: join(home, `load-${dkimKeys}`),
  });
  const { answered }: LoadResult = JSON.parse(await client.finished());
  await child.end();
  if (answered !== WARM_MAILS + MAILS) throw new Error(`${answered} mails were accepted`);
  return folder;
}

/** Sends the messages of a copy of the folder. Measures from the end of the warm-up to the last settled message. */
async function drain(filled: string): Promise<Sent> {
  const folder = copyOf(filled);
  const { child } = await startService(folder, { ROLES: "worker", ...relayTo(sinkPort) });
  using database = new Database(join(folder, "postrider.db"), { readonly: true });
  const progress = progressOf(database);
  const until = performance.now() + LIMIT_MS;
  const reached = async (mails: number): Promise<{ sent: number; ended: number; processor: number }> => {
    for (; ; await Bun.sleep(POLL_MS)) {
      const left = progress.waiting();
      const now = left > WARM_MAILS + MAILS - mails ? null : progress.sent();
      if (now !== null && now.ended !== null && now.count >= mails)
        return { sent: now.count, ended: now.ended, processor: child.processor() };
      if (performance.now() > until) throw new Error(`${left} mails are not sent`);
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
    connections: SINK_CONNECTIONS,
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
    connections: SINK_CONNECTIONS,
    signing,
    limitMs: LIMIT_MS,
  });
}

type Kind = readonly [name: string, run: () => Promise<Sent>];
const NAMES: Readonly<Record<DkimChoice, string>> = {
  rsa: "queue to sink",
  ed25519: "queue to sink, Ed25519",
  both: "queue to sink, RSA and Ed25519",
};
const wanted = chosen(dkimChoices(["rsa", "ed25519"]).map((choice) => [NAMES[choice], choice] as const));
const subjects: Kind[] = [];
for (const [name, choice] of wanted) {
  const filled = await fill(choice);
  subjects.push([name, () => drain(filled)]);
}
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
