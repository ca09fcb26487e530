import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { withoutContent } from "../../src/core/messages/event-content.ts";
import { MAX_SPAM_SYMBOLS } from "../../src/core/messages/spam.ts";
import { MAX_SPAM_ANSWER_OCTETS, MAX_SPAM_CHECK_OCTETS } from "../../src/flows/receive/spam-check.ts";
import { deliver, deliveredRecord } from "../support/mail-in.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

const BOX = "box@in.test";
/** What the filter answers. The real one is in test/peers/rspamd.slow.test.ts. */
let answer: () => Response | Promise<Response>;
let asked: Request[];
let filter: Bun.Server<undefined>;
/** Takes mail whose check fails, and tells its sender to try again. */
let taking: TestService;
let deferring: TestService;

const verdict = (more: Record<string, unknown> = {}) =>
  Response.json({ score: 7.4, required_score: 15, action: "add header", symbols: {}, ...more });

beforeAll(async () => {
  filter = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      asked.push(request);
      await request.bytes();
      return answer();
    },
  });
  const env = { SPAM_CHECK_URL: `http://127.0.0.1:${filter.port}/`, SPAM_CHECK_TIMEOUT_SECONDS: "0.3" };
  taking = await startService(env);
  deferring = await startService({ ...env, SPAM_CHECK_FAIL: "defer" });
  for (const service of [taking, deferring]) await receivingInboxes(service, "in.test", [BOX]);
});
afterAll(async () => {
  await Promise.all([taking.stop(), deferring.stop()]);
  await filter.stop(true);
});
beforeEach(() => {
  asked = [];
  answer = () => verdict();
});

test("the filter learns who delivers, from whom and to whom, once for all recipients", async () => {
  const { body } = await taking.call("POST", "/v1/inboxes", { address: "other@in.test" });
  await deliver(taking, { to: [BOX, body.address], mailFrom: "ada@client.test" });
  expect(asked).toHaveLength(1);
  const [request] = asked;
  const fields = ["ip", "helo", "from", "rcpt"].map((name) => request?.headers.get(name));
  expect(new URL(request?.url ?? "").pathname).toBe("/checkv2");
  expect(fields).toEqual(["127.0.0.1", "client.test", "ada@client.test", `${BOX}, ${body.address}`]);
  expect(request?.headers.get("queue-id")).toMatch(/^[0-9a-f]{16}$/);
});

test("the record shows the score, the filter's advice and its heaviest symbols, without what they quote", async () => {
  const names = Array.from({ length: MAX_SPAM_SYMBOLS + 1 }, (_, at) => `S${at}`);
  const symbols = Object.fromEntries(
    names.map((name, at) => [name, { score: -at, options: ["secret@x.test"] }]),
  );
  answer = () => verdict({ symbols });
  const { spam } = await deliveredRecord(taking, { to: BOX });
  expect(spam).toMatchObject({ score: 7.4, required: 15, action: "add header" });
  expect(spam.symbols).toHaveLength(MAX_SPAM_SYMBOLS);
  expect(spam.symbols[0]).toEqual({ name: `S${MAX_SPAM_SYMBOLS}`, score: -MAX_SPAM_SYMBOLS });
  expect(JSON.stringify(spam)).not.toContain("secret");
});

const folderOf = async ({ threadId }: { threadId: string }) =>
  (await taking.call("GET", `/v1/threads/${threadId}`)).body.folder;

test.each([
  [{ action: "add header" }, "spam"],
  [{ action: "reject" }, "spam"],
  [{ action: "no action", score: 15 }, "spam"],
  [{ action: "no action" }, "inbox"],
  [{ action: "greylist" }, "inbox"],
])("a new conversation with the verdict %j begins in %s", async (given, folder) => {
  answer = () => verdict(given);
  expect(await folderOf(await deliveredRecord(taking, { to: BOX }))).toBe(folder);
});

