import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { type Inspect, read } from "../../src/flows/readings.ts";
import { simulateInbound } from "../../src/flows/receive/simulate.ts";
import { ConstraintError } from "../../src/store/client.ts";
import { bodyInline, type MessageBody } from "../../src/store/message-body.ts";
import { insertAnswer } from "../../src/store/idempotency.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

let service: TestService;
let inboxId: string;

beforeAll(async () => {
  service = await startService();
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["box@in.test"]);
});
afterAll(() => service.stop());

const inbound = async (): Promise<string[]> =>
  (await service.call("GET", "/v1/emails?direction=inbound&limit=100")).body.data.map(
    ({ id }: { id: string }) => id,
  );

/** The body of a message as it is kept. */
async function bodyOf(messageId: string): Promise<MessageBody> {
  const sql = "SELECT inline_body FROM message_content WHERE message_id = ?";
  const row = await service.app.db.first<{ inline_body: ArrayBuffer }>(sql, [messageId]);
  if (row === null) throw new Error("no body is kept");
  return bodyInline(new Uint8Array(row.inline_body));
}

describe("a simulated mail", () => {
  test("from nobody is from a simulated recipient, so that an answer to it is delivered there", async () => {
    const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x" });
    const from = `delivered@simulator.${SERVICE_DOMAIN}`;
    expect((await service.call("GET", `/v1/emails/${body.messageId}`)).body.from).toBe(from);
    const reply = await service.call("POST", `/v1/threads/${body.threadId}/reply`, { text: "Hello" });
    expect((await service.message(reply.body.id, "delivered")).to).toEqual([from]);
  });

  test.each([
    ["Yes.", "Yes.", null],
    ["Yes.\n\nOn 1 May, Bob wrote:\n> Well?", "Yes.", "Yes."],
  ])("has its reply text, which is kept where it is not all of its text: %p", async (text, shown, kept) => {
    const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, text });
    const { replyText } = (await service.call("GET", `/v1/emails/${body.messageId}`)).body;
    expect(replyText.trim()).toBe(shown);
    expect((await bodyOf(body.messageId)).replyText).toBe(kept);
  });

  test("gives its attachments' bytes as they came", async () => {
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

  test("with an Idempotency-Key arrives once", async () => {
    const before = (await inbound()).length;
    const headers = { "Idempotency-Key": "once" };
    const simulate = () => service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x" }, { headers });
    const [first, again] = [await simulate(), await simulate()];
    expect(first).toMatchObject({ status: 202, body: { testMode: true } });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    expect((await inbound()).length).toBe(before + 1);
  });

  test("is not there where its answer could not be stored: another process was first", async () => {
    const before = await inbound();
    const { db, queue } = service.app;
    const senderId =
      (await db.first<{ sender_id: string }>("SELECT sender_id FROM inboxes"))?.sender_id ?? "";
    const asking = { clock: systemClock, host: "mx.test", resolve: () => Promise.reject(new Error("no")) };
    const inspect: Inspect = (asked) => read(asking, asked);
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
      simulateInbound(deps, senderId, { inboxId, attachments: [] }, () => insertAnswer(at, answer));
    const first = await simulate();
    expect(simulate()).rejects.toThrow(ConstraintError);
    expect(await inbound()).toEqual([first.messageId, ...before]);
  });
});
