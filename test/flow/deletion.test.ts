import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/core/time/units.ts";
import { MESSAGES_PER_WRITE } from "../../src/flows/sweep/delete-now.ts";
import { noteJoinLink } from "../../src/store/audience/join-links.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { turnUntil, type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(60_000);

let service: TestService;
let clock: ShiftedClock;
let inboxId: string;
const HOOK = "http://127.0.0.1:9/hook";

beforeAll(async () => {
  clock = shiftedClock();
  service = await startService(
    { CAPTURE_STRICT: "0", RETENTION_EVENT_DAYS: "0", RETENTION_CONTENT_DAYS: "0" },
    clock,
  );
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["support@in.test"]);
});
afterAll(() => service.stop());

const get = (path: string) => service.call("GET", path);
const remove = (path: string) => service.call("DELETE", path);

async function delivered(item: Record<string, unknown> = {}): Promise<string> {
  const id = await service.send({ from: "shop@one.test", ...item });
  await service.message(id, "delivered");
  return id;
}

async function received(subject: string): Promise<{ messageId: string; threadId: string }> {
  const body = { inboxId, subject, from: "ada@client.test", text: "A question" };
  return (await service.call("POST", "/v1/inbound/simulate", body)).body;
}

/** Counts the rows that name a message. */
async function rowsOf(id: string): Promise<number> {
  const tables = ["message_content", "attachments", "recipients", "attempts", "events", "webhook_deliveries"];
  const counts = tables.map((table) => `(SELECT count(*) FROM ${table} WHERE message_id = ?1)`).join(" + ");
  const row = await service.app.db.first<{ rows: number }>(`SELECT ${counts} AS rows`, [id]);
  return row?.rows ?? -1;
}

describe("deleting a message", () => {
  test("removes it with its events, attempts, files and webhook log, even while a push waits", async () => {
    const hook = await service.call("POST", "/v1/webhooks", { url: HOOK, eventTypes: ["*"] });
    const file = { filename: "a.txt", content: "YQ==" };
    const id = await delivered({ subject: "Needle in hay", attachments: [file] });
    expect(await rowsOf(id)).toBeGreaterThan(5);
    expect((await remove(`/v1/emails/${id}`)).status).toBe(204);
    expect(await rowsOf(id)).toBe(0);
    expect((await get(`/v1/emails/${id}`)).status).toBe(404);
    expect((await get("/v1/emails?q=needle")).body.data).toEqual([]);
    expect((await remove(`/v1/emails/${id}`)).status).toBe(404);
    await service.call("DELETE", `/v1/webhooks/${hook.body.id}`);
  });

  test("is refused with 409 until every recipient is final", async () => {
    const scheduledAt = new Date(clock.now() + HOUR_MS).toISOString();
    const id = await service.send({ from: "shop@one.test", scheduledAt });
    const { status, body } = await remove(`/v1/emails/${id}`);
    expect([status, body.error.code]).toEqual([409, "invalid_state"]);
    await service.call("POST", `/v1/emails/${id}/cancel`);
    expect((await remove(`/v1/emails/${id}`)).status).toBe(204);
  });

  test("keeps its thread, which shows the message before it", async () => {
    const { threadId } = await received("Two");
    const answer = await service.call("POST", `/v1/threads/${threadId}/reply`, { text: "An answer" });
    await service.message(answer.body.id, "delivered");
    expect((await remove(`/v1/emails/${answer.body.id}`)).status).toBe(204);
    const thread = (await get(`/v1/threads/${threadId}`)).body;
    expect(thread).toMatchObject({ messageCount: 1, preview: "A question" });
  });

  test("needs the scope data:delete", async () => {
    const key = await service.call("POST", "/v1/api-keys", {
      name: "sends",
      senderId: (await get("/v1/api-keys")).body.data[0].senderId,
      scopes: ["emails:send", "emails:read"],
    });
    const answer = await service.call("DELETE", `/v1/emails/${await delivered()}`, undefined, {
      key: key.body.secret,
    });
    expect([answer.status, answer.body.error.param]).toEqual([403, "data:delete"]);
  });
});

