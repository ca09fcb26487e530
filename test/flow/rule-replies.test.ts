import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { DAY_MS } from "../../src/core/time/units.ts";
import { MAX_FAILURES, dueEffects } from "../../src/store/rules/rule-effects.ts";
import { deliveredRecord, type Letter } from "../support/mail-in.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { type ShiftedClock, shiftedClock, turnUntil } from "../support/shifted-clock.ts";

const BOX = "box@in.test";
let service: TestService;
let clock: ShiftedClock;
let templateId: string;

const call: TestService["call"] = (...asked) => service.call(...asked);

beforeAll(async () => {
  clock = shiftedClock();
  service = await startService({}, clock);
  await receivingInboxes(service, "in.test", [BOX]);
  // Mail from this machine is authentic for the domain.
  service.dns.add({ name: "client.test", type: "TXT", data: "v=spf1 ip4:127.0.0.1 -all" });
  service.dns.add({ name: "_dmarc.client.test", type: "TXT", data: "v=DMARC1; p=none" });
  const template = {
    name: "Away",
    slug: "away",
    subject: "Away",
    text: 'Thanks for "{{ subject }}". We are away.',
  };
  templateId = (await call("POST", "/v1/templates", template)).body.id;
});
afterAll(() => service.stop());
beforeEach(async () => {
  for (const { id } of (await call("GET", "/v1/rules?limit=100")).body.data)
    await call("DELETE", `/v1/rules/${id}`);
});

async function newRule(then: Record<string, unknown> = { replyTemplateId: templateId }) {
  const { status, body } = await call("POST", "/v1/rules", { name: "Away", when: {}, then });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}
const received = (letter: Partial<Letter> = {}) => deliveredRecord(service, { to: BOX, ...letter });
const tried = async ({ id }: { id: string }) =>
  (await call("POST", "/v1/rules/try", { emailId: id })).body.outcome;
/** Sends the replies that are due, and returns the messages of a received one's conversation. */
async function conversation({ threadId }: { threadId: string }) {
  await turnUntil(clock, async () => (await dueEffects(service.app.db, clock.now(), 1)).length === 0);
  return (await call("GET", `/v1/threads/${threadId}`)).body.messages;
}

test("a rule answers a message with its template, as a program does, in the same conversation", async () => {
  await newRule();
  const headed = ["From: ada@client.test", "Subject: Hello", "Message-ID: <hello@client.test>"];
  const record = await received({ headers: headed });
  const [, reply] = await conversation(record);
  expect(reply).toMatchObject({ direction: "outbound", to: ["ada@client.test"], subject: "Re: Hello" });
  const { headers } = (await call("GET", `/v1/emails/${reply.id}`)).body;
  expect(headers).toMatchObject({ "Auto-Submitted": "auto-replied", "In-Reply-To": "<hello@client.test>" });
  const raw = (await call("GET", `/v1/emails/${reply.id}/raw`)).body;
  expect(raw).toContain('Thanks for "Hello". We are away.');
});

const UNANSWERED: [what: string, letter: Partial<Letter>, reason: string][] = [
  ["whose author is not proven", { headers: ["From: ada@other.test"] }, "unauthenticated"],
  ["with the null reverse path", { mailFrom: "", headers: ["From: nobody@client.test"] }, "automatic"],
  ["of a program", { headers: ["From: a1@client.test", "Auto-Submitted: auto-generated"] }, "automatic"],
  ["in bulk", { headers: ["From: a2@client.test", "Precedence: bulk"] }, "bulk"],
  ["of a mailing list", { headers: ["From: a3@client.test", "List-Id: <news.client.test>"] }, "bulk"],
  [
    "that can be unsubscribed from",
    { headers: ["From: a4@client.test", "List-Unsubscribe: <mailto:x@client.test>"] },
    "bulk",
  ],
  [
    "that asks for no answer",
    { headers: ["From: a5@client.test", "X-Auto-Response-Suppress: All"] },
    "automatic",
  ],
];
test.each(UNANSWERED)("no rule answers a message %s, and a trial says why", async (_, letter, reason) => {
  await newRule();
  const record = await received(letter);
  expect(record.rules).toHaveLength(1);
  expect(await conversation(record)).toHaveLength(1);
  expect((await tried(record)).reply.reason).toBe(reason);
});

