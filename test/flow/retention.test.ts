import { DAY_MS } from "../../src/core/time/units.ts";
import { idFloor } from "../../src/core/ids.ts";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { removeUnusedContents } from "../../src/flows/sweep/removals.ts";
import { forgetContents, forgetMessages } from "../../src/flows/sweep/retention.ts";
import type { Statement } from "../../src/store/engine/client.ts";
import { oldMessages } from "../../src/store/messages/retention.ts";
import { UNUSED_KEPT_MS } from "../../src/store/contents/contents.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { deliver } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

const HOUR_MS = 3_600_000;
const GONE = "The content of this message has passed its retention time and is gone.";
const ATTACHED = Buffer.from("the bytes of the attachment").toString("base64");
const MAIL = [
  "Subject: Question",
  "Message-Id: <question@client.test>",
  "MIME-Version: 1.0",
  'Content-Type: multipart/mixed; boundary="b"',
];
const BODY = [
  "--b",
  "Content-Type: text/plain",
  "",
  "What does it cost?",
  "--b",
  'Content-Type: text/x-notes; name="notes.txt"',
  "Content-Disposition: attachment",
  "",
  "note",
  "--b--",
].join("\r\n");

// Megabytes pass through each test, on a machine that may be busy.
setDefaultTimeout(90_000);

let service: TestService;
let sink: HttpsSink;
let clock: ShiftedClock;
let inboxId: string;

beforeEach(async () => {
  clock = shiftedClock();
  sink = startSink();
  service = await startService({}, clock);
  [inboxId = ""] = await receivingInboxes(service, "shop.test", ["help@shop.test"]);
});
afterEach(async () => {
  await service.stop();
  await sink.stop();
});

const get = (path: string) => service.call("GET", path);
const contents = () => forgetContents({ db: service.app.db, clock }, 1)();
/**
 * Walks until everything that may go has gone. A message that changes at the same time, as when it is indexed, is
 * left once.
 */
async function messages(): Promise<void> {
  const { db } = service.app;
  const forget = forgetMessages({ db, clock }, 2);
  await until(async () => {
    await forget();
    const before = clock.now() - 2 * DAY_MS;
    const left = await oldMessages(
      db,
      { after: "", below: idFloor("msg", before), limit: 100 },
      { now: clock.now(), days: 2 },
    );
    return left.every(({ mayGo }) => !mayGo);
  });
}

async function sent(more: Record<string, unknown> = {}): Promise<string> {
  const { body } = await service.call("POST", "/v1/emails", {
    from: { email: "news@shop.test" },
    to: [{ email: "ann@home.test" }],
    subject: "Offer",
    html: "<p>Cheap</p>",
    text: "Cheap",
    attachments: [{ filename: "offer.txt", content: ATTACHED, contentType: "text/plain" }],
    ...more,
  });
  await service.message(body.id, more.scheduledAt === undefined ? "delivered" : "accepted");
  return body.id;
}

async function received(headers = MAIL, body = BODY): Promise<string> {
  expect(await deliver(service, { to: "help@shop.test", headers, body })).toStartWith("250");
  return (await get("/v1/emails?direction=inbound")).body.data[0].id;
}

