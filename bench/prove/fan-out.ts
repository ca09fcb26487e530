/**
 * Proves that one large message with many webhooks, or to many projects, takes little memory and delays no other project:
 * `bun bench/prove/fan-out.ts [--control] [--only=KIND] [--hooks=600] [--projects=100]`. Each message comes twice: first
 * without webhooks, which shows what taking it costs, then with them.
 */
import { join } from "node:path";
import { publish } from "../../test/support/dns.ts";
import { forgetPeak, peakMemory } from "../support/peak-memory.ts";
import { startGoodEndpoints } from "./support/good-endpoints.ts";
import { openLedger } from "./support/ledger.ts";
import { endWithin } from "./support/limit.ts";
import { startLoad } from "./support/load.ts";
import { bringMail } from "./support/mail-client.ts";
import { expectOk, startGround } from "./support/service.ts";
import {
  allOf,
  atMost,
  conclude,
  fact,
  type Finding,
  isControl,
  numberOption,
  option,
  quantile,
} from "./support/table.ts";

const MEBIBYTE = 1024 * 1024;
const MESSAGE_OCTETS = 24 * MEBIBYTE;
const MEMORY_MIB = 150;
const FACTOR = 1.2;
/** A smaller difference of two p99 says nothing, milliseconds. */
const GRAIN_MS = 20;
/** Bytes of the body that each push carries. */
const PUSHED_OCTETS = 256 * 1024;
const SENDS_PER_SECOND = 10;
const LIMIT_MS = 600_000;
const DRAIN_LIMIT_MS = 240_000;
const SETTLE_MS = 5000;
const POLL_MS = 50;

const KINDS = [
  { name: "webhooks", projects: 1, hooks: numberOption("hooks", 600) },
  { name: "projects", projects: numberOption("projects", 100), hooks: 1 },
].filter(({ name }) => name.includes(option("only") ?? ""));

endWithin(LIMIT_MS);
const ground = await startGround({
  hook: false,
  env: {
    DELIVERY: "capture",
    DEFAULT_PLAN: "unlimited",
    QUOTA_WEBHOOKS: "none,none,none",
    QUOTA_STORED_OCTETS: "none,none,none",
  },
});
const { service, dns } = ground;
const accountKey = /account-wide key +(pr_\S+)/.exec(service.said())?.[1] ?? "";
const good = startGoodEndpoints(1);
await expectOk(service, "POST", "/v1/webhooks", { url: good.url(0), eventTypes: ["delivery"] });
const ledger = await openLedger(join(ground.home, "ledger"));
const load = startLoad(service, { sendsPerSecond: SENDS_PER_SECOND, mailsPerSecond: 0, ledger });
const sink = new Worker(join(import.meta.dir, "support/fan-out-sink.ts"));

// biome-ignore lint/suspicious/noExplicitAny: what the thread says has two shapes.
function told(): Promise<any> {
  return new Promise((resolve) =>
    sink.addEventListener("message", ({ data }) => resolve(data), { once: true }),
  );
}

const { port } = await told();

async function heard(): Promise<{ heard: number; shortest: number }> {
  const answer = told();
  sink.postMessage("how many");
  return answer;
}

