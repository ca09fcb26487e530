import { afterAll, beforeAll, expect, test } from "bun:test";
import { Admission } from "../../src/core/concurrency/admission.ts";
import { TEST_KEY } from "../support/api.ts";
import { payloadMemory } from "../support/payload-memory.ts";
import { systemClock } from "../../src/clock.ts";
import { prepareBody } from "../../src/store/messages/prepare-content.ts";
import { push, type PushDeps } from "../../src/flows/webhooks/push.ts";
import { LARGE_READS } from "../../src/store/contents/large-reads.ts";
import { readRecord } from "../../src/flows/read/record.ts";
import { forgetDeliveries, forgetMessages } from "../../src/flows/sweep/retention.ts";
import { verifyDomain } from "../../src/flows/domains/verify.ts";
import type { PostRequest } from "../../src/net/post.ts";
import { storeRendered } from "../../src/store/messages/message-content.ts";
import type { Db, Statement, Value } from "../../src/store/engine/client.ts";
import { claimRecipient, rollUpMessage } from "../../src/store/messages/outbox.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { around } from "../support/around.ts";
import { interject, type Step } from "../support/interject.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

// Operations that meet another one at a critical step. No worker runs: each test moves its own mail.
let service: TestService;
let db: Db;
let domainId: string;
let inboxId: string;
let made = 0;

beforeAll(async () => {
  service = await startService({ ROLES: "api" });
  db = service.app.db;
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["a@in.test"]);
  domainId = (await service.call("GET", "/v1/domains")).body.data[0].id;
});
afterAll(() => service.stop());

const HOOK = { url: "http://127.0.0.1:9/hook", eventTypes: ["*"] };
const DAY_MS = 86_400_000;

async function post(path: string, body: unknown = {}) {
  const answer = await service.call("POST", path, body);
  expect(answer.status).toBeLessThan(300);
  return answer.body;
}

const send = (over: object = {}) =>
  post("/v1/emails", {
    from: { email: "a@in.test" },
    to: [{ email: `r${++made}@there.test` }],
    subject: "x",
    text: "x",
    ...over,
  });

const change = (sql: string, ...args: Value[]) => db.write([{ sql, args }]);
const instance = async () => (await db.first<{ id: string }>("SELECT id FROM instances"))?.id ?? "";

/** The newest delivery of a message to the webhook. */
async function deliveryTo(webhookId: string, messageId: string): Promise<string | undefined> {
  const sql = "SELECT id FROM webhook_deliveries WHERE webhook_id = ? AND message_id = ? ORDER BY id DESC";
  return (await db.first<{ id: string }>(sql, [webhookId, messageId]))?.id;
}

interface Change {
  what: string;
  table: string;
  path: () => Promise<string>;
  /** The path's end and the body of either request, and the field in which their answers differ. */
  one: [string, string, unknown];
  other: [string, string, unknown];
  field: string;
  wanted: unknown;
  key?: () => string;
}

const contact = async () => `/v1/contacts/${(await post("/v1/contacts", { email: `c${++made}@c.test` })).id}`;
const webhook = async () => `/v1/webhooks/${(await post("/v1/webhooks", HOOK)).id}`;
const patch = (field: string, value: unknown): [string, string, unknown] => ["PATCH", "", { [field]: value }];

const CHANGES: readonly Change[] = [
  {
    what: "an unsubscribed contact",
    table: "contacts",
    path: contact,
    field: "subscribed",
    wanted: false,
    one: ["POST", "/unsubscribe", undefined],
    other: ["POST", "/resubscribe", undefined],
  },
  {
    what: "a contact",
    table: "contacts",
    path: contact,
    field: "firstName",
    wanted: "Ada",
    one: patch("firstName", "Ada"),
    other: patch("firstName", "Bob"),
  },
  {
    what: "a webhook",
    table: "webhooks",
    path: webhook,
    field: "enabled",
    wanted: false,
    one: patch("enabled", false),
    other: patch("enabled", true),
  },
  {
    what: "an inbox",
    table: "inboxes",
    path: async () => `/v1/inboxes/${inboxId}`,
    field: "displayName",
    wanted: "Ada",
    one: patch("displayName", "Ada"),
    other: patch("displayName", "Bob"),
  },
  {
    what: "a domain's receiving",
    table: "domains",
    path: async () => `/v1/domains/${domainId}/receiving`,
    field: "enabled",
    wanted: false,
    one: patch("enabled", false),
    other: patch("enabled", true),
  },
  {
    what: "a project",
    table: "senders",
    key: () => service.accountKey,
    field: "name",
    wanted: "Ada",
    path: async () =>
      `/v1/senders/${(await service.call("GET", "/v1/senders", undefined, { key: service.accountKey })).body.data[0].id}`,
    one: patch("name", "Ada"),
    other: patch("name", "Bob"),
  },
];

