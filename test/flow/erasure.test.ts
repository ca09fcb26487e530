import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { HOUR_MS } from "../../src/core/time/units.ts";
import { MOVED_AFTER_MS } from "../../src/flows/sweep/offload.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { deliver, delivered } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { S3_BUCKET, S3_KEYS, type S3Server, startS3 } from "../support/s3-server.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { turnUntil, type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";
import { idIn, submit } from "../support/submit.ts";

setDefaultTimeout(120_000);

const ZOE = "zoe.quill@person.example";
/** Octets by which the person is known. None of them may be left. */
const OCTETS = [ZOE, "Quillfeather", "quill-secret", "QuillBrowser", "10.77.66.55"];

let service: TestService;
let clock: ShiftedClock;
let s3: S3Server;
let sink: HttpsSink;
let settings: Record<string, string>;

beforeAll(async () => {
  clock = shiftedClock();
  [s3, sink] = [await startS3(), startSink()];
  settings = {
    CAPTURE_STRICT: "0",
    SUBMISSION_PORT: "0",
    SUBMISSION_INSECURE_LOOPBACK: "1",
    CONTENT_STORE: `s3://${S3_BUCKET}/post`,
    S3_ENDPOINT: s3.endpoint,
    S3_REGION: S3_KEYS.region,
    S3_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
    S3_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
    HTTP_PROXIES: "127.0.0.1/32",
  };
  service = await startService(settings, clock);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([s3.stop(), sink.stop()]);
});

const get = (path: string) => service.call("GET", path);
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  service.call("POST", path, body, { headers });

/** Returns which of the octets are in the files of the data folder, or in the object store. */
async function found(): Promise<string[]> {
  const files = readdirSync(service.folder, { recursive: true })
    .map((name) => join(service.folder, String(name)))
    .filter((path) => statSync(path).isFile());
  const places = [...files.map((path) => readFileSync(path)), ...s3.objects.values()];
  return OCTETS.filter((octets) => places.some((bytes) => Buffer.from(bytes).includes(octets)));
}

/** Moves all of the WAL into the database file, and empties it. */
async function checkpoint(): Promise<void> {
  const database = new Database(join(service.folder, "postrider.db"));
  await until(async () => {
    const row = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number };
    return row.busy === 0;
  });
  database.close();
}

async function erase(email: string, key = service.projectKey): Promise<string> {
  const answer = await service.call("POST", "/v1/erasures", { email }, { key });
  expect(answer).toMatchObject({ status: 202, body: { status: "running", endedAt: null } });
  return answer.body.id;
}

/** Imports contacts, and waits for the end. */
async function importFile(key: string, file: string): Promise<string> {
  const response = await fetch(`${service.url}/v1/contacts/import`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "text/csv" },
    body: file,
  });
  const { id } = (await response.json()) as { id: string };
  await turnUntil(clock, async () => (await get(`/v1/imports/${id}`)).body.status === "done");
  return id;
}

/** Waits for the end of an erasure, and lets the time pass in which it waits. */
async function done(id: string): Promise<Record<string, number>> {
  await turnUntil(clock, async () => (await get(`/v1/erasures/${id}`)).body.status === "done");
  return (await get(`/v1/erasures/${id}`)).body.counts;
}

