/**
 * Proves that limits that hold one by one hold together: `bun bench/prove/limits.ts [--control] [--only=TEXT]
 * [--projects=10] [--webhooks=40] [--connections=8] [--batch=40] [--recipients=50]`. Each row loads a service with the
 * product of some limits, while another project sends and receives in a separate process. A row holds if the
 * service keeps below 1 GB, the other project's p99 at most doubles, and nothing is lost. About four minutes.
 */
import { join } from "node:path";
import { printMarkdown } from "../support/inbound-table.ts";
import { forgetPeak, peakMemory } from "../support/peak-memory.ts";
import { withLive } from "./support/autopsy.ts";
import { startCountingEndpoints } from "./support/counting-endpoints.ts";
import { median } from "../support/table.ts";
import { endWithin } from "./support/limit.ts";
import { bringMail } from "./support/mail-client.ts";
import { newProject, type Project } from "./support/project.ts";
import { startGround } from "./support/service.ts";
import { startBystander } from "./support/start-bystander.ts";
import { standStill } from "./support/stand-still.ts";
import {
  allOf,
  conclude,
  fact,
  type Finding,
  isControl,
  none,
  numberOption,
  option,
  quantile,
} from "./support/table.ts";

const MEBIBYTE = 1024 * 1024;
/** 1 GB. */
const MAX_MEMORY_MIB = 1e9 / MEBIBYTE;
/** How much longer one in a hundred requests of another project may take. */
const FACTOR = 2;
/** Below so many milliseconds more a ratio says nothing. */
const GRAIN_MS = 25;
const SENDS_PER_SECOND = 25;
const MAILS_PER_SECOND = 10;
const QUIET_MS = 6000;
/** Time for a row's remaining work. */
const SETTLE_MS = 3000;
const ROW_MS = 4000;
const POLL_MS = 100;
/** Time for all that a row began to come to an end. */
const ROW_LIMIT_MS = 180_000;
const LIMIT_MS = 900_000;
const SLOW_ENDPOINT_MS = 1000;
/** Octets of text in the largest mail: its header and the service's own fields need some. */
const MAIL_OCTETS = 25 * MEBIBYTE - 64 * 1024;
/** Octets of a file that base64 makes a message of nearly the largest size from. */
const FILE_OCTETS = 17 * MEBIBYTE;
const BODY_OCTETS = 38 * MEBIBYTE;
const TEMPLATE_CHARS = 2 * MEBIBYTE - 1024;
const STATUS_ACCEPTED = 202;

const projects = numberOption("projects", 10);
const webhooks = numberOption("webhooks", 40);
const connections = numberOption("connections", 8);
const batch = numberOption("batch", 40);
const recipients = numberOption("recipients", 50);
endWithin(LIMIT_MS);

const ground = await startGround({
  hook: false,
  env: { DELIVERY: "capture", WEBHOOK_TIMEOUT_SECONDS: "10" },
});
const { service, home } = ground;
const endpoints = startCountingEndpoints(SLOW_ENDPOINT_MS);
const guests: Project[] = [];
for (let nth = 0; nth < projects; nth++) guests.push(await newProject(ground, `guest${nth}`));
const [guest] = guests;
if (guest === undefined) throw new Error("the run needs a project");
const { url, smtpPort, key } = service;
const bystander = startBystander({
  target: { url, smtpPort, key },
  ledger: join(home, "ledger"),
  sendsPerSecond: SENDS_PER_SECOND,
  mailsPerSecond: MAILS_PER_SECOND,
});

/** Waits until a state is reached; false if it is not in time. */
async function reached(isThere: () => boolean): Promise<boolean> {
  const until = performance.now() + ROW_LIMIT_MS;
  while (!isThere() && performance.now() < until) await Bun.sleep(POLL_MS);
  return isThere();
}

/** How many of the messages have a recipient whose mail was not delivered. */
function undelivered(ids: readonly string[]): number {
  const wanted = new Set(ids);
  const delivered = withLive(ground, (db) =>
    db
      .query<{ id: string }, []>(
        "SELECT message_id AS id FROM recipients GROUP BY message_id HAVING SUM(status <> 'delivered') = 0",
      )
      .all(),
  );
  for (const { id } of delivered) wanted.delete(id);
  return wanted.size;
}

/** How much of all that a row began has not come to its end. */
type Lost = number;