test.each([...CHANGES])(
  "$what that is changed twice at once: each request is answered with its own change",
  async (row) => {
    const path = await row.path();
    const options = row.key === undefined ? {} : { key: row.key() };
    const call = ([method, end, body]: Change["one"]) => service.call(method, `${path}${end}`, body, options);
    const at: Step = { sql: new RegExp(`UPDATE ${row.table} SET`), when: "behind" };
    const other = interject(db, at, () => call(row.other));
    const { status, body } = await call(row.one);
    expect([status, body[row.field]]).toEqual([200, row.wanted]);
    expect((await other).status).toBe(200);
  },
);

test("a record that is read while its message is claimed is consistent", async () => {
  const { id } = await send();
  const { senderId } = (await service.call("GET", `/v1/emails/${id}`)).body;
  const at: Step = { sql: /FROM message_content c JOIN messages m/, when: "behind" };
  const claimed = interject(db, at, async () => {
    const place = { messageId: id, ord: 0, attempts: 0 };
    return db.write([claimRecipient(place, await instance(), systemClock.now()), rollUpMessage(id, null)]);
  });
  const record = await readRecord({ db, memory: { largeReads: new Admission(LARGE_READS) } }, senderId, id);
  expect((await claimed)[0]?.changes).toBe(1);
  const recipients = record?.recipients.map(({ status }) => status);
  expect([record?.message.status, recipients]).toEqual(["sending", ["sending"]]);
});

test("a record that is read while its template is rendered has subject and body from after it", async () => {
  const { id: templateId } = await post("/v1/templates", { name: "t", subject: "Hello", text: "Hello" });
  const { id } = await send({ subject: undefined, text: undefined, templateId });
  const { senderId } = (await service.call("GET", `/v1/emails/${id}`)).body;
  const at: Step = { sql: /FROM message_content c JOIN messages m/, when: "behind" };
  const rendered = interject(db, at, async () => {
    const body = await prepareBody({ db, clock: systemClock }, senderId, { html: null, text: "Hello" });
    return db.write(storeRendered(senderId, id, { subject: "Hello", body }, systemClock.now()));
  });
  const record = await readRecord({ db, memory: { largeReads: new Admission(LARGE_READS) } }, senderId, id);
  await rendered;
  expect([record?.message.subject, record?.content.text]).toEqual(["Hello", "Hello"]);
});

test("a thread that is read while a message arrives counts the messages that it shows", async () => {
  const { threadId, messageId } = await post("/v1/inbound/simulate", { inboxId, text: "x" });
  const at: Step = { sql: /FROM threads WHERE/, when: "behind" };
  const answer = interject(db, at, () =>
    post("/v1/inbound/simulate", { inboxId, text: "x", inReplyTo: messageId }),
  );
  const { body } = await service.call("GET", `/v1/threads/${threadId}`);
  await answer;
  const ids = body.messages.map(({ id }: { id: string }) => id);
  expect([body.messageCount, body.lastMessageId]).toEqual([ids.length, ids.at(-1)]);
});

test("a DKIM key made while a check queries the DNS is searched as soon as without the check", async () => {
  const { id } = await post("/v1/domains", { domain: `d${++made}.test` });
  await change(
    `UPDATE domains SET status = 'verified', dkim_verified = 1, spf_verified = 1, dmarc_verified = 1, verified_at = 1,
      created_at = 1, checked_at = 1 WHERE id = ?`,
    id,
  );
  const failure = async () => ({ status: "failure" as const });
  const deps = {
    db,
    clock: systemClock,
    serviceDomain: SERVICE_DOMAIN,
    boxKey: new Uint8Array(32),
    generateDkimKey: async () => TEST_KEY,
    findZoneServers: async () => [],
    publicIps: [],
    secondaryNames: [],
    capturesAnyFrom: false,
    recheckSeconds: null,
    isCaptureDomain: () => false,
    hostsDomains: false,
  };
  for (const by of ["sweep", "client"] as const) {
    await change("DELETE FROM dkim_keys WHERE domain_id = ? AND status = 'pending'", id);
    const at: Step = { sql: /UPDATE domains SET status/, when: "before" };
    const rotated = interject(db, at, () => post(`/v1/domains/${id}/rotate-dkim`));
    const { senderId } = (await service.call("GET", `/v1/inboxes/${inboxId}`)).body;
    const lookups = { cname: failure, txt: failure, mx: failure, ns: failure, a: failure, aaaa: failure };
    expect(await verifyDomain({ ...deps, lookups }, senderId, id, by)).toMatchObject({ status: "verified" });
    await rotated;
    const row = await db.first<{ next: number }>("SELECT next_check_at AS next FROM domains WHERE id = ?", [
      id,
    ]);
    expect((row?.next ?? 0) - systemClock.now()).toBeLessThan(DAY_MS / 24);
  }
});

test("a key that is revoked while it makes another one makes none", async () => {
  const { senderId } = (await service.call("GET", `/v1/inboxes/${inboxId}`)).body;
  const { id, secret: key } = await post("/v1/api-keys", { name: "stolen", senderId });
  const at: Step = { sql: /INSERT INTO api_keys/, when: "before" };
  const revoked = interject(db, at, () => service.call("DELETE", `/v1/api-keys/${id}`));
  const refused = await service.call("POST", "/v1/api-keys", { name: "another", senderId }, { key });
  expect((await revoked).status).toBe(204);
  expect([refused.status, refused.body.error.type]).toEqual([401, "authentication_error"]);
  const { data } = (await service.call("GET", "/v1/api-keys")).body;
  expect(data.map(({ name }: { name: string }) => name)).not.toContain("another");
});