/** Returns the number of lines of each kind in the export of an address. */
async function exported(email: string, key = service.projectKey): Promise<Record<string, number>> {
  const path = `/v1/exports?email=${encodeURIComponent(email)}`;
  const answer = await fetch(service.url + path, { headers: { authorization: `Bearer ${key}` } });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
  const lines = (await answer.text())
    .trimEnd()
    .split("\n")
    .filter((line) => line !== "");
  const counts: Record<string, number> = {};
  for (const line of lines) {
    const { kind }: { kind: string } = JSON.parse(line);
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** Writes the person's data through every door. */
async function writeEverywhere(): Promise<void> {
  sink.answer(async (request) => new Response(`saw ${request.body}`, { status: 500 }));
  await post("/v1/webhooks", { url: sink.url, eventTypes: ["*"] });
  const [inboxId = ""] = await receivingInboxes(service, "in.test", ["support@in.test"]);
  const file = Buffer.concat([
    Buffer.from("quill-secret of a file "),
    crypto.getRandomValues(new Uint8Array(60_000)),
  ]).toString("base64");
  const template = await post("/v1/templates", {
    name: "T",
    subject: "For {{ name }}",
    text: "Dear {{ name }}",
  });
  const sent = await post(
    "/v1/emails",
    {
      from: "shop@one.test",
      to: `Zoe Quillfeather <${ZOE}>`,
      subject: "Dear Quillfeather",
      html: '<p>Your quill-secret <a href="https://shop.example/">shop</a></p>',
      attachments: [{ filename: "quill-secret.bin", content: file }],
      headers: { "X-Customer": ZOE },
    },
    { "idempotency-key": "order-1" },
  );
  await post("/v1/emails", {
    from: "shop@one.test",
    to: ["ben@other.example"],
    cc: ZOE.toUpperCase(),
    replyTo: "shop@one.test",
    templateId: template.body.id,
    data: { name: "Quillfeather", email: ZOE },
  });
  await service.message(sent.body.id, "delivered");
  const raw = String((await get(`/v1/emails/${sent.body.id}/raw`)).body).replaceAll("=\r\n", "");
  const [path = ""] = /\/c\/[\w.~-]+/.exec(raw) ?? [];
  clock.shift(HOUR_MS);
  const visitor = { "user-agent": "QuillBrowser/7", "x-forwarded-for": "10.77.66.55" };
  await fetch(`${service.url}${path}`, { redirect: "manual", headers: visitor });
  await post("/v1/contact-properties", { name: "nickname", type: "string" });
  await post(
    "/v1/contacts",
    {
      email: ZOE,
      firstName: "Zoe",
      lastName: "Quillfeather",
      properties: { nickname: "quill-secret" },
      consent: { how: "Quillfeather's form", ip: "10.77.66.55" },
    },
    { "idempotency-key": "c1" },
  );
  await post("/v1/forward-addresses", { email: ZOE }, { "idempotency-key": "f1" });
  await post("/v1/suppressions", { email: ZOE, note: "Quillfeather asked" }, { "idempotency-key": "s1" });
  await post("/v1/inbound/senders", { pattern: ZOE, list: "block" }, { "idempotency-key": "l1" });
  await post(`/v1/inboxes/${inboxId}/senders`, { pattern: ZOE.toUpperCase(), list: "allow" });
  const table = `email,first_name,last_name,address\nkim@other.example,Kim,,\n${ZOE},Zoe,Quillfeather,"quill-secret"\nZoe <${ZOE}>,,,\n`;
  await importFile(service.projectKey, table);
  idIn(
    await submit(service, {
      key: null,
      to: [ZOE],
      header: ["From: app@one.test", `To: ${ZOE}`, "Subject: Submitted to Quillfeather"],
      body: "quill-secret\r\n",
    }),
  );
  await post("/v1/inbound/simulate", {
    inboxId,
    from: { email: ZOE, name: "Zoe Quillfeather" },
    subject: "A question of Quillfeather",
    text: "My quill-secret",
  });
  await deliver(service, {
    mailFrom: ZOE,
    to: "support@in.test",
    headers: [`From: Zoe <${ZOE}>`, "Subject: By SMTP"],
    body: "quill-secret",
  });
  const threads = (await get("/v1/threads")).body.data;
  for (const { id } of threads) await post(`/v1/threads/${id}/reply`, { text: "Dear Quillfeather" });
  const [{ id: threadId }] = threads;
  await post(
    `/v1/threads/${threadId}/notes`,
    { text: "Mrs Quillfeather has called" },
    { "idempotency-key": "n1" },
  );
  await post("/v1/drafts", { threadId, text: "Dear Quillfeather" }, { "idempotency-key": "d1" });
  await post("/v1/drafts", { to: ZOE, text: "quill-secret" }, { "idempotency-key": "d2" });
  await post("/v1/drafts", { to: "ben@other.example", text: `About ${ZOE}.` });
  await turnUntil(clock, async () => (await get(`/v1/emails?q=quillfeather`)).body.data.length > 3);
}

describe("erasing an address", () => {
  test("leaves none of its octets in the database, its WAL, the index and the object store", async () => {
    await writeEverywhere();
    clock.shift(MOVED_AFTER_MS + HOUR_MS);
    await turnUntil(clock, async () => s3.objects.size > 0);
    expect(await found()).toEqual(OCTETS);
    const known = await exported(ZOE.toUpperCase());
    expect(Object.keys(known)).toEqual([
      "contact",
      "suppression",
      "listed_sender",
      "forward_address",
      "import",
      "message",
      "note",
      "draft",
      "audit",
    ]);
    expect([known.note, known.draft, known.listed_sender]).toEqual([1, 3, 2]);
    const counts = await done(await erase(ZOE.toUpperCase()));
    expect(counts).toMatchObject({ contacts: 1, suppressions: 1 });
    expect(counts.messages).toBeGreaterThanOrEqual(5);
    expect(known.message).toBe(counts.messages);
    expect(await exported(ZOE)).toEqual({ suppression: 1 });
    expect((await get("/v1/inbound/senders")).body.data).toEqual([]);
    await checkpoint();
    expect(await found()).toEqual([]);
    expect((await get("/v1/emails?q=quillfeather")).body.data).toEqual([]);
  });

  test("leaves the address suppressed, also after it is added again", async () => {
    const refused = async () => {
      const id = await service.send({ from: "shop@one.test", to: ZOE });
      return (await service.message(id, "rejected")).recipients[0].reason;
    };
    expect(await refused()).toBe("suppressed");
    const listed = (await get(`/v1/suppressions?email=${ZOE}`)).body.data;
    expect(listed).toMatchObject([{ email: expect.stringMatching(/^erased:/), note: null }]);
    await post("/v1/suppressions/batch", { emails: [ZOE] });
    await post("/v1/contacts", { email: ZOE });
    expect(await refused()).toBe("suppressed");
    expect((await get(`/v1/suppressions?email=${ZOE}`)).body.data).toHaveLength(1);
    expect((await service.call("DELETE", `/v1/suppressions?email=${ZOE}`)).status).toBe(204);
    await service.message(await service.send({ from: "shop@one.test", to: ZOE }), "delivered");
  });

  test("takes the person's rows out of an import that is still to be committed, and out of its results", async () => {
    const values = (email: string) => ({ item: { email, firstName: "Wanda" }, since: {} });
    const rows = ["wanda@person.example", "kim@person.example"].map((email, at) => [
      at + 2,
      email,
      values(email),
      null,
    ]);
    const project = "SELECT id FROM senders WHERE external_id = 'default'";
    const projectId = (await service.app.db.first<{ id: string }>(project))?.id ?? "";
    // No chore commits an upload that is not whole.
    await service.app.db.write([
      {
        sql: `INSERT INTO imports (id, sender_id, kind, status, parts, row_count, touched_at, created_at)
          VALUES ('imp_waits', ?, 'contacts', 'uploading', 1, 2, ?, ?)`,
        args: [projectId, clock.now(), clock.now()],
      },
      {
        sql: "INSERT INTO import_parts (import_id, ord, sender_id, content) VALUES ('imp_waits', 0, ?, ?)",
        args: [projectId, JSON.stringify(rows)],
      },
    ]);
    await done(await erase("wanda@person.example"));
    await service.app.db.write([
      { sql: "UPDATE imports SET status = 'running' WHERE id = 'imp_waits'", args: [] },
    ]);
    await turnUntil(clock, async () => (await get("/v1/imports/imp_waits")).body.status === "done");
    const left = (await get("/v1/imports/imp_waits/rows")).body.data;
    expect(left.map(({ email }: { email: string }) => email)).toEqual(["kim@person.example"]);
    expect((await get("/v1/contacts?q=wanda@person.example")).body.data).toEqual([]);
  });

  test("leaves the address unsubscribed, also after it is added again, until a client subscribes it", async () => {
    const email = "una@person.example";
    const refused = async () => {
      const html = '<a href="{{unsubscribe_url}}">No more</a>';
      const id = await service.send({ from: "shop@one.test", to: email, html, unsubscribeLink: true });
      await until(async () => (await get(`/v1/emails/${id}`)).body.status !== "queued");
      return (await get(`/v1/emails/${id}`)).body.recipients[0].reason;
    };
    await post("/v1/contacts", { email, subscribed: false });
    await done(await erase(email));
    expect(await refused()).toBe("unsubscribed");
    expect((await post("/v1/contacts", { email: "Una@Person.example" })).body.subscribed).toBe(false);
    expect(await refused()).toBe("unsubscribed");
    const [{ id }] = (await get(`/v1/contacts?q=${email}`)).body.data;
    await service.call("DELETE", `/v1/contacts/${id}`);
    await post("/v1/contacts/batch", { contacts: [{ email }] });
    expect(await refused()).toBe("unsubscribed");
    await post("/v1/contacts/batch", { contacts: [{ email, subscribed: true }] });
    expect(await refused()).toBeNull();
  });

  test("waits for a message that is still to be sent, and ends once that is final", async () => {
    const scheduledAt = new Date(clock.now() + HOUR_MS).toISOString();
    const waiting = await service.send({ from: "shop@one.test", to: "later@person.example", scheduledAt });
    await service.call("POST", "/v1/suppressions", { email: "later@person.example" });
    const id = await erase("later@person.example", service.accountKey);
    await until(async () => {
      const row = await service.app.db.first<{ at: string }>(
        "SELECT project_at AS at FROM erasures WHERE id = ?",
        [id],
      );
      return row?.at === "";
    });
    expect((await get(`/v1/emails/${waiting}`)).status).toBe(200);
    // The waiting message must find that the person is suppressed.
    const plain = "SELECT count(*) AS entries FROM suppressions WHERE email = 'later@person.example'";
    expect(await service.app.db.first<{ entries: number }>(plain)).toEqual({ entries: 1 });
    await service.call("POST", `/v1/emails/${waiting}/cancel`);
    clock.shift(HOUR_MS);
    const whole = async () =>
      (await service.call("GET", `/v1/erasures/${id}`, undefined, { key: service.accountKey })).body;
    await turnUntil(clock, async () => (await whole()).status === "done");
    expect((await whole()).counts.messages).toBe(1);
    expect(await service.app.db.first<{ entries: number }>(plain)).toEqual({ entries: 0 });
    expect((await get(`/v1/emails/${waiting}`)).status).toBe(404);
    expect((await get(`/v1/erasures/${id}`)).status).toBe(404);
  });

  test("fails alone if its address cannot be opened, and lets later ones end", async () => {
    const broken = await erase("broken@person.example");
    await service.app.db.write([
      { sql: "UPDATE erasures SET sealed_email = 'x', project_at = '' WHERE id = ?", args: [broken] },
    ]);
    await done(await erase("whole@person.example"));
    await service.app.db.write([{ sql: "DELETE FROM erasures WHERE id = ?", args: [broken] }]);
  });

  test("leaves mail of addresses that contain the address", async () => {
    const sendTo = (to: string) => service.send({ from: "shop@one.test", to });
    const ids = [
      await sendTo("ann@b.example"),
      await sendTo("joann@b.example"),
      await sendTo("ann@b.example.org"),
    ];
    for (const id of ids) await service.message(id, "delivered");
    expect((await done(await erase("ann@b.example"))).messages).toBe(1);
    const statuses = await Promise.all(ids.map(async (id) => (await get(`/v1/emails/${id}`)).status));
    expect(statuses).toEqual([404, 200, 200]);
  });

  test("takes the address out of rules that forward to it, and deletes what they have forwarded there", async () => {
    const email = "fay@person.example";
    await post("/v1/forward-addresses", { email });
    await service.app.db.write([{ sql: "UPDATE forward_addresses SET confirmed_at = 1", args: [] }]);
    const rule = (await post("/v1/rules", { name: "On", when: {}, then: { forwardTo: email } })).body;
    const id = await delivered(service, { to: "support@in.test", body: "for fay" });
    const forward = async () => (await get(`/v1/emails/${id}`)).body.forwarded[0];
    await until(async () => (await forward()).status === "delivered");
    const { emailId } = await forward();
    await done(await erase(email));
    expect(await forward()).toMatchObject({ to: null, status: "deleted" });
    expect((await get(`/v1/emails/${emailId}`)).status).toBe(404);
    expect((await get(`/v1/rules/${rule.id}`)).body.then).toEqual({});
    expect((await get("/v1/forward-addresses")).body.data).toEqual([]);
  });

  test("an export has the text of messages and nothing of other addresses", async () => {
    await service.send({ from: "shop@one.test", to: "exa@c.example", text: "for exa alone" });
    await service.send({ from: "shop@one.test", to: "hexa@c.example", text: "for hexa alone" });
    const headers = { authorization: `Bearer ${service.accountKey}` };
    const path = `${service.url}/v1/exports?email=exa@c.example`;
    const text = await (await fetch(path, { headers })).text();
    expect([text.includes("for exa alone"), text.includes("hexa")]).toEqual([true, false]);
    expect((await get("/v1/exports?email=nobody")).body.error.param).toBe("email");
  });

  test("takes an address", async () => {
    const { status, body } = await post("/v1/erasures", { email: "nobody" });
    expect([status, body.error.param]).toEqual([422, "email"]);
  });
});
