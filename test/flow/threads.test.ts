import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSink } from "../support/https-sink.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

let service: TestService;
let inboxId: string;

beforeEach(async () => {
  service = await startService();
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["support@in.test"]);
});
afterEach(() => service.stop());

async function simulate(body: Record<string, unknown> = {}) {
  const answer = await service.call("POST", "/v1/inbound/simulate", { inboxId, ...body });
  expect(answer.status).toBe(202);
  return answer.body as { messageId: string; threadId: string };
}

async function reply(threadId: string, body: Record<string, unknown> = {}) {
  return service.call("POST", `/v1/threads/${threadId}/reply`, { text: "An answer", ...body });
}

describe("a simulated message", () => {
  test("a simulated message is parsed like any other, flagged, pushed to webhooks, and lets the inbox be deleted", async () => {
    const sink = startSink();
    await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["inbound_received"] });
    const content = Buffer.from("hello").toString("base64");
    const { messageId, threadId } = await simulate({
      from: { email: "ada@client.test", name: "Ada" },
      subject: "Grüße",
      text: "Hi",
      html: "<p>Hi</p>",
      attachments: [{ filename: "a.txt", content }],
    });
    const event = JSON.parse((await sink.requests.reached(1)).body);
    expect(event.data).toMatchObject({
      messageId,
      testMode: true,
      inbound_received: { threadId, subject: "Grüße" },
    });
    const record = (await service.call("GET", `/v1/emails/${messageId}`)).body;
    expect(record).toMatchObject({
      testMode: true,
      direction: "inbound",
      from: "ada@client.test",
      fromName: "Ada",
      html: expect.stringContaining("<p>Hi</p>"),
    });
    const bytes = await service.call(
      "GET",
      `/v1/emails/${messageId}/attachments/${record.attachments[0].id}`,
    );
    expect(bytes.body).toBe("hello");
    expect((await service.call("DELETE", `/v1/inboxes/${inboxId}`)).status).toBe(204);
    await sink.stop();
  });

  test("answers the given message, by Message-ID or by our id", async () => {
    const first = await simulate();
    const record = (await service.call("GET", `/v1/emails/${first.messageId}`)).body;
    expect((await simulate({ inReplyTo: first.messageId })).threadId).toBe(first.threadId);
    expect((await simulate({ inReplyTo: record.messageId })).threadId).toBe(first.threadId);
    expect((await simulate()).threadId).not.toBe(first.threadId);
  });

  test.each([
    [{ inboxId: undefined }, 422, "inboxId"],
    [{ inboxId: "inb_00000000000000000000000000" }, 404, undefined],
    [{ inboxId: undefined, to: "nobody@in.test" }, 404, undefined],
    [{ from: { email: "nobody" } }, 422, "from.email"],
    [{ inReplyTo: "msg_00000000000000000000000000" }, 422, "inReplyTo"],
    [{ attachments: [{ filename: "a", content: "?" }] }, 422, "attachments[0].content"],
  ])("%j is refused", async (change, status, param) => {
    const refused = await service.call("POST", "/v1/inbound/simulate", { inboxId, ...change });
    expect(refused.status).toBe(status);
    expect(refused.body.error.param).toBe(param);
  });
});