test("a webhook that is disabled while a push reads its data gets nothing more", async () => {
  const { id: webhookId } = await post("/v1/webhooks", HOOK);
  const { id } = await send();
  const delivery = (await deliveryTo(webhookId, id)) ?? "";
  const posted: PostRequest[] = [];
  const deps: PushDeps = {
    db,
    clock: systemClock,
    instanceId: await instance(),
    random: () => 0.5,
    boxKey: openKeys(null, service.folder).box,
    ...payloadMemory(),
    async post(request) {
      posted.push(request);
      return { kind: "answered", status: 200, body: new Uint8Array() };
    },
    policy: { delaysSeconds: [0], timeoutMs: 1000, disableAfterMs: DAY_MS, allowPrivate: true },
  };
  const at: Step = { sql: /FROM messages/, when: "behind" };
  const off = interject(db, at, () => service.call("PATCH", `/v1/webhooks/${webhookId}`, { enabled: false }));
  await push(deps, { key: delivery, lane: webhookId });
  expect((await off).body.enabled).toBe(false);
  expect(posted).toEqual([]);
});

test.each([
  ["sent", () => send({ text: "x".repeat(600_000) })],
  ["received", () => post("/v1/inbound/simulate", { inboxId, text: "x".repeat(600_000) })],
] as const)(
  "a webhook that is made while a large message is written learns that it is %s",
  async (_, store) => {
    const at: Step = { sql: /INSERT INTO content_chunks/, when: "behind" };
    const hook = interject(db, at, () => post("/v1/webhooks", HOOK));
    const { id, messageId } = await store();
    expect(await deliveryTo((await hook).id, id ?? messageId)).toStartWith("dlv_");
  },
);

test("a delivery that is replayed while the log is shortened stays in it", async () => {
  const { id: webhookId } = await post("/v1/webhooks", HOOK);
  const { id } = await send();
  const delivery = (await deliveryTo(webhookId, id)) ?? "";
  const state = (at: number) =>
    change(
      "UPDATE webhook_deliveries SET status = 'succeeded', due_at = NULL, last_attempt_at = ? WHERE id = ?",
      at,
      delivery,
    );
  await state(1);
  const later = { ...systemClock, now: () => systemClock.now() + 2 * DAY_MS };
  const at: Step = { sql: /DELETE FROM webhook_deliveries/, when: "before" };
  const replayed = interject(db, at, () => state(later.now()));
  await forgetDeliveries({ db, clock: later }, 1)();
  await replayed;
  expect(await deliveryTo(webhookId, id)).toBe(delivery);
});

test("a thread never shows a last message that another process has just deleted", async () => {
  const later = { ...systemClock, now: () => systemClock.now() + 2 * DAY_MS };
  const simulate = (inReplyTo?: string) => post("/v1/inbound/simulate", { inboxId, inReplyTo, text: "x" });
  await post("/v1/webhooks", HOOK);
  const first = await simulate();
  const second = await simulate(first.messageId);
  const third = await simulate(first.messageId);
  const pending = (yes: boolean, { messageId }: { messageId: string }): Statement => ({
    sql: "UPDATE webhook_deliveries SET status = ?, due_at = ? WHERE message_id = ?",
    args: [yes ? "pending" : "succeeded", yes ? 1 : null, messageId],
  });
  await db.write([pending(false, third)]);
  // A second connection, because the first one is held up by what this one does.
  const slow = around(db);
  const at: Step = { sql: /DELETE FROM messages/, when: "before" };
  const deleted = interject(slow, at, async () => {
    await db.write([pending(false, second), pending(true, third)]);
    await forgetMessages({ db, clock: later }, 1)();
    await db.write([pending(false, third)]);
  });
  await forgetMessages({ db: slow, clock: later }, 1)();
  await deleted;
  expect((await service.call("GET", `/v1/emails/${second.messageId}`)).status).toBe(404);
  const { body } = await service.call("GET", `/v1/threads/${first.threadId}`);
  const ids = body.messages.map(({ id }: { id: string }) => id);
  expect(ids).toContain(body.lastMessageId);
  expect(body.messageCount).toBe(ids.length);
});

test("a send whose thread another process begins at the same time joins it", async () => {
  const headers = { References: `<ticket-${++made}@else.test>` };
  const at: Step = { sql: /INSERT INTO messages /, when: "before" };
  const other = interject(db, at, () => send({ headers }));
  const ids = [(await send({ headers })).id, (await other).id];
  const threads = await Promise.all(
    ids.map(async (id) => (await service.call("GET", `/v1/emails/${id}`)).body.threadId),
  );
  expect(threads[0]).toStartWith("thr_");
  expect(threads[1]).toBe(threads[0]);
});