/** The largest message to an inbox of every project, each with many webhooks, half of which answer slowly. */
async function largestMessage(): Promise<Lost> {
  for (const [nth, project] of guests.entries())
    for (let hook = 0; hook < webhooks; hook++)
      await project.call("POST", "/v1/webhooks", {
        url: endpoints.url(nth * webhooks + hook),
        eventTypes: ["inbound_received"],
      });
  const line = `${"x".repeat(70)}\r\n`;
  const header =
    "From: a@client.test\r\nTo: b@mail.test\r\nSubject: large\r\nMessage-ID: <large@client.test>\r\n\r\n";
  const bytes = header + line.repeat(Math.floor(MAIL_OCTETS / line.length));
  const inboxes = guests.map(({ inbox }) => inbox);
  const taken = await bringMail(service.smtpPort, "a@client.test", inboxes, bytes);
  if (taken.code !== 250) throw new Error(`the largest message is answered ${taken.code} ${taken.text}`);
  const wanted = projects * webhooks;
  await reached(() => endpoints.told.size >= wanted);
  return wanted - endpoints.told.size;
}

/** The largest message that is sent, to the most recipients. */
async function largestSend(project: Project): Promise<Lost> {
  const file = Buffer.alloc(FILE_OCTETS, "file");
  const { id } = await project.call("POST", "/v1/emails", {
    from: { email: project.from },
    to: Array.from({ length: recipients }, (_, nth) => ({ email: `person${nth}@there${nth % 20}.test` })),
    subject: "large",
    text: "text",
    attachments: [{ filename: "a.bin", content: file.toString("base64"), contentType: "a/b" }],
  });
  await reached(() => undelivered([id]) === 0);
  return undelivered([id]);
}

/**
 * The largest bodies that JSON may be made of, each on a separate connection. Only the first kind is a message.
 */
function largestBodies(project: Project): readonly string[] {
  const file = Buffer.alloc(FILE_OCTETS, "body").toString("base64");
  const attachments = [{ filename: "a.bin", content: file, contentType: "a/b" }];
  const item = { from: { email: project.from }, to: [{ email: "a@there0.test" }], subject: "s", text: "t" };
  const many = (piece: string): string => piece.repeat(BODY_OCTETS / piece.length);
  return [
    JSON.stringify({ ...item, attachments }),
    many("["),
    `[${many("1,")}1]`,
    `{"to":[${many("{},")}{}]}`,
    `{"data":{${many('"a":1,')}"a":1}}`,
    `{"text":"${many("\\u0041")}"}`,
  ];
}

/** Lost is a message that is not accepted, and any other body that is, or that is answered as a fault of ours. */
async function largestBody(project: Project): Promise<Lost> {
  const bodies = largestBodies(project);
  const answers = Array.from({ length: connections }, async (_, nth): Promise<Lost> => {
    const body = bodies[nth % bodies.length] ?? "";
    const isMessage = nth % bodies.length === 0;
    for (const until = performance.now() + ROW_LIMIT_MS; performance.now() < until; await Bun.sleep(1000)) {
      const status = await project.post("/v1/emails", body);
      // The service asks the client to come back.
      if (status === 429 || status === 503) continue;
      return isMessage === (status === STATUS_ACCEPTED) && status < 500 ? 0 : 1;
    }
    return 1;
  });
  return (await Promise.all(answers)).reduce((sum, lost) => sum + lost, 0);
}

/** A batch of messages that are all rendered from the largest template. */
async function largestTemplate(project: Project): Promise<Lost> {
  const html = `<p>{{ name }}</p>${"<p>text</p>\n".repeat(TEMPLATE_CHARS / 12 - 10)}`;
  const { id: templateId } = await project.call("POST", "/v1/templates", {
    name: "large",
    subject: "s",
    html,
  });
  const { data } = await project.call("POST", "/v1/emails/batch", {
    emails: Array.from({ length: batch }, (_, nth) => ({
      from: { email: project.from },
      to: [{ email: `batch${nth}@there${nth % 20}.test` }],
      templateId,
      data: { name: `n${nth}` },
    })),
  });
  const ids = (data as { id?: string }[]).flatMap(({ id }) => id ?? []);
  await reached(() => undelivered(ids) === 0);
  return batch - ids.length + undelivered(ids);
}

/** Answers that a client of the tools for agents asks for on each connection and does not read. */
const UNREAD_CALLS = 10;

/** Characters of each body of a message whose record needs no place in the budget of large answers. */
const SMALL_CHARS = 60_000;
/** Calls in one request, which the service refuses. */
const CALLS_IN_BATCH = 100;

/**
 * The largest message, read over MCP on many connections whose clients read nothing. Lost is an answer that a client which
 * reads does not get afterwards.
 */