test("an answer in a conversation stays there, whatever the filter says", async () => {
  answer = () => verdict({ action: "no action" });
  const first = await deliveredRecord(taking, { to: BOX, headers: ["Message-ID: <good@client.test>"] });
  answer = () => verdict({ action: "reject" });
  const second = await deliveredRecord(taking, { to: BOX, headers: ["In-Reply-To: <good@client.test>"] });
  expect(second.threadId).toBe(first.threadId);
  expect(await folderOf(second)).toBe("inbox");
});

test("a rule keeps a conversation out of spam, whatever the filter says", async () => {
  const rule = { name: "Friends", when: { from: "@client.test" }, then: { folder: "inbox" } };
  const { body } = await taking.call("POST", "/v1/rules", rule);
  expect(await folderOf(await deliveredRecord(taking, { to: BOX, mailFrom: "ada@client.test" }))).toBe(
    "inbox",
  );
  await taking.call("DELETE", `/v1/rules/${body.id}`);
});

const never = new Promise<Response>(() => {});
const FAILURES: [what: string, () => Response | Promise<Response>][] = [
  ["answers nothing in time", () => never],
  ["answers an error", () => new Response("busy", { status: 503 })],
  ["answers something else than JSON", () => new Response("<html>")],
  ["answers JSON without a score", () => Response.json({ action: "reject" })],
  ["answers a score that is no number", () => verdict({ score: "7" })],
  ["answers more than is read", () => verdict({ messages: "x".repeat(MAX_SPAM_ANSWER_OCTETS) })],
];
test.each(FAILURES)(
  "a filter that %s is unknown: null, or 451 if the operator says so",
  async (_, failing) => {
    answer = failing;
    expect((await deliveredRecord(taking, { to: BOX })).spam).toBeNull();
    expect(await deliver(deferring, { to: BOX })).toStartWith("451 4.7.0");
    answer = () => verdict();
    expect((await deliveredRecord(deferring, { to: BOX })).spam.score).toBe(7.4);
  },
);

test("a project chooses what happens if the filter fails, whatever the installation says", async () => {
  const path = `/v1/senders/${(await taking.call("GET", "/v1/me")).body.project.id}`;
  const choose = async (spamCheckFail: string | null) =>
    (await taking.call("PATCH", path, { spamCheckFail }, { key: taking.accountKey })).body;
  answer = () => new Response("busy", { status: 503 });
  expect((await choose("defer")).spamCheckFail).toBe("defer");
  expect(await deliver(taking, { to: BOX, body: "chosen" })).toStartWith("451 4.7.0");
  expect((await choose(null)).spamCheckFail).toBeNull();
  expect((await deliveredRecord(taking, { to: BOX, body: "chosen" })).spam).toBeNull();
});

test("a message of more octets than the filter gets is taken without a verdict", async () => {
  const line = `${"x".repeat(998)}\r\n`;
  const body = line.repeat(Math.ceil(MAX_SPAM_CHECK_OCTETS / line.length));
  expect((await deliveredRecord(deferring, { to: BOX, body })).spam).toBeNull();
  expect(asked).toEqual([]);
});

test("mail to a role mailbox and simulated mail are not checked", async () => {
  expect(await deliver(taking, { to: "postmaster@in.test" })).toStartWith("250");
  const { body } = await taking.call("POST", "/v1/inbound/simulate", { to: BOX, subject: "Hi" });
  expect((await taking.call("GET", `/v1/emails/${body.id ?? body.messageId}`)).body.spam).toBeNull();
  expect(asked).toEqual([]);
});

test("a webhook without content gets the verdict, which quotes nothing", () => {
  const spam = { score: 1, required: 15, action: "no action", symbols: [] };
  const data = { messageId: "m", inbound_received: { subject: "Hi", spam } };
  expect(withoutContent("inbound_received", data)).toEqual({ messageId: "m", inbound_received: { spam } });
});