test("each author gets one reply a day from a rule, and a trial does not count", async () => {
  const { id } = await newRule();
  const letter = { headers: ["From: daily@client.test"] };
  const first = await received(letter);
  expect((await tried(first)).reply).toEqual({ ruleId: id, templateId, reason: null });
  expect(await conversation(first)).toHaveLength(2);
  const again = await received({ ...letter, body: "again" });
  expect(await conversation(again)).toHaveLength(1);
  expect((await tried(again)).reply.reason).toBe("answered_today");
  clock.shift(DAY_MS);
  expect(await conversation(await received({ ...letter, body: "tomorrow" }))).toHaveLength(2);
});

test("a trial names the check of a send that would refuse the reply", async () => {
  const spare = (await call("POST", "/v1/templates", { name: "Gone", slug: "gone", subject: "x", text: "x" }))
    .body;
  await newRule({ replyTemplateId: "gone" });
  const record = await received({ headers: ["From: tried@client.test"] });
  await call("POST", "/v1/suppressions", { email: "tried@client.test", reason: "manual" });
  expect((await tried(record)).reply.reason).toBe("suppressed_recipient");
  await call("DELETE", `/v1/templates/${spare.id}`);
  expect((await tried(record)).reply.reason).toBe("template_not_found");
});

test("two processes answer each message once", async () => {
  await newRule();
  const other = await startService(service.sameDatabase, clock);
  try {
    const authors = Array.from({ length: 5 }, (_, at) => `From: once${at}@client.test`);
    const records = await Promise.all(authors.map((from) => received({ headers: [from] })));
    for (const record of records) expect(await conversation(record)).toHaveLength(2);
  } finally {
    await other.stop();
  }
});

test("a rule needs a template of the project, by id or slug", async () => {
  const { status, body } = await call("POST", "/v1/rules", {
    name: "x",
    when: {},
    then: { replyTemplateId: "none" },
  });
  expect([status, body.error.code, body.error.param]).toEqual([
    422,
    "template_not_found",
    "then.replyTemplateId",
  ]);
  expect((await newRule({ replyTemplateId: "away" })).then).toEqual({ replyTemplateId: "away" });
});

test(`a rule that fails ${MAX_FAILURES} times one after another is disabled with a notice, which ends when it is enabled`, async () => {
  const spare = (
    await call("POST", "/v1/templates", { name: "Spare", slug: "spare", subject: "x", text: "x" })
  ).body;
  const { id } = await newRule({ replyTemplateId: "spare" });
  const enabled = async () => (await call("GET", `/v1/rules/${id}`)).body.enabled;
  const reasons = async () => [
    (await call("GET", `/v1/rules/${id}`)).body.disabledReason,
    (await call("GET", "/v1/rules?limit=100")).body.data.find((rule: { id: string }) => rule.id === id)
      .disabledReason,
  ];
  const notices = async () =>
    (await call("GET", "/v1/notices?ended=false")).body.data.filter(
      ({ kind }: { kind: string }) => kind === "rule_disabled",
    );
  await conversation(await received({ headers: ["From: works@client.test"] }));
  await call("DELETE", `/v1/templates/${spare.id}`);
  let last = "";
  for (let at = 0; at < MAX_FAILURES; at++) {
    if (at === MAX_FAILURES - 1) {
      await conversation({ threadId: last });
      expect(await enabled()).toBe(true);
    }
    last = (await received({ headers: [`From: fails${at}@client.test`] })).threadId;
  }
  await conversation({ threadId: last });
  expect(await enabled()).toBe(false);
  expect(await reasons()).toEqual(Array(2).fill(expect.stringContaining("template")));
  expect(await notices()).toMatchObject([{ kind: "rule_disabled", subject: "Away" }]);
  expect((await received({ headers: ["From: after@client.test"] })).rules).toEqual([]);
  await call("PATCH", `/v1/rules/${id}`, { enabled: true, then: { replyTemplateId: templateId } });
  expect([...(await notices()), ...(await reasons())]).toEqual([null, null]);
  expect(await conversation(await received({ headers: ["From: later@client.test"] }))).toHaveLength(2);
});

test("a reply may use a template", async () => {
  const { threadId } = await received({ headers: ["From: ada@other.test"] });
  const { status, body } = await call("POST", `/v1/threads/${threadId}/reply`, {
    templateId: "away",
    data: { subject: "you" },
  });
  expect(status).toBe(202);
  const raw = (await call("GET", `/v1/emails/${body.id}/raw`)).body;
  expect(raw).toContain('Thanks for "you". We are away.');
});