async function unreadTools(project: Project): Promise<Lost> {
  const stored = async (chars: number): Promise<string> => {
    const text = "x".repeat(chars);
    const item = { from: { email: project.from }, to: [{ email: "a@there0.test" }], subject: "s", text };
    return (await project.call("POST", "/v1/emails", { ...item, html: `<p>${text}</p>` })).id;
  };
  const [large, small] = [await stored(TEMPLATE_CHARS), await stored(SMALL_CHARS)];
  const one = (id: string, nth: number) => ({
    jsonrpc: "2.0",
    id: nth,
    method: "tools/call",
    params: { name: "get_email", arguments: { id } },
  });
  const batch = Array.from({ length: CALLS_IN_BATCH }, (_, nth) => one(small, nth));
  const sockets = Array.from({ length: connections * UNREAD_CALLS }, (_, nth) =>
    project.unread("/mcp", JSON.stringify(nth < connections ? batch : one(large, nth))),
  );
  await Bun.sleep(2 * ROW_MS);
  for (const socket of sockets) socket.destroy();
  await Bun.sleep(SETTLE_MS);
  const record = await project.call("GET", `/v1/emails/${large}`).catch(() => null);
  return record?.id === large ? 0 : 1;
}

/** Milliseconds that one in a hundred requests of the other project takes at least. */
interface Waits {
  send: number;
  mail: number;
}

interface Row {
  name: string;
  seconds: number;
  /** Highest memory, MiB. */
  peak: number;
  busy: Waits;
  lost: Lost;
}

/** The other project's p99 since the last look. */
async function p99s(): Promise<Waits> {
  const { send, mail } = await bystander.look();
  return { send: quantile(send, 0.99), mail: quantile(mail, 0.99) };
}

/** Waits without a row's load: one window before each row and one after the last. */
const quiet: Waits[] = [];

async function rest(): Promise<void> {
  await Bun.sleep(SETTLE_MS);
  await bystander.look();
  await Bun.sleep(QUIET_MS);
  quiet.push(await p99s());
}

async function measure(name: string, work: (project: Project) => Promise<Lost>): Promise<Row> {
  await rest();
  forgetPeak(service.pid());
  const began = performance.now();
  const goOn = isControl() ? standStill(service.pid()) : () => undefined;
  const lost = await work(guest as Project).catch((error: unknown) => {
    console.error(`${name}: ${error}`);
    return Number.POSITIVE_INFINITY;
  });
  goOn();
  const seconds = (performance.now() - began) / 1000;
  await Bun.sleep(Math.max(0, ROW_MS - seconds * 1000));
  return { name, seconds, peak: peakMemory(service.pid()) / MEBIBYTE, busy: await p99s(), lost };
}

const ROWS: readonly (readonly [name: string, work: (project: Project) => Promise<Lost>])[] = [
  [`largest message × ${projects} projects × ${webhooks} webhooks, half of them slow`, largestMessage],
  [`largest message × ${recipients} recipients`, largestSend],
  [`largest body × ${connections} connections`, largestBody],
  [`largest template × batch of ${batch}`, largestTemplate],
  [`largest message × ${connections * UNREAD_CALLS} unread answers over MCP`, unreadTools],
];

const rows: Row[] = [];
for (const [name, work] of ROWS.filter(([name]) => name.includes(option("only") ?? "")))
  rows.push(await measure(name, work));
await rest();
const { unanswered, answers } = await bystander.stop();
await ground.stop();
endpoints.stop();

// The middle one: a window may still have to do with the row before.
const usual: Waits = {
  send: median(quiet.map(({ send }) => send)),
  mail: median(quiet.map(({ mail }) => mail)),
};
const isWaitBounded = ({ busy }: Row): boolean =>
  (["send", "mail"] as const).every(
    (kind) => busy[kind] <= FACTOR * usual[kind] || busy[kind] - usual[kind] <= GRAIN_MS,
  );
const round = (value: number): string => value.toFixed(0);
printMarkdown(
  ["", "s", "peak RSS MiB", "send p99 ms", "mail p99 ms", "lost", "holds"],
  rows.map((row) => [
    row.name,
    ...[row.seconds, row.peak, row.busy.send, row.busy.mail, row.lost].map(round),
    row.lost === 0 && row.peak <= MAX_MEMORY_MIB && isWaitBounded(row) ? "yes" : "NO",
  ]),
);
console.log("");
const findings: Finding[] = [
  allOf(
    `rows with at most ${round(MAX_MEMORY_MIB)} MiB`,
    rows.filter(({ peak }) => peak <= MAX_MEMORY_MIB).length,
    rows.length,
  ),
  allOf(
    `rows with the other project's p99 at most ${FACTOR}x, or ${GRAIN_MS} ms more`,
    rows.filter(isWaitBounded).length,
    rows.length,
  ),
  allOf("rows that lost nothing", rows.filter(({ lost }) => lost === 0).length, rows.length),
  none("requests of the other project without an answer", unanswered),
  fact("its usual p99 of a send, ms", usual.send),
  fact("its usual p99 of a mail, ms", usual.mail),
  ...answers.map(([said, times]) => fact(`the other project's ${said}`, times)),
];
conclude("limits", findings);