describe("a reply", () => {
  test("a reply goes from the inbox to the sender, in the thread, with subject and references", async () => {
    const { messageId, threadId } = await simulate({ from: { email: "ada@client.test" }, subject: "Help" });
    const original = (await service.call("GET", `/v1/emails/${messageId}`)).body;
    const sent = await reply(threadId);
    expect(sent.status).toBe(202);
    expect(sent.body.threadId).toBe(threadId);
    const record = await service.message(sent.body.id, "delivered");
    expect(record).toMatchObject({
      from: "support@in.test",
      to: ["ada@client.test"],
      subject: "Re: Help",
      threadId,
      inboxId,
      headers: { "In-Reply-To": original.messageId, References: original.messageId },
    });
    const again = await service.message(
      (await reply(threadId, { messageId: sent.body.id })).body.id,
      "delivered",
    );
    expect(again).toMatchObject({ subject: "Re: Help", to: ["ada@client.test"] });
    expect(again.headers.References).toBe(`${original.messageId} ${record.messageId}`);
  });

  test("a reply goes to the addresses that it names instead of the sender, each once", async () => {
    const { threadId } = await simulate({ from: { email: "ada@client.test" } });
    const to = ["ben@client.test", "Cy <cy@client.test>"];
    const sent = await reply(threadId, { to, cc: ["BEN@client.test"] });
    expect((await service.message(sent.body.id, "delivered")).addresses).toMatchObject({
      to: [{ email: "ben@client.test" }, { email: "cy@client.test", name: "Cy" }],
      cc: [],
    });
    const usual = await reply(threadId, { to: [] });
    expect((await service.message(usual.body.id, "delivered")).to).toEqual(["ada@client.test"]);
  });

  test("a reply to all reaches everyone but the inbox, once", async () => {
    const raw = [
      "From: ada@client.test",
      "To: support@in.test, bob@client.test",
      "Cc: carol@client.test, Bob@client.test",
      "Reply-To: desk@client.test",
      "Subject: re: Help",
      "",
      "Hi",
    ].join("\n");
    const child = Bun.spawn(
      ["swaks", "--server", `127.0.0.1:${service.smtpPort}`, "--to", "support@in.test", "--data", raw],
      { stdout: "ignore" },
    );
    expect(await child.exited).toBe(0);
    const [thread] = (await service.call("GET", `/v1/inboxes/${inboxId}/threads`)).body.data;
    const record = await service.message((await reply(thread.id, { replyAll: true })).body.id, "delivered");
    expect(record).toMatchObject({ to: ["desk@client.test"], subject: "Re: Help" });
    expect(record.cc).toEqual(["bob@client.test", "carol@client.test"]);
  });

  test("a reply to all reports faults by their place in the request", async () => {
    const { threadId } = await simulate({ from: { email: "ada@client.test" } });
    const cc = [{ email: "ADA@client.test" }, { email: "eve@client.test" }, { email: "no address" }];
    const refused = await reply(threadId, { replyAll: true, cc });
    expect([refused.status, refused.body.error.param]).toEqual([422, "cc[2].email"]);
    const sent = await reply(threadId, { replyAll: true, cc: cc.slice(0, 2) });
    const record = await service.message(sent.body.id, "delivered");
    expect([record.to, record.cc]).toEqual([["ada@client.test"], ["eve@client.test"]]);
  });

  test("a reply without content gets an error that names what it needs", async () => {
    const { threadId } = await simulate();
    const { error } = (await reply(threadId, { text: undefined })).body;
    expect(error).toMatchObject({
      message: "html: One of html, text and templateId is required.",
      code: "missing_field",
    });
  });

  test("the twenty-first within a minute is refused", async () => {
    const { threadId } = await simulate();
    for (let at = 0; at < 20; at++) expect((await reply(threadId)).status).toBe(202);
    const refused = await reply(threadId);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("60");
  });

  test.each([
    ["without content", { text: undefined }, 422],
    ["to a message of no thread", { messageId: "msg_00000000000000000000000000" }, 404],
    ["with a header of ours", { headers: { From: "x@y.test" } }, 422],
  ])("%s is refused", async (_, change, status) => {
    const { threadId } = await simulate();
    expect((await reply(threadId, change)).status).toBe(status);
  });
});

describe("threads", () => {
  test("threads are listed by last activity, each once over all pages", async () => {
    const threads: string[] = [];
    for (let at = 0; at < 5; at++) threads.push((await simulate({ subject: `s${at}` })).threadId);
    await reply(threads[0] ?? "");
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { body } = await service.call("GET", `/v1/inboxes/${inboxId}/threads?limit=2${query}`);
      seen.push(...body.data.map((thread: { id: string }) => thread.id));
      cursor = body.nextCursor;
    } while (cursor !== null);
    expect(seen[0]).toBe(threads[0] ?? "");
    expect(seen.toSorted()).toEqual(threads.toSorted());
  });

  test("threads show counts, participants and their messages, oldest first", async () => {
    const { threadId, messageId } = await simulate({
      from: { email: "ada@client.test" },
      subject: "Help",
      text: "First words",
    });
    const { id } = (await reply(threadId)).body;
    const thread = (await service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(thread).toMatchObject({
      id: threadId,
      inboxId,
      subject: "Help",
      preview: "An answer",
      participants: ["ada@client.test"],
      messageCount: 2,
      lastMessageId: id,
    });
    expect(thread.messages.map((message: { id: string }) => message.id)).toEqual([messageId, id]);
    const page = (await service.call("GET", `/v1/threads/${threadId}/messages?limit=1`)).body;
    expect(page.data[0].id).toBe(id);
    const next = (
      await service.call("GET", `/v1/threads/${threadId}/messages?limit=1&cursor=${page.nextCursor}`)
    ).body;
    expect({ id: next.data[0].id, next: next.nextCursor }).toEqual({ id: messageId, next: null });
  });

  test("participants have the name that their newest message gives, in lists and in the thread", async () => {
    const from = { email: "Eve@client.test", name: "Eve" };
    const { threadId, messageId } = await simulate({ from });
    await simulate({ from: { ...from, name: "Eve Ford" }, inReplyTo: messageId });
    const list = await service.call("GET", `/v1/inboxes/${inboxId}/threads?limit=1`);
    const one = await service.call("GET", `/v1/threads/${threadId}`);
    const changed = await service.call("PATCH", `/v1/threads/${threadId}`, { read: true });
    for (const { participants, participantNames } of [list.body.data[0], one.body, changed.body]) {
      expect(participants).toHaveLength(1);
      expect(participantNames).toEqual({ [participants[0]]: "Eve Ford" });
    }
  });

  test("threads of another project do not exist", async () => {
    const { threadId } = await simulate();
    const other = (await service.call("POST", "/v1/senders", { name: "Other" }, { key: service.accountKey }))
      .body.id;
    const options = { key: service.accountKey, headers: { "X-Service-Product": other } };
    for (const [method, path] of [
      ["GET", `/v1/threads/${threadId}`],
      ["GET", `/v1/threads/${threadId}/messages`],
      ["GET", `/v1/inboxes/${inboxId}/threads`],
      ["POST", `/v1/threads/${threadId}/reply`],
    ] as const) {
      const answer = await service.call(method, path, method === "POST" ? { text: "x" } : undefined, options);
      expect(answer.status).toBe(404);
    }
  });
});
