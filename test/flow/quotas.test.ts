import { afterEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { newId } from "../../src/core/ids.ts";
import { insertAttempt } from "../../src/store/messages/attempts.ts";
import { deleteOldAnswers, IDEMPOTENCY_WINDOW_MS } from "../../src/store/projects/idempotency.ts";
import { removeUnused, UNUSED_KEPT_MS } from "../../src/store/contents/contents.ts";
import { type NewSuppression, suppress } from "../../src/store/projects/suppressions.ts";
import { startSink } from "../support/https-sink.ts";
import { deliver, delivered, smtpSession } from "../support/mail-in.ts";
import { recounted } from "../support/recount.ts";
import {
  receivingInboxes,
  SERVICE_DOMAIN,
  startService,
  type TestService,
  verifiedDomain,
} from "../support/service.ts";

const FROM = { email: "news@sender.test" };
const TO = [{ email: `delivered@simulator.${SERVICE_DOMAIN}` }];
const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A service whose first project is on the plan `pro`, with these quotas; the rate limits nothing. */
async function start(quotas: Record<string, string> = {}, verified = false): Promise<TestService> {
  const service = await startService({ PLAN_PRO: "unlimited", ...quotas });
  closing.push(() => service.stop());
  if (verified) await verifiedDomain(service, "sender.test");
  await onPlan(service, "pro");
  return service;
}

const senderId = async (service: TestService): Promise<string> =>
  (await service.call("GET", "/v1/senders", undefined, { key: service.accountKey })).body.data[0].id;

async function onPlan(service: TestService, plan: string): Promise<void> {
  const path = `/v1/senders/${await senderId(service)}`;
  const changed = await service.call("PATCH", path, { plan }, { key: service.accountKey });
  expect(changed.status).toBe(200);
}

/** Starts the service again with room for that many bytes more than are stored. */
async function leave(service: TestService, octets: number): Promise<void> {
  const { used } = (await resources(service)).storedOctets;
  await service.restart({ QUOTA_STORED_OCTETS: `none,${used + octets},none` });
}

const resources = async (service: TestService) => (await service.call("GET", "/v1/quota")).body.resources;
const mail = (text: string, more: Record<string, unknown> = {}) => ({
  from: FROM,
  to: TO,
  subject: "Hi",
  text,
  ...more,
});
const noise = (octets: number): string =>
  randomBytes(Math.ceil(octets / 2))
    .toString("hex")
    .slice(0, octets);
const over = (param: string) => ({
  status: 403,
  body: { error: { type: "permission_error", code: "quota_exceeded", param } },
});
const upTo2 = (name: string) => ({ [`QUOTA_${name}`]: "none,2,none" });

describe("one more than the plan allows is refused, and room comes back with a deletion", () => {
  const rows: readonly [resource: string, setting: string, path: string, body: (n: number) => unknown][] = [
    ["templates", "TEMPLATES", "/v1/templates", (n) => ({ name: `T ${n}`, subject: "s", text: "t" })],
    [
      "webhooks",
      "WEBHOOKS",
      "/v1/webhooks",
      (n) => ({ url: `http://127.0.0.1:9/${n}`, eventTypes: ["bounce"] }),
    ],
    ["contacts", "CONTACTS", "/v1/contacts", (n) => ({ email: `c${n}@x.test` })],
    ["domains", "DOMAINS", "/v1/domains", (n) => ({ domain: `d${n}.example` })],
  ];
  for (const [resource, setting, path, body] of rows)
    test(resource, async () => {
      const service = await start(upTo2(setting));
      const made = [];
      for (const n of [1, 2]) made.push(await service.call("POST", path, body(n)));
      expect(made.map(({ status }) => status)).toEqual([201, 201]);
      expect(await service.call("POST", path, body(3))).toMatchObject(over(resource));
      expect((await resources(service))[resource]).toEqual({ used: 2, limit: 2 });
      expect((await service.call("DELETE", `${path}/${made[0]?.body.id}`)).status).toBe(204);
      // Two at once for the last place: one gets it.
      const both = await Promise.all([4, 5].map((n) => service.call("POST", path, body(n))));
      expect(both.map(({ status }) => status).sort()).toEqual([201, 403]);
      expect((await resources(service))[resource]).toEqual({ used: 2, limit: 2 });
      await onPlan(service, "unlimited");
      expect((await service.call("POST", path, body(6))).status).toBe(201);
    });

  test("one inbox more than the plan allows is refused, and a deletion makes room", async () => {
    const service = await start(upTo2("INBOXES"));
    const [first] = await receivingInboxes(service, "in.test", ["a@in.test", "b@in.test"]);
    const make = (address: string) => service.call("POST", "/v1/inboxes", { address });
    expect(await make("c@in.test")).toMatchObject(over("inboxes"));
    await service.call("DELETE", `/v1/inboxes/${first}`);
    expect((await make("c@in.test")).status).toBe(201);
    expect(await make("d@in.test")).toMatchObject(over("inboxes"));
  });

  test("API keys: those of a project by its plan, those of the account by that of its rate", async () => {
    const service = await start(upTo2("API_KEYS"));
    const project = await senderId(service);
    for (const owner of [project, null]) {
      const make = () =>
        service.call("POST", "/v1/api-keys", { name: "k", senderId: owner }, { key: service.accountKey });
      // The first start has made one of each.
      const second = await make();
      expect(second.status).toBe(201);
      expect(await make()).toMatchObject(over("apiKeys"));
      await service.call("DELETE", `/v1/api-keys/${second.body.id}`, undefined, { key: service.accountKey });
      const both = await Promise.all([make(), make()]);
      expect(both.map(({ status }) => status).sort()).toEqual([201, 403]);
    }
    expect((await resources(service)).apiKeys).toEqual({ used: 2, limit: 2 });
  });

  test("a batch of contacts is filled up to the quota, and changes those that exist beyond it", async () => {
    const service = await start(upTo2("CONTACTS"));
    const save = async (emails: string[], firstName: string) => {
      const contacts = emails.map((email) => ({ email, firstName }));
      const { body } = await service.call("POST", "/v1/contacts/batch", { contacts });
      return body.data.map(
        ({ result, error }: { result?: string; error?: { code: string } }) => result ?? error?.code,
      );
    };
    const over = "quota_exceeded";
    expect(await save(["a@x.test", "b@x.test", "c@x.test", "a@x.test"], "A")).toEqual([
      "created",
      "created",
      over,
      "unchanged",
    ]);
    expect(await save(["a@x.test", "d@x.test"], "B")).toEqual(["updated", over]);
    expect((await resources(service)).contacts).toEqual({ used: 2, limit: 2 });
  });

  test("suppressions: one that is there already is no more, and those of bounces come on top", async () => {
    const service = await start(upTo2("SUPPRESSIONS"));
    const add = (email: string) => service.call("POST", "/v1/suppressions", { email });
    expect((await add("a@x.test")).status).toBe(201);
    const batch = await service.call("POST", "/v1/suppressions/batch", {
      emails: ["a@x.test", "b@x.test", "no address", "c@x.test", "d@x.test"],
    });
    const outcome = batch.body.data.map(
      ({ email, error }: { email?: string; error?: { code: string } }) => email ?? error?.code,
    );
    expect(outcome).toEqual(["a@x.test", "b@x.test", "invalid_email", "quota_exceeded", "quota_exceeded"]);
    expect(await add("c@x.test")).toMatchObject(over("suppressions"));
    const bounced: NewSuppression = {
      id: newId("sup", Date.now()),
      senderId: await senderId(service),
      email: "e@x.test",
      reason: "bounce",
      bounceType: "hard",
      messageId: null,
      expiresAt: null,
      createdAt: Date.now(),
    };
    await service.app.db.write([suppress(bounced)]);
    expect((await resources(service)).suppressions).toEqual({ used: 3, limit: 2 });
    expect((await add("e@x.test")).status).toBe(200);
    expect((await service.call("POST", "/v1/contacts", { email: "still@x.test" })).status).toBe(201);
  });
});

describe("stored octets", () => {
  test("a render with an Idempotency-Key is refused once its answers have used them up", async () => {
    const service = await start();
    const template = await service.call("POST", "/v1/templates", {
      name: "t",
      subject: "s",
      text: noise(200_000),
    });
    await leave(service, 500_000);
    const render = (key: string) =>
      service.call(
        "POST",
        `/v1/templates/${template.body.id}/render`,
        {},
        { headers: { "idempotency-key": key } },
      );
    const answers = [];
    for (const key of ["a", "b", "c", "d"]) answers.push(await render(key));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 403, 403]);
    expect(answers[2]).toMatchObject(over("storedOctets"));
    expect((await render("a")).headers.get("idempotent-replayed")).toBe("true");
    // Nothing is stored without a key.
    expect((await service.call("POST", `/v1/templates/${template.body.id}/render`, {})).status).toBe(200);
    const { storedOctets } = await resources(service);
    expect(storedOctets.used).toBeLessThanOrEqual(storedOctets.limit);
    await deleteOldAnswers(service.app.db, Date.now() + IDEMPOTENCY_WINDOW_MS + 1, 10);
    expect((await render("d")).status).toBe(200);
  });

  test("a send fits to the octet, and one octet more is refused", async () => {
    const service = await start({}, true);
    const text = noise(5000);
    const before = (await resources(service)).storedOctets.used;
    // Scheduled: nothing is added to it afterwards.
    const scheduled = { scheduledAt: new Date(Date.now() + 3_600_000).toISOString() };
    expect((await service.call("POST", "/v1/emails", mail(text, scheduled))).status).toBe(202);
    const cost = (await resources(service)).storedOctets.used - before;
    expect(cost).toBeGreaterThan(5000 + 2048);
    await leave(service, cost - 1);
    const second = () => service.call("POST", "/v1/emails", mail(noise(5000), scheduled));
    expect(await second()).toMatchObject(over("storedOctets"));
    await leave(service, cost);
    const both = await Promise.all([second(), second()]);
    expect(both.map(({ status }) => status).sort()).toEqual([202, 403]);
    const { used, limit } = (await resources(service)).storedOctets;
    expect(used).toBe(limit);
    expect(await service.call("POST", "/v1/contacts", { email: "c@x.test" })).toMatchObject(
      over("storedOctets"),
    );
  });

  test("an equal attachment is stored, and counted, once", async () => {
    const service = await start({}, true);
    // Outgoing mail is kept once more as it was composed.
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString();
    const attachments = [{ filename: "a.bin", content: randomBytes(400_000).toString("base64") }];
    expect((await service.call("POST", "/v1/emails", mail("x", { attachments, scheduledAt }))).status).toBe(
      202,
    );
    await leave(service, 100_000);
    expect((await service.call("POST", "/v1/emails", mail("y", { attachments, scheduledAt }))).status).toBe(
      202,
    );
    const others = [{ filename: "b.bin", content: randomBytes(400_000).toString("base64") }];
    const refused = await service.call("POST", "/v1/emails", mail("z", { attachments: others, scheduledAt }));
    expect(refused).toMatchObject(over("storedOctets"));
    // Of a refused one no piece is left behind.
    const { storedOctets } = await resources(service);
    expect(storedOctets.used).toBeLessThan(storedOctets.limit);
  });

  test("a batch takes its items in order until they are used up; a smaller one after a large one still fits", async () => {
    const service = await start({}, true);
    await leave(service, 70_000);
    const emails = [20_000, 25_000, 60_000, 5000, 30_000].map((octets) => mail(noise(octets)));
    const once = { headers: { "idempotency-key": "batch" } };
    const batch = await service.call("POST", "/v1/emails/batch", { emails }, once);
    expect(batch.status).toBe(207);
    const codes = batch.body.data.map(
      ({ error }: { error?: { code: string; param: string } }) => error && [error.code, error.param],
    );
    const full = ["quota_exceeded", "storedOctets"];
    expect(codes).toEqual([undefined, undefined, full, undefined, full]);
    expect((await service.call("GET", "/v1/emails")).body.data).toHaveLength(3);
    expect((await service.call("POST", "/v1/emails/batch", { emails }, once)).body).toEqual(batch.body);
  });

  test("a template may shrink over the limit, and may not grow", async () => {
    const service = await start();
    const { body } = await service.call("POST", "/v1/templates", {
      name: "t",
      subject: "s",
      text: noise(10_000),
    });
    await leave(service, -1000);
    const change = (octets: number) =>
      service.call("PATCH", `/v1/templates/${body.id}`, { text: noise(octets) });
    expect(await change(10_001)).toMatchObject(over("storedOctets"));
    expect((await change(9999)).status).toBe(200);
    const contact = await service.call("POST", "/v1/contacts", { email: "c@x.test" });
    expect(contact).toMatchObject(over("storedOctets"));
    expect((await service.call("DELETE", `/v1/templates/${body.id}`)).status).toBe(204);
    expect((await service.call("POST", "/v1/contacts", { email: "c@x.test" })).status).toBe(201);
  });

  test("a cancellation is taken even when they are used up", async () => {
    const service = await start({}, true);
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await service.call("POST", "/v1/emails", mail("x", { scheduledAt }));
    await leave(service, -1);
    const once = { headers: { "idempotency-key": "stop" } };
    expect((await service.call("POST", `/v1/emails/${body.id}/cancel`, undefined, once)).status).toBe(200);
  });

  test("two sends of two processes for the last place: one gets it", async () => {
    const service = await start({}, true);
    const scheduled = { scheduledAt: new Date(Date.now() + 3_600_000).toISOString() };
    const { used } = (await resources(service)).storedOctets;
    await service.call("POST", "/v1/emails", mail(noise(3000), scheduled));
    const cost = (await resources(service)).storedOctets.used - used;
    await leave(service, cost);
    const env = {
      ...service.sameDatabase,
      QUOTA_STORED_OCTETS: `none,${used + 2 * cost},none`,
      PLAN_PRO: "unlimited",
    };
    const second = await startService(env);
    closing.push(() => second.stop());
    const key = { key: service.projectKey };
    const both = await Promise.all(
      [service, second].map((one) => one.call("POST", "/v1/emails", mail(noise(3000), scheduled), key)),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([202, 403]);
  });
});