describe("deleting a thread", () => {
  test("removes all of its messages, more than one write takes", async () => {
    const { threadId } = await received("Long");
    for (let count = 0; count < MESSAGES_PER_WRITE; count++) {
      const { body } = await service.call("POST", `/v1/threads/${threadId}/reply`, {
        text: `Answer ${count}`,
      });
      await service.message(body.id, "delivered");
    }
    const ids = (await get(`/v1/threads/${threadId}/messages?limit=100`)).body.data.map(
      ({ id }: { id: string }) => id,
    );
    expect(ids).toHaveLength(MESSAGES_PER_WRITE + 1);
    expect((await remove(`/v1/threads/${threadId}`)).status).toBe(204);
    expect((await get(`/v1/threads/${threadId}`)).status).toBe(404);
    for (const id of ids) expect(await rowsOf(id)).toBe(0);
  });

  test("is refused with 409 while an answer waits for its time", async () => {
    const { threadId, messageId } = await received("Waiting");
    const parent = (await get(`/v1/emails/${messageId}`)).body.messageId;
    const scheduledAt = new Date(clock.now() + HOUR_MS).toISOString();
    const headers = { "In-Reply-To": parent };
    await service.send({ from: "support@in.test", to: "ada@client.test", scheduledAt, headers });
    expect((await remove(`/v1/threads/${threadId}`)).status).toBe(409);
    expect((await get(`/v1/threads/${threadId}`)).body.messageCount).toBe(2);
  });
});

describe("content that a send does not keep", () => {
  test("goes once every recipient is final, and the record stays", async () => {
    const file = { filename: "a.txt", content: "YQ==" };
    const id = await delivered({ keepContent: false, text: "A secret code", attachments: [file] });
    await turnUntil(clock, async () => (await get(`/v1/emails/${id}`)).body.text === null);
    const record = (await get(`/v1/emails/${id}`)).body;
    expect(record).toMatchObject({ status: "delivered", subject: "Hi" });
    expect((await get(`/v1/emails/${id}/raw`)).status).toBe(404);
    expect((await get(`/v1/emails/${id}/attachments/${record.attachments[0].id}`)).status).toBe(404);
  });

  test("stays while the message waits, because it is still needed", async () => {
    const scheduledAt = new Date(clock.now() + HOUR_MS).toISOString();
    const id = await service.send({ from: "shop@one.test", scheduledAt, keepContent: false });
    await delivered({ keepContent: false });
    expect((await get(`/v1/emails/${id}`)).body.text).toBe("x");
    await service.call("POST", `/v1/emails/${id}/cancel`);
    await turnUntil(clock, async () => (await get(`/v1/emails/${id}`)).body.text === null);
  });
});

describe("the retention of a project", () => {
  const sender = (method: string, body?: unknown) =>
    service
      .call("GET", "/v1/senders", undefined, { key: service.accountKey })
      .then((list) =>
        service.call(method, `/v1/senders/${list.body.data[0].id}`, body, { key: service.accountKey }),
      );

  test("replaces that of the installation, for contents and for whole messages", async () => {
    expect((await sender("GET")).body.retention).toEqual({ contentDays: null, eventDays: null });
    const id = await delivered({ text: "kept for two days" });
    const changed = await sender("PATCH", { retention: { contentDays: 2 } });
    expect(changed.body.retention).toEqual({ contentDays: 2, eventDays: null });
    clock.shift(3 * DAY_MS);
    await turnUntil(clock, async () => (await get(`/v1/emails/${id}`)).body.text === null);
    await sender("PATCH", { retention: { contentDays: null, eventDays: 2 } });
    await turnUntil(clock, async () => (await get(`/v1/emails/${id}`)).status === 404);
    await sender("PATCH", { retention: { eventDays: null } });
  });

  test("has at least one day", async () => {
    const { status, body } = await sender("PATCH", { retention: { contentDays: 0 } });
    expect([status, body.error.param]).toEqual([422, "retention.contentDays"]);
  });
});

