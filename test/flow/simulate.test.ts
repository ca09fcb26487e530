import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { reservedBudget } from "../../src/store/contents/memory-budget.ts";
import { systemClock } from "../../src/clock.ts";
import { type Inspect, runReading } from "../../src/flows/mime/reading-tasks.ts";
import { simulateInbound } from "../../src/flows/receive/simulate.ts";
import {
  type ContentRow,
  CONTENT_COLUMNS,
  contentBytes,
  contentIn,
} from "../../src/store/contents/content-read.ts";
import { ConstraintError } from "../../src/store/engine/client.ts";
import { bodyIn, type MessageBody } from "../../src/store/contents/message-body.ts";
import { insertAnswer } from "../../src/store/projects/idempotency.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { reason } from "../support/reason.ts";

const MAX_MESSAGE_BYTES = 1024 * 1024;
let service: TestService;
let inboxId: string;

beforeAll(async () => {
  service = await startService({ MAX_MESSAGE_BYTES: String(MAX_MESSAGE_BYTES) });
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["box@in.test"]);
});
afterAll(() => service.stop());

const inbound = async (): Promise<string[]> =>
  (await service.call("GET", "/v1/emails?direction=inbound&limit=100")).body.data.map(
    ({ id }: { id: string }) => id,
  );

/** The stored body of a message. */
async function bodyOf(messageId: string): Promise<MessageBody> {
  const { db } = service.app;
  const sql = `SELECT ${CONTENT_COLUMNS} FROM message_content c JOIN contents b ON b.key = c.body WHERE c.message_id = ?`;
  const row = await db.first<ContentRow>(sql, [messageId]);
  const content = row === null ? null : contentIn(row);
  if (content === null) throw new Error("no body is kept");
  return bodyIn(await contentBytes({ db }, content, reservedBudget()));
}

