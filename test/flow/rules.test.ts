import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { MAX_LABELS } from "../../src/core/messages/mailbox.ts";
import { MAX_RULES } from "../../src/core/rules/rule.ts";
import { deliver, deliveredRecord, type Letter } from "../support/mail-in.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

let service: TestService;
let boxId: string;
const BOX = "box@in.test";

const call: TestService["call"] = (...asked) => service.call(...asked);

beforeAll(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", [BOX, "other@in.test"]);
  const { body } = await call("GET", "/v1/inboxes");
  boxId = body.data.find(({ address }: { address: string }) => address === BOX).id;
});
afterAll(() => service.stop());
beforeEach(async () => {
  for (const { id } of (await call("GET", "/v1/rules?limit=100")).body.data)
    await call("DELETE", `/v1/rules/${id}`);
});

async function newRule(rule: Record<string, unknown>) {
  const { status, body } = await call("POST", "/v1/rules", { name: "A rule", when: {}, ...rule });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

let members = 0;
const wide: TestService["call"] = (method, path, body) =>
  service.call(method, path, body, { key: service.accountKey });
async function newMember(): Promise<string> {
  const email = `person${++members}@example.com`;
  return (await wide("POST", "/v1/members", { email, role: "support" })).body.id;
}
const threadOf = async ({ threadId }: { threadId: string }) =>
  (await call("GET", `/v1/threads/${threadId}`)).body;

const received = (letter: Partial<Letter> = {}) => deliveredRecord(service, { to: BOX, ...letter });
/** The received messages with that subject, newest first. */
async function withSubject(subject: string) {
  return (await call("GET", `/v1/emails?direction=inbound&q=${subject}`)).body.data;
}

describe("a rule", () => {
  test("archives and marks as read the conversation of a message that it matches, and is named in its record", async () => {
    const { id } = await newRule({
      name: "News",
      when: { subject: "NEWS" },
      then: { archive: true, markRead: true },
    });
    const record = await received({ headers: ["Subject: Our newsletter"] });
    expect(record.rules).toEqual([{ id, name: "News" }]);
    const thread = (await call("GET", `/v1/threads/${record.threadId}`)).body;
    expect(thread).toMatchObject({ archived: true, read: true });
    const other = await received({ headers: ["Subject: Hello"] });
    expect(other.rules).toEqual([]);
    expect((await call("GET", `/v1/threads/${other.threadId}`)).body).toMatchObject({
      archived: false,
      read: false,
    });
  });

  test("labels, assigns and moves the conversation; the last one decides who gets it and where it goes", async () => {
    const [ada, ben] = [await newMember(), await newMember()];
    await newRule({ then: { labels: ["billing", "urgent"], assigneeId: ben, folder: "spam" } });
    await newRule({ then: { labels: ["urgent", "vip"], assigneeId: ada, folder: "trash" } });
    const thread = await threadOf(await received());
    expect(thread).toMatchObject({
      labels: ["billing", "urgent", "vip"],
      assigneeId: ada,
      folder: "trash",
      deletesAt: expect.any(String),
    });
  });

  test("leaves the labels and the member that a conversation has", async () => {
    const [ada, ben] = [await newMember(), await newMember()];
    const first = await received({ headers: ["Message-ID: <first@client.test>"] });
    await call("PATCH", `/v1/threads/${first.threadId}`, { labels: ["mine"], assigneeId: ada });
    await newRule({ then: { labels: ["billing"], assigneeId: ben } });
    const answer = await received({ headers: ["In-Reply-To: <first@client.test>"] });
    expect(answer.threadId).toBe(first.threadId);
    expect(await threadOf(answer)).toMatchObject({ labels: ["mine", "billing"], assigneeId: ada });
  });

  test("gives a conversation the twenty labels that it can have, and no more", async () => {
    const labels = Array.from({ length: MAX_LABELS }, (_, at) => `l${at}`);
    await newRule({ then: { labels } });
    await newRule({ then: { labels: ["one more"] } });
    expect((await threadOf(await received())).labels).toEqual(labels);
  });

  test("assigns nobody if its member was removed, disabled or kept from the project, and can still be turned off", async () => {
    const [removed, disabled, kept] = [await newMember(), await newMember(), await newMember()];
    const { body: second } = await wide("POST", "/v1/senders", { name: "Second" });
    const rules = [];
    for (const assigneeId of [removed, disabled, kept]) rules.push(await newRule({ then: { assigneeId } }));
    await wide("DELETE", `/v1/members/${removed}`);
    await wide("PATCH", `/v1/members/${disabled}`, { status: "disabled" });
    await wide("PATCH", `/v1/members/${kept}`, { senderIds: [second.id] });
    for (const { id } of rules) {
      for (const other of rules) await call("PATCH", `/v1/rules/${other.id}`, { enabled: other.id === id });
      const record = await received();
      expect((await threadOf(record)).assigneeId).toBeNull();
      const { body } = await call("POST", "/v1/rules/try", { emailId: record.id });
      expect([body.rules[0].matched, body.outcome.assigneeId]).toEqual([true, null]);
    }
    const refused = await call("POST", "/v1/rules", { name: "x", when: {}, then: { assigneeId: removed } });
    expect([refused.status, refused.body.error.param]).toEqual([422, "then.assigneeId"]);
  });

  test.each([{ labels: [] }, { labels: ["a", "a"] }, { labels: [" a"] }, { folder: "snoozed" }])(
    "with %j is refused",
    async (then) => {
      expect((await call("POST", "/v1/rules", { name: "x", when: {}, then })).status).toBe(422);
    },
  );

  test("of another inbox, or that is turned off, does nothing", async () => {
    await newRule({ inboxId: boxId, then: { archive: true } });
    await newRule({ enabled: false, then: { archive: true } });
    expect((await received({ to: "other@in.test" })).rules).toEqual([]);
    expect((await received()).rules).toHaveLength(1);
  });

  test("that was changed applies to the next message", async () => {
    const { id } = await newRule({ then: { archive: true } });
    expect((await received()).rules).toHaveLength(1);
    await call("PATCH", `/v1/rules/${id}`, { when: { subject: "other" } });
    expect((await received()).rules).toEqual([]);
  });

  test("goes with its inbox", async () => {
    const { body: inbox } = await call("POST", "/v1/inboxes", { address: "going@in.test" });
    const { id } = await newRule({ inboxId: inbox.id, then: { archive: true } });
    expect((await call("DELETE", `/v1/inboxes/${inbox.id}`)).status).toBe(204);
    expect((await call("GET", `/v1/rules/${id}`)).status).toBe(404);
  });
});

/** Conditions, and whether each of the headers below them meets them. */
const LETTER: Partial<Letter> = {
  headers: [
    "From: Ada Lovelace <ada@Client.test>",
    "Cc: team@other.test",
    "Subject: =?utf-8?q?Rechnung_f=C3=BCr_M=C3=A4rz?=",
    "List-Id: <news.client.test>",
  ],
};
const CONDITIONS: [when: Record<string, unknown>, met: boolean][] = [
  [{}, true],
  [{ from: "ADA@" }, true],
  [{ from: "*@client.test" }, true],
  [{ from: "*@client" }, false],
  [{ from: "Lovelace" }, false],
  [{ to: "team@other.test" }, true],
  [{ to: BOX }, true],
  [{ subject: "FÜR MÄRZ" }, true],
  [{ subject: "*rechnung" }, false],
  [{ subject: ".*" }, false],
  [{ header: { name: "list-ID" } }, true],
  [{ header: { name: "List-Id", value: "News.client" } }, true],
  [{ header: { name: "List-Id", value: "other" } }, false],
  [{ header: { name: "X-Absent" } }, false],
  [{ hasAttachment: false }, true],
  [{ hasAttachment: true }, false],
  [{ largerThan: 10 }, true],
  [{ largerThan: 100_000 }, false],
  [{ auth: "fail" }, true],
  [{ auth: "pass" }, false],
  [{ spamScoreAbove: -1000 }, false],
  [{ from: "ada", subject: "März" }, true],
  [{ from: "ada", subject: "April" }, false],
];
test.each(CONDITIONS)(
  "the conditions %j are met: %p, as the message arrives and when it is tried",
  async (when, met) => {
    const { id } = await newRule({ when, then: { archive: true } });
    const record = await received(LETTER);
    expect(record.rules.length).toBe(Number(met));
    const { body } = await call("POST", "/v1/rules/try", { emailId: record.id });
    expect(body.rules).toMatchObject([{ id, matched: met }]);
    expect(body.outcome.archive).toBe(met);
  },
);

test("a trial shows each rule up to the one that ends them, and the first condition that is not met", async () => {
  await newRule({ name: "1", when: { from: "ada", subject: "other" }, then: { archive: true } });
  await newRule({ name: "3", position: 9, then: { drop: true } });
  await newRule({
    name: "2",
    position: 5,
    when: { from: "ada" },
    then: { markRead: true, labels: ["a"], folder: "spam", stop: true },
  });
  const { id } = await received();
  const { body } = await call("POST", "/v1/rules/try", { emailId: id });
  const from = { condition: "from", met: true };
  expect(body.rules).toMatchObject([
    { name: "1", matched: false, conditions: [from, { condition: "subject", met: false }] },
    { name: "2", matched: true, conditions: [from] },
  ]);
  expect(body.outcome).toEqual({
    labels: ["a"],
    assigneeId: null,
    folder: "spam",
    archive: false,
    markRead: true,
    reply: null,
    forwards: [],
    reject: null,
    drop: false,
  });
  expect((await call("POST", "/v1/rules/try", { emailId: "msg_none" })).status).toBe(404);
});

describe("a message that a rule refuses", () => {
  test("gets 550 with the rule's text, and leaves its header and the rule's name", async () => {
    const { id } = await newRule({
      name: "Ads",
      when: { subject: "buy" },
      then: { reject: "No advertising, please" },
    });
    const letter = { to: BOX, headers: ["Subject: buyreject"], body: "the body" };
    expect(await deliver(service, letter)).toBe("550 5.7.1 No advertising, please");
    const [{ id: emailId }] = await withSubject("buyreject");
    const { body } = await call("GET", `/v1/emails/${emailId}`);
    expect(body).toMatchObject({ status: "inbound_rejected", text: null, rules: [{ id, name: "Ads" }] });
    expect(body.events).toMatchObject([
      { data: { inbound_rejected: { reason: "rule", rule: { id, name: "Ads" } } } },
    ]);
  });

  test("is accepted if the rule drops it, and leaves the same record", async () => {
    await newRule({ then: { drop: true } });
    expect(await deliver(service, { to: BOX, headers: ["Subject: dropped"] })).toStartWith("250");
    const [{ id, status }] = await withSubject("dropped");
    expect(status).toBe("inbound_rejected");
    const { body } = await call("GET", `/v1/emails/${id}`);
    expect(body.events[0].data.inbound_rejected.reason).toBe("dropped");
    expect(body.threadId).toBeNull();
  });

  test("is stored in the inboxes whose rules do not refuse it", async () => {
    await newRule({ inboxId: boxId, then: { reject: "Not here" } });
    const letter = { to: [BOX, "other@in.test"], headers: ["Subject: halved"] };
    expect(await deliver(service, letter)).toStartWith("250");
    const found = (await withSubject("halved")) as { status: string }[];
    expect(found.map(({ status }) => status).sort()).toEqual(["delivered", "inbound_rejected"]);
  });
});

const FAULTS: [what: string, rule: Record<string, unknown>, status: number][] = [
  ["nothing to do", { then: {} }, 422],
  ["only what is false", { then: { archive: false } }, 422],
  ["both drop and reject", { then: { drop: true, reject: "No" } }, 422],
  ["a reply with a line end", { then: { reject: "No\r\n250 OK" } }, 422],
  ["a reply beyond ASCII", { then: { reject: "Nö" } }, 422],
  ["a reply that is too long", { then: { reject: "x".repeat(201) } }, 422],
  ["a string that is too long", { when: { from: "x".repeat(201) }, then: { stop: true } }, 422],
  ["an unknown condition", { when: { body: "x" }, then: { stop: true } }, 422],
  ["an unknown action", { then: { explode: true } }, 422],
  ["a header name with a space", { when: { header: { name: "X Y" } }, then: { stop: true } }, 422],
  ["an inbox that is not there", { inboxId: "inb_none", then: { stop: true } }, 404],
];
test.each(FAULTS)("a rule with %s is refused", async (_, rule, status) => {
  expect((await call("POST", "/v1/rules", { name: "A rule", when: {}, ...rule })).status).toBe(status);
});

test("rules are listed in their order over pages", async () => {
  for (const [name, position] of [
    ["c", 30],
    ["a", 4],
    ["b", 4],
    ["d", undefined],
  ] as const)
    await newRule({ name, position, then: { stop: true } });
  const first = (await call("GET", "/v1/rules?limit=2")).body;
  const second = (await call("GET", `/v1/rules?limit=2&cursor=${first.nextCursor}`)).body;
  const names = [...first.data, ...second.data].map(({ name }: { name: string }) => name);
  expect([names, second.nextCursor]).toEqual([["a", "b", "c", "d"], null]);
});

test(`a project has at most ${MAX_RULES} rules`, async () => {
  for (let made = 0; made < MAX_RULES; made++) await newRule({ then: { stop: true } });
  const { status, body } = await call("POST", "/v1/rules", { name: "x", when: {}, then: { stop: true } });
  expect([status, body.error.code]).toEqual([403, "quota_exceeded"]);
  for (let page = 0; page < 2; page++)
    for (const { id } of (await call("GET", "/v1/rules?limit=100")).body.data)
      await call("DELETE", `/v1/rules/${id}`);
});