describe("mail that comes in", () => {
  test("is told to come again when the project is full, and is taken when there is room", async () => {
    const service = await start();
    await receivingInboxes(service, "in.test", ["box@in.test"]);
    const letter = () => ({ to: "box@in.test", body: noise(500).repeat(40) });
    const before = (await resources(service)).storedOctets.used;
    await delivered(service, letter());
    const cost = (await resources(service)).storedOctets.used - before;
    expect(cost).toBeGreaterThan(40_000);
    await leave(service, cost - 1000);
    expect(await deliver(service, letter())).toStartWith("452 4.2.2 ");
    await leave(service, cost + 1000);
    await delivered(service, letter());
    expect((await service.call("GET", "/v1/emails?direction=inbound")).body.data).toHaveLength(2);
  });

  test("is refused at RCPT once nothing is left", async () => {
    const service = await start();
    await receivingInboxes(service, "in.test", ["box@in.test"]);
    await leave(service, 0);
    const session = await smtpSession(service.smtpPort);
    await session.say("MAIL FROM:<a@x.test>");
    expect(await session.say("RCPT TO:<box@in.test>")).toStartWith("452 4.2.2 ");
    session.end();
  });

  test("is refused at RCPT if its announced size has no room", async () => {
    const service = await start();
    await receivingInboxes(service, "in.test", ["box@in.test"]);
    await leave(service, 10_000);
    const answer = async (size: number) => {
      const session = await smtpSession(service.smtpPort);
      await session.say(`MAIL FROM:<a@x.test> SIZE=${size}`);
      const said = await session.say("RCPT TO:<box@in.test>");
      session.end();
      return said.slice(0, 9);
    };
    expect(await answer(9999)).toBe("250 2.1.5");
    expect(await answer(10_000)).toBe("452 4.2.2");
  });

  test("large incoming mail over the quota is refused before any of it is stored", async () => {
    const service = await start();
    await receivingInboxes(service, "in.test", ["box@in.test"]);
    await leave(service, 300_000);
    const body = `${noise(990)}\r\n`.repeat(1000);
    expect(await deliver(service, { to: "box@in.test", body })).toStartWith("452 4.2.2 ");
    const { storedOctets } = await resources(service);
    expect(storedOctets.used).toBeLessThanOrEqual(storedOctets.limit);
    expect(
      await service.call("POST", "/v1/inbound/simulate", { to: "box@in.test", text: noise(400_000) }),
    ).toMatchObject(over("storedOctets"));
  });
});