/** Makes an endpoint that has a pending delivery of the message. */
function stillToBeToldOf(messageId: string): Statement[] {
  return [
    {
      sql: `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        SELECT 'whk_1', sender_id, 'https://x.test/', '[]', '', 0, 0 FROM messages WHERE id = ?`,
      args: [messageId],
    },
    {
      sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, message_id, type, status, created_at)
        SELECT 'dlv_1', 'whk_1', sender_id, id, 'open', 'pending', 0 FROM messages WHERE id = ?`,
      args: [messageId],
    },
  ];
}

describe("content past its retention", () => {
  const KINDS = [
    ["a sent message", () => sent()],
    ["a received one", () => received()],
  ] as const;
  for (const [name, make] of KINDS)
    test(`content of ${name} is removed after its retention, and its record stays and says so`, async () => {
      const id = await make();
      const before = (await get(`/v1/emails/${id}`)).body;
      const [attachment] = before.attachments;
      await contents();
      expect((await get(`/v1/emails/${id}/raw`)).status).toBe(200);
      expect((await get(`/v1/emails/${id}/attachments/${attachment.id}`)).status).toBe(200);
      clock.shift(DAY_MS + HOUR_MS);
      await contents();
      const after = await get(`/v1/emails/${id}`);
      // The header fields of a received message are stored with its body, and removed with it.
      const { headers, replyText, ...rest } = before;
      expect([after.status, after.body]).toMatchObject([200, { ...rest, html: null, text: null }]);
      for (const path of ["raw", `attachments/${attachment.id}`]) {
        const answer = await get(`/v1/emails/${id}/${path}`);
        expect([answer.status, answer.body.error.type, answer.body.error.message]).toEqual([
          404,
          "not_found",
          GONE,
        ]);
      }
      expect((await get("/v1/emails")).body.data.map((row: { id: string }) => row.id)).toContain(id);
      clock.shift(UNUSED_KEPT_MS + 1000);
      await removeUnusedContents({ db: service.app.db, clock });
      expect(await service.app.db.all("SELECT id FROM contents")).toEqual([]);
    });

  test("content past its retention takes the invitation out of a record, which can still be read", async () => {
    const event = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nEND:VEVENT\r\nEND:VCALENDAR";
    const id = await received(["Subject: Lunch", "MIME-Version: 1.0", "Content-Type: text/calendar"], event);
    expect((await get(`/v1/emails/${id}`)).body.invitation.uid).toBe("1");
    clock.shift(DAY_MS + HOUR_MS);
    await contents();
    const { status, body } = await get(`/v1/emails/${id}`);
    expect([status, body.invitation]).toEqual([200, null]);
  });

  test("content past its retention stays for a younger message that shares it", async () => {
    const old = await sent();
    clock.shift(DAY_MS - HOUR_MS);
    const young = await sent();
    clock.shift(2 * HOUR_MS);
    await contents();
    clock.shift(2 * UNUSED_KEPT_MS);
    await removeUnusedContents({ db: service.app.db, clock });
    expect((await get(`/v1/emails/${old}`)).body.text).toBeNull();
    const { text, attachments } = (await get(`/v1/emails/${young}`)).body;
    expect([text, (await get(`/v1/emails/${young}/attachments/${attachments[0].id}`)).body]).toEqual([
      "Cheap",
      "the bytes of the attachment",
    ]);
  });

  test("content of a scheduled message stays past its retention, and the message is sent complete", async () => {
    const scheduledAt = new Date(clock.now() + 3 * DAY_MS).toISOString();
    const id = await sent({ scheduledAt });
    clock.shift(2 * DAY_MS);
    await contents();
    await messages();
    expect((await get(`/v1/emails/${id}`)).body.text).toBe("Cheap");
    clock.shift(2 * DAY_MS);
    const gone = await service.message(id, "delivered");
    expect(gone.text).toBe("Cheap");
    await contents();
    await messages();
    // Its retention begins when it is sent.
    expect((await get(`/v1/emails/${id}`)).body.text).toBe("Cheap");
  });

  test("content past its retention is null in a webhook that is delivered later", async () => {
    const url = sink.url;
    const hook = (await service.call("POST", "/v1/webhooks", { url, eventTypes: ["inbound_received"] })).body;
    const id = await received();
    expect(JSON.parse((await sink.requests.reached(1)).body).data.inbound_received.text).toContain("cost");
    const log = `/v1/webhooks/${hook.id}/deliveries`;
    await until(async () => (await get(log)).body.data[0].status === "succeeded");
    clock.shift(DAY_MS + HOUR_MS);
    await contents();
    const [line] = (await get(log)).body.data;
    await service.call("POST", `${log}/${line.id}/replay`);
    const { data } = JSON.parse((await sink.requests.reached(2)).body);
    expect(data).toMatchObject({
      messageId: id,
      inbound_received: { text: null, html: null, truncated: true, subject: "Question" },
    });
  });

  test("content past its retention stays until every webhook delivery of the message is made", async () => {
    await service.restart({ WEBHOOK_RETRY_SECONDS: "0,93600" });
    sink.answer(500, 200);
    const url = sink.url;
    const hook = (await service.call("POST", "/v1/webhooks", { url, eventTypes: ["inbound_received"] })).body;
    const id = await received();
    const log = `/v1/webhooks/${hook.id}/deliveries`;
    await until(async () => (await get(log)).body.data[0].httpStatus === 500);
    clock.shift(DAY_MS + HOUR_MS);
    await contents();
    clock.shift(DAY_MS);
    const { data } = JSON.parse((await sink.requests.reached(2)).body);
    expect(data.inbound_received.text).toContain("cost");
    await until(async () => {
      await contents();
      return (await get(`/v1/emails/${id}`)).body.text === null;
    });
  });

  test("content past its retention is not in its thread's preview either, and the thread can still be answered", async () => {
    const id = await received();
    const { threadId } = (await get(`/v1/emails/${id}`)).body;
    expect((await get(`/v1/threads/${threadId}`)).body.preview).toContain("cost");
    clock.shift(DAY_MS + HOUR_MS);
    await contents();
    expect((await get(`/v1/threads/${threadId}`)).body).toMatchObject({ preview: "", messageCount: 1 });
    const reply = await service.call("POST", `/v1/threads/${threadId}/reply`, { text: "Ten" });
    expect(reply.status).toBe(202);
    expect((await get(`/v1/emails/${reply.body.id}`)).body.headers["In-Reply-To"]).toBe(
      "<question@client.test>",
    );
  });
});

describe("messages past their retention", () => {
  test("messages past their retention are removed from the record, the lists, the search and their thread", async () => {
    const [out, into] = [await sent(), await received()];
    const { threadId } = (await get(`/v1/emails/${into}`)).body;
    clock.shift(2 * DAY_MS + HOUR_MS);
    const young = await sent({ subject: "Offer again" });
    await messages();
    for (const path of [
      `/v1/emails/${out}`,
      `/v1/emails/${into}`,
      `/v1/emails/${into}/raw`,
      `/v1/threads/${threadId}`,
    ])
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    for (const query of ["", "?q=offer", "?to=ann@home.test", "?status=delivered"])
      expect([
        query,
        (await get(`/v1/emails${query}`)).body.data.map((row: { id: string }) => row.id),
      ]).toEqual([query, [young]]);
    expect((await get(`/v1/inboxes/${inboxId}/threads`)).body.data).toEqual([]);
  });

  test("messages past their retention are removed even if the content of the message that their thread keeps cannot be read", async () => {
    const first = await received();
    const { threadId } = (await get(`/v1/emails/${first}`)).body;
    const { db } = service.app;
    const reply = await service.call("POST", `/v1/threads/${threadId}/reply`, { text: "Ten" });
    await service.message(reply.body.id, "delivered");
    // It has a pending delivery, so it stays. Its body is in an object store that does not exist.
    await db.write([
      ...stillToBeToldOf(first),
      {
        sql: `INSERT INTO contents (key, sender_id, refs, size, encoding, stored_in, object, created_at)
          VALUES (CAST('lost' AS BLOB), '', 1, 9, 'plain', 'object', 'lost', 0)`,
        args: [],
      },
      {
        sql: "UPDATE message_content SET body = CAST('lost' AS BLOB) WHERE message_id = ?",
        args: [first],
      },
    ]);
    clock.shift(2 * DAY_MS + HOUR_MS);
    await messages();
    expect((await get(`/v1/emails/${reply.body.id}`)).status).toBe(404);
    const row = "SELECT last_message_id AS last, preview FROM threads WHERE id = ?";
    expect(await db.first<unknown>(row, [threadId])).toEqual({ last: first, preview: "" });
  });

  test("messages past their retention leave a thread the preview of its remaining last message", async () => {
    const headers = ["From: ann@client.test", "Subject: Question", "Message-ID: <quoting@client.test>"];
    const first = await received(
      headers,
      "Yes.\r\n\r\nOn Tue, 14 Nov 2023, Bob <b@c.test> wrote:\r\n> Really?",
    );
    const { threadId } = (await get(`/v1/emails/${first}`)).body;
    const reply = await service.call("POST", `/v1/threads/${threadId}/reply`, { text: "Ten" });
    await service.message(reply.body.id, "delivered");
    // The first has a pending delivery, and so it stays.
    await service.app.db.write(stillToBeToldOf(first));
    clock.shift(2 * DAY_MS + HOUR_MS);
    await messages();
    expect((await get(`/v1/threads/${threadId}`)).body).toMatchObject({
      lastMessageId: first,
      preview: "Yes.",
    });
  });

  test("messages past their retention leave the inbox marked as having received mail", async () => {
    await received();
    clock.shift(2 * DAY_MS + HOUR_MS);
    await messages();
    expect((await service.call("DELETE", `/v1/inboxes/${inboxId}`)).status).toBe(409);
  });

  test("messages past their retention leave suppressions, contacts and statistics as they are", async () => {
    const bounced = await service.call("POST", "/v1/suppressions", { email: "gone@home.test" });
    await service.call("POST", "/v1/contacts", { email: "ann@home.test" });
    await sent();
    const { totals } = (await get("/v1/stats")).body;
    clock.shift(2 * DAY_MS + HOUR_MS);
    await messages();
    expect((await get("/v1/suppressions")).body.data[0].id).toBe(bounced.body.id);
    expect((await get("/v1/contacts")).body.data).toHaveLength(1);
    expect((await get("/v1/stats")).body.totals).toEqual(totals);
  });

  test("messages past their retention may be removed while a client reads the list: the next page continues after the last one", async () => {
    const ids: string[] = [];
    for (let at = 0; at < 4; at++) ids.unshift(await sent({ attachments: [] }));
    const first = (await get("/v1/emails?limit=2")).body;
    expect(first.data.map((row: { id: string }) => row.id)).toEqual(ids.slice(0, 2));
    await service.app.db.write([{ sql: "DELETE FROM messages WHERE id = ?", args: [ids[1] ?? ""] }]);
    const next = await get(`/v1/emails?limit=2&cursor=${encodeURIComponent(first.nextCursor)}`);
    expect([next.status, next.body.data.map((row: { id: string }) => row.id)]).toEqual([200, ids.slice(2)]);
  });
});

test("the worker removes them by itself, after the days in the settings", async () => {
  const id = await sent();
  const late = await sent();
  await service.restart({ RETENTION_CONTENT_DAYS: "1", RETENTION_EVENT_DAYS: "2" });
  clock.shift(DAY_MS + HOUR_MS);
  await until(async () => (await get(`/v1/emails/${id}`)).body.text === null);
  expect((await get(`/v1/emails/${late}`)).status).toBe(200);
  clock.shift(DAY_MS);
  await until(async () => (await get(`/v1/emails/${late}`)).status === 404);
});

test("the worker deletes expired suppressions, whatever the settings say", async () => {
  const left = () => service.app.db.all("SELECT email FROM suppressions");
  const expiresAt = new Date(clock.now() + HOUR_MS).toISOString();
  await service.call("POST", "/v1/suppressions", { email: "full@home.test", expiresAt });
  await service.call("POST", "/v1/suppressions", { email: "gone@home.test" });
  clock.shift(2 * DAY_MS);
  await until(async () => (await left()).length === 1);
  expect(await left()).toEqual([{ email: "gone@home.test" }]);
});