describe("deleting a project", () => {
  const wide = (method: string, path: string, body?: unknown) =>
    service.call(method, path, body, { key: service.accountKey });

  /** Makes a project with a row in each table that it can fill here. */
  async function filled(externalId: string): Promise<{ id: string; key: string }> {
    const { id } = (await wide("POST", "/v1/senders", { name: externalId, externalId })).body;
    const key = (await wide("POST", "/v1/api-keys", { name: "own", senderId: id })).body.secret;
    const own = (method: string, path: string, body?: unknown) => service.call(method, path, body, { key });
    await own("POST", "/v1/domains", { domain: `${externalId}.test` });
    const inbox = await own("POST", "/v1/inboxes", { address: `desk@${externalId}.test` });
    await own("POST", "/v1/inbound/simulate", {
      inboxId: inbox.body.id,
      from: "ada@client.test",
      text: "Hi",
    });
    await own("POST", "/v1/webhooks", { url: HOOK, eventTypes: ["*"] });
    await own("POST", "/v1/templates", { name: "T", subject: "S", text: "t" });
    await own("POST", "/v1/contacts", { email: "ada@client.test" });
    await own("POST", "/v1/suppressions", { email: "ben@client.test" });
    for (const list of ["contacts", "suppressions"]) {
      const headers = { "content-type": "text/csv" };
      const file = "email\ncarol@client.test\nnobody\n";
      const { body } = await service.call("POST", `/v1/${list}/import`, file, { key, headers });
      await until(async () => (await own("GET", `/v1/imports/${body.id}`)).body.status === "done");
    }
    const scheduledAt = new Date(clock.now() + HOUR_MS).toISOString();
    const later = { from: "a@x.test", to: "b@x.test", subject: "s", text: "t", scheduledAt };
    expect((await own("POST", "/v1/emails", later)).status).toBe(202);
    return { id, key };
  }

  /** Returns the tables that still name a project. The audit trail keeps what was done. */
  async function tablesNaming(id: string): Promise<string[]> {
    const { db } = service.app;
    const columns = await db.all<{ name: string; column: string }>(
      `SELECT m.name, c.name AS "column" FROM sqlite_schema m, pragma_table_info(m.name) c
        WHERE m.type = 'table' AND c.name IN ('sender_id', 'owner_id', 'scope') AND m.name <> 'audit_log'`,
    );
    const named: string[] = (await db.all("SELECT 1 FROM senders WHERE id = ?", [id])).map(() => "senders");
    for (const { name, column } of columns) {
      const row = await db.first(
        `SELECT 1 FROM "${name}" WHERE ${column} IN (?1, 'captured ' || ?1) LIMIT 1`,
        [id],
      );
      if (row !== null) named.push(name);
    }
    return named;
  }

  test("hides it at once and leaves no row of it, scheduled mail included", async () => {
    const { id, key } = await filled("going");
    const other = await filled("staying");
    for (const table of ["messages", "imports", "import_parts"])
      expect(await tablesNaming(id)).toContain(table);
    await service.app.db.write(noteJoinLink(id, "going", clock.now()));
    const { status, body } = await wide("DELETE", `/v1/senders/${id}?confirm=going`);
    expect([status, body]).toEqual([202, { id, status: "deleting" }]);
    expect((await wide("GET", `/v1/senders/${id}`)).status).toBe(404);
    expect((await service.call("GET", "/v1/me", undefined, { key })).status).toBe(401);
    await until(async () => {
      const left = await tablesNaming(id);
      return left.length === 0 || (left.length === 1 && left[0] === "contents");
    });
    expect((await service.call("GET", "/v1/emails", undefined, { key: other.key })).body.data).toHaveLength(
      2,
    );
    expect((await wide("POST", "/v1/senders", { name: "going", externalId: "going" })).status).toBe(201);
    // An address gets no more links to join topics because a project is gone.
    const mailed = "SELECT COUNT(*) AS count FROM join_links WHERE address = 'going'";
    expect(await service.app.db.first(mailed)).toEqual({ count: 1 });
  });

  test("asks for its externalId, and keeps the project of the first start", async () => {
    const { data } = (await wide("GET", "/v1/senders")).body;
    const [first] = data.slice(-1);
    expect((await wide("DELETE", `/v1/senders/${first.id}?confirm=other`)).body.error.param).toBe("confirm");
    expect((await wide("DELETE", `/v1/senders/${first.id}`)).status).toBe(422);
    const refused = await wide("DELETE", `/v1/senders/${first.id}?confirm=${first.externalId}`);
    expect([refused.status, refused.body.error.code]).toEqual([409, "invalid_state"]);
  });
});