describe("what others write counts as well", () => {
  test("the conversation of each attempt, until its message is deleted", async () => {
    const service = await start({}, true);
    const { db } = service.app;
    const used = async () => (await resources(service)).storedOctets.used;
    const before = await used();
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = (await service.call("POST", "/v1/emails", mail("Hi", { scheduledAt }))).body;
    const accepted = await used();
    const attempt = {
      messageId: id,
      ord: 0,
      startedAt: 1,
      durationMs: 1,
      outcome: "delivery_delayed",
      mx: null,
      ip: null,
      tls: null,
      egress: null,
      routeId: null,
      relayId: null,
      smtpCode: 451,
      enhancedCode: null,
      diagnostic: "é",
      transcript: ["ü".repeat(1000)],
    };
    for (const at of [1, 2])
      await db.write([insertAttempt({ ...attempt, attempt: at }, { sql: "1", args: [] })]);
    const octets = 256 + Buffer.byteLength(JSON.stringify(attempt.transcript)) + 3 * 2;
    expect(await used()).toBe(accepted + 2 * octets);
    await db.write([{ sql: "DELETE FROM messages WHERE id = ?", args: [id] }]);
    await db.write([{ sql: "UPDATE contents SET refs = 0, created_at = 1", args: [] }]);
    await removeUnused(db, Date.now() + UNUSED_KEPT_MS, 100);
    expect(await used()).toBe(before);
  });

  test("the owner's records of a zone, until their domain is deleted", async () => {
    const service = await start();
    const used = async () => (await resources(service)).storedOctets.used;
    const before = await used();
    const { id } = (await service.call("POST", "/v1/domains", { domain: "z.example", delegated: true })).body;
    const held = await used();
    const record = { type: "TXT", name: "a.z.example", value: "v".repeat(1000) };
    const add = (name: string) => service.call("POST", `/v1/domains/${id}/records`, { ...record, name });
    expect((await add(record.name)).status).toBe(201);
    expect(await used()).toBe(held + 512 + record.name.length + 1000);
    await leave(service, 1000);
    expect(await add("b.z.example")).toMatchObject(over("storedOctets"));
    expect((await service.call("DELETE", `/v1/domains/${id}`)).status).toBe(204);
    expect(await used()).toBe(before);
  });
});