/** Calls the API for a project, with the account's key. */
// biome-ignore lint/suspicious/noExplicitAny: a run reads whatever the API shows.
async function callAs(project: string, method: string, path: string, body?: unknown): Promise<any> {
  const headers = { authorization: `Bearer ${accountKey}`, "x-service-product": project };
  const answer = await service.call(method, path, body, headers);
  if (answer.status < 300) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** Makes a project with a domain that receives and an inbox. Returns the project and the inbox's address. */
async function makeProject(name: string): Promise<{ project: string; address: string }> {
  const authorization = { authorization: `Bearer ${accountKey}` };
  const made = await service.call("POST", "/v1/senders", { name }, authorization);
  const project = made.body.id;
  const domain = await callAs(project, "POST", "/v1/domains", { domain: `${name}.test` });
  publish(dns, domain.records);
  await callAs(project, "POST", `/v1/domains/${domain.id}/verify`);
  const receiving = await callAs(project, "PATCH", `/v1/domains/${domain.id}/receiving`, { enabled: true });
  publish(dns, receiving.records);
  const address = `in@${name}.test`;
  await callAs(project, "POST", "/v1/inboxes", { address });
  return { project, address };
}

/** A message of the largest size, all of it text that does not repeat itself at once. */
function largeMail(subject: string): string {
  const head = `From: Ada <ada@client.test>\r\nTo: <in@fan.test>\r\nSubject: ${subject}\r\nMessage-ID: <${subject}@client.test>\r\n\r\n`;
  const line = (at: number): string =>
    `line ${at} of a message that many are told of ${Math.imul(at, 2_654_435_761) >>> 0}\r\n`;
  const lines: string[] = [];
  for (let size = 0, at = 0; size < MESSAGE_OCTETS - 1024; at++) {
    const next = line(at);
    lines.push(next);
    size += next.length;
  }
  return head + lines.join("");
}

interface Slice {
  before: number;
  peak: number;
  p99: number;
}

/** Brings the message to all addresses and waits until so many more pushes have arrived. */
async function slice(subject: string, addresses: readonly string[], pushes: number): Promise<Slice> {
  await Bun.sleep(SETTLE_MS);
  const had = (await heard()).heard;
  const before = service.memory();
  forgetPeak(service.pid());
  good.forget();
  const outcome = await bringMail(
    service.smtpPort,
    "ada@client.test",
    addresses,
    largeMail(subject),
    DRAIN_LIMIT_MS,
  );
  if (outcome.code !== 250) throw new Error(`the message was answered ${outcome.code} ${outcome.text}`);
  for (const until = performance.now() + DRAIN_LIMIT_MS; performance.now() < until; await Bun.sleep(POLL_MS))
    if ((await heard()).heard - had >= pushes) break;
  await Bun.sleep(SETTLE_MS);
  return { before, peak: peakMemory(service.pid()), p99: quantile(good.latencies(), 0.99) };
}

const findings: Finding[] = [];
for (const { name, projects, hooks } of KINDS) {
  const made: { project: string; address: string }[] = [];
  for (let nth = 0; nth < projects; nth++) made.push(await makeProject(`${name}${nth}`));
  const addresses = made.map(({ address }) => address);
  // The first message alone makes the service load what it takes to read one.
  await slice(`${name}-warm`, addresses.slice(0, 1), 0);
  const without = await slice(`${name}-without`, addresses, 0);
  for (const [nth, { project }] of made.entries())
    for (let hook = 0; hook < hooks; hook++) {
      const url = `http://127.0.0.1:${port}/${name}/${nth}/${hook}`;
      // Fault of `--control`: the endpoints hear of nothing.
      const eventTypes = isControl() ? ["bounce"] : ["inbound_received"];
      await callAs(project, "POST", "/v1/webhooks", { url, eventTypes });
    }
  const had = (await heard()).heard;
  const withIt = await slice(`${name}-with`, addresses, projects * hooks);
  const now = await heard();
  const of = `${projects} projects, ${hooks} webhooks each`;
  findings.push(
    allOf(`${of}: pushes that arrived`, now.heard - had, projects * hooks),
    fact(`${of}: octets of the shortest push`, now.shortest),
    fact(
      `${of}: peak RSS over that before, without webhooks, MiB`,
      (without.peak - without.before) / MEBIBYTE,
    ),
    fact(`${of}: the same with them, MiB`, (withIt.peak - withIt.before) / MEBIBYTE),
    atMost(`${of}: peak RSS more than without, MiB`, (withIt.peak - without.peak) / MEBIBYTE, MEMORY_MIB),
    fact(`${of}: another project's p99 without, ms`, without.p99),
    atMost(
      `${of}: another project's p99 with, ms`,
      withIt.p99,
      Math.max(without.p99 * FACTOR, without.p99 + GRAIN_MS),
    ),
    allOf(
      `${of}: pushes with the body's start`,
      now.shortest >= PUSHED_OCTETS ? projects * hooks : 0,
      projects * hooks,
    ),
  );
}
await load.stop(SETTLE_MS);
sink.terminate();
await ground.stop();
good.stop();
conclude("fan-out", findings);
