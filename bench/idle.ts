/**
 * Measures the cost of idle connections: memory of the service, and the time of a message, with and without them.
 * `bun bench/idle.ts [--connections=N] [--only=NAME] [--json=FILE]`.
 */
import { connect } from "node:net";
import { connect as secure } from "node:tls";
import { startDns } from "../test/support/dns.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import { chosen, numberOption } from "./support/options.ts";
import { prepareData, startService } from "./support/service.ts";

const CONNECTIONS = numberOption("connections", 10_000);
/** Connections opened at a time: as many as a listener's queue holds. */
const AT_A_TIME = 100;
const WARM_MAILS = 200;
const MAILS = 300;
/** Time for both processes to settle before their memory is read. */
const REST_MS = 3000;
const MEBIBYTE = 1024 * 1024;
const MEGABYTE = 1_000_000;

const home = benchFolder();
const prepared = await prepareData(home);
/** Finds nothing, at once, so that the bench does not measure lookups. */
const dns = await startDns();

/** A connection that keeps only the last reply. */
interface Talk {
  /** Sends the text and resolves with the last line of the reply. */
  say(text: string): Promise<string>;
  upgrade(): Promise<void>;
  end(): void;
}

async function talk(port: number): Promise<Talk> {
  let socket = connect(port, "127.0.0.1");
  let heard = "";
  let wake: () => void = () => {};
  const listen = (): void => {
    socket.on("data", (chunk: Buffer) => {
      heard += chunk.toString();
      wake();
    });
  };
  const answer = async (): Promise<string> => {
    for (;;) {
      const match = /^(\d{3} .*)\r\n/m.exec(heard);
      if (match !== null) {
        heard = heard.slice(match.index + match[0].length);
        return match[1] ?? "";
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  listen();
  await answer();
  return {
    say(text) {
      socket.write(text);
      return answer();
    },
    async upgrade() {
      socket.removeAllListeners("data");
      const upgraded = secure({ socket, rejectUnauthorized: false });
      await new Promise((resolve) => upgraded.once("secureConnect", resolve));
      socket = upgraded;
      listen();
    },
    end: () => socket.destroy(),
  };
}

async function plain(port: number): Promise<Talk> {
  const one = await talk(port);
  await one.say("EHLO idle.example\r\n");
  return one;
}

async function encrypted(port: number): Promise<Talk> {
  const one = await plain(port);
  await one.say("STARTTLS\r\n");
  await one.upgrade();
  await one.say("EHLO idle.example\r\n");
  return one;
}

let mails = 0;

/** Sends one message over a new connection. Returns the milliseconds from the connection to the 250. */
async function probe(port: number): Promise<number> {
  const begin = performance.now();
  const one = await plain(port);
  await one.say("MAIL FROM:<writer@elsewhere.example>\r\n");
  await one.say(`RCPT TO:<${prepared.inbox}>\r\n`);
  await one.say("DATA\r\n");
  const header = `From: writer@elsewhere.example\r\nMessage-ID: <${++mails}@elsewhere.example>\r\nSubject: probe\r\n`;
  const said = await one.say(`${header}\r\n${`${"x".repeat(70)}\r\n`.repeat(50)}.\r\n`);
  const took = performance.now() - begin;
  one.end();
  if (!said.startsWith("250 ")) throw new Error(said);
  return took;
}

async function p95(port: number): Promise<number> {
  const times: number[] = [];
  for (let mail = 0; mail < MAILS; mail++) times.push(await probe(port));
  return times.toSorted((a, b) => a - b)[Math.floor(MAILS * 0.95)] ?? 0;
}

console.log(
  "| idle connections | RSS before MiB | RSS with MiB | growth MiB | KiB each | mail p95 before ms | mail p95 with ms |",
);
console.log("| --- | --- | --- | --- | --- | --- | --- |");
const measured: Record<string, Record<string, number>> = {};
for (const [name, open] of chosen([
  ["plain", plain],
  ["TLS", encrypted],
] as const)) {
  const service = await startService(copyOf(prepared.folder), {
    ROLES: "smtp",
    DNS_SERVERS: dns.address,
  });
  const port = service.smtpPort;
  for (let mail = 0; mail < WARM_MAILS; mail++) await probe(port);
  const quick = await p95(port);
  await Bun.sleep(REST_MS);
  const before = service.child.memory() / MEBIBYTE;
  const idle: Talk[] = [];
  while (idle.length < CONNECTIONS)
    idle.push(...(await Promise.all(Array.from({ length: AT_A_TIME }, () => open(port)))));
  await Bun.sleep(REST_MS);
  const after = service.child.memory() / MEBIBYTE;
  const loaded = await p95(port);
  const figures = [before, after, after - before].map(Math.round);
  const each = Math.round(((after - before) * 1024) / idle.length);
  console.log(
    `| ${[`${idle.length} ${name}`, ...figures, each, quick.toFixed(1), loaded.toFixed(1)].join(" | ")} |`,
  );
  measured[name] = {
    connections: idle.length,
    "growth MB": ((after - before) * MEBIBYTE) / MEGABYTE,
    "mail p95 before ms": quick,
    "mail p95 with ms": loaded,
  };
  for (const one of idle) one.end();
  await service.child.end();
}
dns.stop();
handOver(measured);