test("counters say what the tables say, after all that makes, changes and removes rows", async () => {
  const service = await start({ RETENTION_EVENT_DAYS: "0" }, true);
  const { db } = service.app;
  const project = await senderId(service);
  const sink = await startSink();
  closing.push(() => sink.stop());
  const call = async (method: string, path: string, body?: unknown) =>
    (await service.call(method, path, body)).body;
  const hook = await call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["*"] });
  const template = await call("POST", "/v1/templates", {
    name: "Tëst",
    subject: "é {{ a }}",
    html: "<p>{{ a }}</p>",
  });
  await call("PATCH", `/v1/templates/${template.id}`, { html: null, text: "ü".repeat(100), name: "other" });
  const contact = await call("POST", "/v1/contacts", {
    email: "c@x.test",
    firstName: "Zoë",
    metadata: { a: "ß" },
  });
  await call("PATCH", `/v1/contacts/${contact.id}`, { lastName: "Ω", metadata: { b: 1 } });
  await call("POST", "/v1/suppressions", { email: "s@x.test", note: "ñ" });
  await receivingInboxes(service, "in.test", ["box@in.test", "gone@in.test"]);
  const id = await delivered(service, { to: "box@in.test", body: "Hello" });
  const sent = await call(
    "POST",
    "/v1/emails",
    mail("", { templateId: template.id, text: undefined, data: { a: "ö" } }),
  );
  await service.message(sent.id, "delivered");
  const key = { headers: { "idempotency-key": "kéy".replace("é", "e") } };
  const large = await service.call("POST", "/v1/emails", mail(noise(300_000)), key);
  // Its delivery counts references again.
  await service.message(large.body.id, "delivered");
  const first = await recounted(db, project);
  expect(first.counters).toEqual(first.tables);
  expect(first.tables.storedOctets).toBeGreaterThan(300_000);
  await call("DELETE", `/v1/webhooks/${hook.id}`);
  await call("DELETE", `/v1/templates/${template.id}`);
  await call("DELETE", `/v1/contacts/${contact.id}`);
  await call("DELETE", "/v1/suppressions?email=s@x.test");
  await db.write([{ sql: "DELETE FROM messages WHERE id IN (?, ?)", args: [id, sent.id] }]);
  await db.write([{ sql: "UPDATE contents SET refs = 0, created_at = 1", args: [] }]);
  await removeUnused(db, Date.now() + UNUSED_KEPT_MS, 100);
  await deleteOldAnswers(db, Date.now() + IDEMPOTENCY_WINDOW_MS + 1, 10);
  const last = await recounted(db, project);
  expect(last.counters).toEqual(last.tables);
  expect(last.tables.storedOctets).toBeLessThan(first.tables.storedOctets - 300_000);
});