describe("a simulated message", () => {
  test("a simulated message without a sender is from a simulated recipient, so that a reply to it is delivered there", async () => {
    const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x" });
    const from = `delivered@simulator.${SERVICE_DOMAIN}`;
    expect((await service.call("GET", `/v1/emails/${body.messageId}`)).body.from).toBe(from);
    const reply = await service.call("POST", `/v1/threads/${body.threadId}/reply`, { text: "Hello" });
    expect((await service.message(reply.body.id, "delivered")).to).toEqual([from]);
  });

  test.each([
    ["Yes.", "Yes.", null],
    ["Yes.\n\nOn 1 May, Bob wrote:\n> Well?", "Yes.", "Yes."],
  ])(
    "a simulated message has its reply text, which is stored if it is not all of its text: %p",
    async (text, shown, kept) => {
      const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, text });
      const { replyText } = (await service.call("GET", `/v1/emails/${body.messageId}`)).body;
      expect(replyText.trim()).toBe(shown);
      expect((await bodyOf(body.messageId)).replyText).toBe(kept);
      expect((await service.call("GET", `/v1/threads/${body.threadId}`)).body.preview).toBe(shown);
    },
  );

  test("a simulated message in html only has its reply text, too", async () => {
    const html =
      "<p>Yes.</p><p>On 14 Nov 2023, Bob &lt;bob@x.test&gt; wrote:</p><blockquote>Well?</blockquote>";
    const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, html });
    const { text, replyText } = (await service.call("GET", `/v1/emails/${body.messageId}`)).body;
    expect({ text, replyText }).toEqual({ text: null, replyText: "Yes." });
  });

  test("a simulated message is to the address that it names, with its label", async () => {
    const { body } = await service.call("POST", "/v1/inbound/simulate", { to: "Box+Tag@in.test", text: "x" });
    const { to, envelope } = (await service.call("GET", `/v1/emails/${body.messageId}`)).body;
    expect({ to, rcptTo: envelope.rcptTo }).toEqual({ to: ["Box+Tag@in.test"], rcptTo: ["Box+Tag@in.test"] });
  });

  test("answers a message by its Message-ID with and without brackets, its id, or its thread's id", async () => {
    const first = (await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x" })).body;
    const { messageId } = (await service.call("GET", `/v1/emails/${first.messageId}`)).body;
    for (const inReplyTo of [messageId, messageId.slice(1, -1), first.messageId, first.threadId]) {
      const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, inReplyTo });
      expect(body.threadId).toBe(first.threadId);
    }
    const nobody = await service.call("POST", "/v1/inbound/simulate", { inboxId, inReplyTo: "thr_nope" });
    expect(nobody).toMatchObject({ status: 422, body: { error: { param: "inReplyTo" } } });
  });

  test("a simulated message that names no inbox is refused, with the names of the fields that would", async () => {
    const nowhere = await service.call("POST", "/v1/inbound/simulate", { text: "x" });
    expect(nowhere.status).toBe(422);
    expect(nowhere.body.error).toMatchObject({
      message: "inboxId: Required, unless to names the inbox.",
      param: "inboxId",
      code: "missing_field",
      issues: [{ param: "inboxId", code: "missing_field" }],
    });
  });

  test("a simulated message is no larger than the listener accepts", async () => {
    const content = Buffer.alloc(MAX_MESSAGE_BYTES).toString("base64");
    const answer = await service.call("POST", "/v1/inbound/simulate", {
      inboxId,
      attachments: [{ filename: "a", content }],
    });
    expect(answer).toMatchObject({ status: 422, body: { error: { code: "message_too_large" } } });
  });

  test("a simulated message returns its attachments' bytes as they came", async () => {
    const attachments = [
      { filename: "a.txt", content: Buffer.from("first").toString("base64"), contentType: "text/plain" },
      { filename: "b.bin", content: Buffer.alloc(300_000, 7).toString("base64") },
    ];
    const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x", attachments });
    const record = (await service.call("GET", `/v1/emails/${body.messageId}`)).body;
    const bytes = async (at: number) => {
      const path = `/v1/emails/${body.messageId}/attachments/${record.attachments[at].id}`;
      const headers = { authorization: `Bearer ${service.projectKey}` };
      return Buffer.from(await (await fetch(`${service.url}${path}`, { headers })).arrayBuffer());
    };
    expect((await bytes(0)).toString()).toBe("first");
    expect((await bytes(1)).equals(Buffer.alloc(300_000, 7))).toBe(true);
  });

  test("a simulated message with an Idempotency-Key arrives once", async () => {
    const before = (await inbound()).length;
    const headers = { "Idempotency-Key": "once" };
    const simulate = () => service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x" }, { headers });
    const [first, again] = [await simulate(), await simulate()];
    expect(first).toMatchObject({ status: 202, body: { testMode: true } });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    expect((await inbound()).length).toBe(before + 1);
  });

  test("a simulated message is rolled back if its answer could not be stored because another process was first", async () => {
    const before = await inbound();
    const { db, queue } = service.app;
    const senderId =
      (await db.first<{ sender_id: string }>("SELECT sender_id FROM inboxes"))?.sender_id ?? "";
    const asking = { clock: systemClock, host: "mx.test", resolve: () => Promise.reject(new Error("no")) };
    const inspect: Inspect = (asked) => runReading(asking, asked);
    const deps = {
      db,
      queue,
      clock: systemClock,
      hostname: "mx.test",
      serviceDomain: SERVICE_DOMAIN,
      inspect,
    };
    const at = { scope: senderId, endpoint: "POST /v1/inbound/simulate", key: "both" };
    const answer = { bodyHash: "x", status: 202, body: "{}", createdAt: systemClock.now() };
    const simulate = () =>
      simulateInbound(deps, senderId, { inboxId, attachments: [] }, () => [insertAnswer(at, answer)]);
    const first = await simulate();
    expect(await reason(simulate())).toBeInstanceOf(ConstraintError);
    expect(await inbound()).toEqual([first.messageId, ...before]);
  });
});
