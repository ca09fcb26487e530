/**
 * Measures the effect of the search index on receiving: `bun bench/inbound-indexed.ts [--rounds=N] [--json=FILE]`. Two services get
 * blocks of messages of 2 KB in turns, over kept sessions. One of them lacks the role that indexes, so it is the floor. While one
 * works, the other is stopped (SIGSTOP). People who receive much mail would notice if the index made senders wait.
 */
import { systemClock } from "../src/clock.ts";
import { openDb } from "../src/store/engine/client.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import { openSender, SENDER } from "./support/inbound-mail.ts";
import { rounds } from "./support/options.ts";
import { textOf } from "./support/searched-texts.ts";
import { prepareData, type Service, startService } from "./support/service.ts";
import { median } from "./support/table.ts";

const SESSIONS = 20;
const BLOCK = 500;
const WARM_BLOCKS = 4;
const ROUNDS = 12;
const POLL_MS = 500;

let sent = 0;
function message(): string {
  const at = sent++;
  const header = [
    `From: Ada <${SENDER}>`,
    `To: <${prepared.inbox}>`,
    `Subject: Measured ${at}`,
    "Date: Sat, 21 Nov 2026 09:00:00 +0000",
    `Message-ID: <${at}@elsewhere.example>`,
  ];
  const lines = textOf(at, []).replace(/(.{60,70}) /g, "$1\r\n");
  return `${header.join("\r\n")}\r\n\r\n${lines}\r\n.\r\n`;
}

/** One exchange after another: resolves with the reply's time after the text was written, in milliseconds. */
interface Session {
  say(text: string): Promise<number>;
  end(): void;
}

async function openSession(port: number): Promise<Session> {
  let heard = "";
  let reply = Promise.withResolvers<void>();
  let unsent = Buffer.alloc(0);
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, octets) {
        heard += octets.toString("latin1");
        const last = /(?:^|\n)(\d)\d\d [^\n]*\n$/.exec(heard);
        if (last === null) return;
        if (!/[23]/.test(last[1] ?? "")) reply.reject(new Error(heard));
        heard = "";
        reply.resolve();
      },
      drain(socket) {
        unsent = unsent.subarray(socket.write(unsent));
      },
    },
  });
  await reply.promise;
  return {
    async say(text) {
      reply = Promise.withResolvers();
      const begun = performance.now();
      const octets = Buffer.from(text);
      unsent = octets.subarray(socket.write(octets));
      await reply.promise;
      return performance.now() - begun;
    },
    end: () => void socket.end(),
  };
}

/** Messages a second, processor time of each in µs, and the slowest of a hundred answers in ms. */
interface Block {
  rate: number;
  processor: number;
  p99: number;
}

interface Target {
  service: Service;
  folder: string;
  sessions: Session[];
}

async function open(env: Record<string, string>): Promise<Target> {
  const folder = copyOf(prepared.folder);
  const service = await startService(folder, { DNS_SERVERS: sender.dns.address, ...env });
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(service.smtpPort)));
  for (const session of sessions) await session.say("EHLO elsewhere.example\r\n");
  return { service, folder, sessions };
}

async function block({ service, sessions }: Target): Promise<Block> {
  const [begun, before] = [performance.now(), service.child.processor()];
  const times: number[] = [];
  let left = BLOCK;
  await Promise.all(
    sessions.map(async (session) => {
      while (left-- > 0) {
        const text = message();
        for (const command of [`MAIL FROM:<${SENDER}>`, `RCPT TO:<${prepared.inbox}>`, "DATA"])
          await session.say(`${command}\r\n`);
        times.push(await session.say(text));
      }
    }),
  );
  const seconds = (performance.now() - begun) / 1000;
  const sorted = times.sort((a, b) => a - b);
  return {
    rate: BLOCK / seconds,
    processor: (service.child.processor() - before) / BLOCK,
    p99: sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0,
  };
}

/** Waits until both indexes have all messages. Returns the processor time of each message that had waited. */
async function rest({ service, folder }: Target): Promise<number> {
  const db = await openDb(systemClock, {
    url: `file:${folder}/postrider.db`,
    authToken: null,
    syncUrl: null,
  });
  const waiting = async () =>
    (
      await db.first<{ count: number }>(
        `SELECT (SELECT count(*) FROM messages WHERE position IS NULL) +
          (SELECT count(*) FROM word_places, word_progress WHERE place < indexed) AS count`,
      )
    )?.count ?? 0;
  const before = service.child.processor();
  const waited = await waiting();
  while ((await waiting()) > 0) await Bun.sleep(POLL_MS);
  await db.close();
  return (service.child.processor() - before) / waited;
}

const home = benchFolder();
const prepared = await prepareData(home);
const sender = await openSender(home, prepared.inbox, false);
const [floor, subject] = [await open({ ROLES: "api,smtp" }), await open({})];
const stopped = (target: Target, work: boolean) =>
  void process.kill(target.service.child.pid, work ? "SIGCONT" : "SIGSTOP");
const measured = { floor: [] as Block[], subject: [] as Block[] };
stopped(subject, false);
for (let round = -WARM_BLOCKS; round < rounds(ROUNDS); round++)
  for (const [name, target] of [
    ["floor", floor],
    ["subject", subject],
  ] as const) {
    const other = target === floor ? subject : floor;
    stopped(other, false);
    stopped(target, true);
    const found = await block(target);
    if (round >= 0) measured[name].push(found);
  }
stopped(floor, true);
const later = await rest(subject);
const ratios = (of: keyof Block) =>
  measured.subject
    .map((found, at) => found[of] / (measured.floor[at]?.[of] ?? Number.NaN))
    .toSorted((a, b) => a - b);
const figures: Record<string, Record<string, number>> = {};
console.log("| | without | with the index | ratio | its quarters |\n| --- | --- | --- | --- | --- |");
for (const of of ["rate", "processor", "p99"] as const) {
  const [without, withIndex] = [measured.floor, measured.subject].map((all) =>
    median(all.map((one) => one[of])),
  );
  const all = ratios(of);
  const quarters = [0.25, 0.75].map((part) => (all[Math.floor(part * all.length)] ?? 0).toFixed(2));
  figures[of] = { without: without ?? 0, with: withIndex ?? 0, ratio: median(all) };
  const cells = [of, without?.toFixed(0), withIndex?.toFixed(0), median(all).toFixed(2), quarters.join("–")];
  console.log(`| ${cells.join(" | ")} |`);
}
console.log(`Processor time of indexing each message that waited at the end, µs: ${later.toFixed(0)}`);
for (const { service, sessions } of [floor, subject]) {
  for (const session of sessions) session.end();
  await service.child.end();
}
sender.dns.stop();
handOver({ ...figures, later: { µs: later } });
