import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inboxService } from "../support/inbox-service.ts";
import { delivered, deliveredRecord } from "../support/mail-in.ts";
import { receivingInboxes, startService } from "../support/service.ts";
import { shiftedClock } from "../support/shifted-clock.ts";
import { DAY_MS } from "../../src/core/time/units.ts";

const scene = inboxService();
const { newInbox, newMessageId, reply, replied, answerTo } = scene;

describe("the recipients of a reply", () => {
  test.each([
    ["the author", ["From: ada@a.test"], {}, ["ada@a.test"], []],
    [
      "Reply-To before the author",
      ["From: ada@a.test", "Reply-To: b@b.test, c@c.test"],
      {},
      ["b@b.test", "c@c.test"],
      [],
    ],
    [
      "the author if Reply-To is not an address",
      ["From: ada@a.test", "Reply-To: nobody"],
      {},
      ["ada@a.test"],
      [],
    ],
    [
      "Reply-To with quotes that it can do without",
      ["From: ada@a.test", 'Reply-To: B <"b.c"@b.test>'],
      {},
      ["b.c@b.test"],
      [],
    ],
    [
      "the author if Reply-To has no domain",
      ["From: ada@a.test", "Reply-To: <b@[127.0.0.1]>"],
      {},
      ["ada@a.test"],
      [],
    ],
    [
      "the author if Reply-To is the inbox",
      ["From: ada@a.test", "Reply-To: BOX+x@in.test"],
      {},
      ["ada@a.test"],
      [],
    ],
    ["others only on request", ["From: ada@a.test", "To: BOX@in.test, b@b.test"], {}, ["ada@a.test"], []],
    [
      "all: To and Cc, without the inbox, its plus addresses, duplicates and invalid addresses",
      [
        "From: ada@a.test",
        "To: BOX+support@IN.test, b@b.test, Ada@a.test, broken",
        "Cc: BOX@in.test, B@B.test, carol@c.test, Box@in.test.other.test",
      ],
      { replyAll: true },
      ["ada@a.test"],
      ["b@b.test", "carol@c.test", "Box@in.test.other.test"],
    ],
    [
      "copies of the client's own, once",
      ["From: ada@a.test", "Cc: b@b.test"],
      { replyAll: true, cc: [{ email: "B@b.test" }, { email: "ada@a.test" }, { email: "d@d.test" }] },
      ["ada@a.test"],
      ["b@b.test", "d@d.test"],
    ],
    [
      "those the inbox wrote to itself",
      ["From: BOX+me@in.test", "To: b@b.test, BOX@in.test"],
      {},
      ["b@b.test"],
      [],
    ],
  ])("%s", async (_, headers, body, to, cc) => {
    expect(await answerTo(headers, body)).toMatchObject({ to, cc });
  });

  test("the recipients of our own last message, if the thread has received nothing", async () => {
    const { address } = await newInbox();
    const sent = await scene.service.call("POST", "/v1/emails", {
      from: { email: address },
      to: [{ email: "a@a.test" }, { email: address }],
      cc: [{ email: "c@c.test" }],
      subject: "Offer",
      text: "x",
    });
    const { threadId, messageId } = (await scene.service.call("GET", `/v1/emails/${sent.body.id}`)).body;
    expect(await replied(threadId, { replyAll: true })).toMatchObject({
      to: ["a@a.test"],
      cc: ["c@c.test"],
      subject: "Re: Offer",
      headers: { "In-Reply-To": messageId, References: messageId },
    });
  });

  test.each([
    ["no From", ["From:"]],
    ["a From that is not an address", ["From: undisclosed"]],
    ["the inbox alone", ["From: BOX@in.test", "To: BOX@in.test"]],
    ["a Reply-To in quotes", ["From: no-reply@a.test", 'Reply-To: "john smith"@a.test']],
    ["a Reply-To in quotes and brackets", ["From: no-reply@a.test", 'Reply-To: <"john smith"@a.test>']],
  ])("the recipients of a reply is a conflict if the message has %s", async (_, headers) => {
    const { address } = await newInbox();
    const own = headers.map((line) => line.replaceAll("BOX", address.replace("@in.test", "")));
    const { threadId } = await deliveredRecord(scene.service, { to: address, mailFrom: "", headers: own });
    const refused = await reply(threadId, { replyAll: true, cc: [{ email: "a@a.test" }] });
    expect(refused).toMatchObject({ status: 409, body: { error: { code: "invalid_state" } } });
  });

  test("the recipients of a reply is refused if a reply to all has more recipients than a send may have", async () => {
    const { address } = await newInbox();
    const many = Array.from({ length: 50 }, (_, at) => `r${at}@a.test`);
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: [`Cc: ${many.join(",\r\n ")}`],
    });
    const refused = await reply(threadId, { replyAll: true });
    expect(refused).toMatchObject({ status: 422, body: { error: { code: "too_many_recipients" } } });
    expect((await reply(threadId)).status).toBe(202);
  });
});

describe("a reply", () => {
  test("answers the given message, or the last inbound one", async () => {
    const { address } = await newInbox();
    const root = newMessageId();
    const first = await deliveredRecord(scene.service, {
      to: address,
      headers: ["From: a@a.test", `Message-ID: ${root}`],
    });
    await deliveredRecord(scene.service, {
      to: address,
      headers: ["From: b@b.test", `In-Reply-To: ${root}`],
    });
    expect((await replied(first.threadId)).to).toEqual(["b@b.test"]);
    expect((await replied(first.threadId)).to).toEqual(["b@b.test"]);
    expect((await replied(first.threadId, { messageId: first.id })).to).toEqual(["a@a.test"]);
  });

  test("a reply to a message of another thread, or of none, is 404", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    for (const messageId of [
      await delivered(scene.service, { to: address }),
      "msg_00000000000000000000000000",
      "x'",
    ]) {
      const refused = await reply(threadId, { messageId });
      expect(refused).toMatchObject({ status: 404, body: { error: { type: "not_found" } } });
    }
  });

  test("carries attachments, tags, headers and bcc recipients, and is validated as a send is", async () => {
    const content = Buffer.from("file").toString("base64");
    const record = await answerTo([], {
      html: "<p>Hi</p>",
      bcc: [{ email: "hidden@h.test" }],
      attachments: [{ filename: "a.txt", content }],
      tags: [{ name: "kind", value: "answer" }],
    });
    expect(record).toMatchObject({
      bcc: ["hidden@h.test"],
      tags: [{ name: "kind", value: "answer" }],
      attachments: [{ filename: "a.txt", size: 4 }],
    });
    const thread = (await scene.service.call("GET", `/v1/threads/${record.threadId}`)).body;
    expect(thread).toMatchObject({
      hasAttachments: true,
      preview: "An answer",
      participants: ["ada@client.test"],
    });
    const bad: [Record<string, unknown>, string][] = [
      [{ text: undefined }, "html"],
      [{ headers: { From: "x@y.test" } }, "headers.From"],
      [{ headers: { "X-A": "a\r\nBcc: b@b.test" } }, "headers.X-A"],
      [{ tags: [{ name: "a b", value: "c" }] }, "tags[0].name"],
      [{ attachments: [{ filename: "a", content: "?" }] }, "attachments[0].content"],
      [{ cc: [{ email: "nobody" }] }, "cc[0].email"],
    ];
    for (const [body, param] of bad)
      expect(await reply(record.threadId, body)).toMatchObject({ status: 422, body: { error: { param } } });
  });

  test.each([
    ["text", { text: "Yes.\n\nOn Tue, Nov 14, 2023 at 10:13 PM Ann <ann@example.com> wrote:\n> Really?\n" }],
    ["html", { text: undefined, html: "<p>Yes.</p><blockquote type=cite><p>Really?</p></blockquote>" }],
  ])("a reply has no quoted text in its preview: %s", async (_, body) => {
    const { threadId } = await answerTo([], body);
    expect((await scene.service.call("GET", `/v1/threads/${threadId}`)).body.preview).toBe("Yes.");
  });

  test("a reply with only html has the html's text as its preview", async () => {
    const { threadId } = await answerTo([], { text: undefined, html: "<p>Only <b>this</b></p>" });
    expect((await scene.service.call("GET", `/v1/threads/${threadId}`)).body.preview).toBe("Only this");
  });

  test("a reply to a suppressed address is accepted, and its record shows it rejected", async () => {
    const { address } = await newInbox();
    await scene.service.call("POST", "/v1/suppressions", { email: "gone@g.test" });
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: ["From: Gone@g.test"],
    });
    expect((await reply(threadId)).body).toMatchObject({ status: "queued" });
    expect(await replied(threadId)).toMatchObject({
      status: "rejected",
      recipients: [{ status: "rejected", reason: "suppressed" }],
    });
  });

  test("a reply may answer an automatic message, because a client asked for it", async () => {
    const headers = ["From: robot@r.test", "Auto-Submitted: auto-replied", "Precedence: bulk"];
    expect((await answerTo(headers)).to).toEqual(["robot@r.test"]);
  });

  test("a reply with an Idempotency-Key is made once", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    const key = { "Idempotency-Key": "once" };
    const first = await reply(threadId, {}, key);
    const again = await reply(threadId, {}, key);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect((await scene.service.call("GET", `/v1/threads/${threadId}`)).body.messageCount).toBe(2);
  });

  test("a reply is one of at most twenty a minute, even if they come at the same time", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    const answers = await Promise.all(Array.from({ length: 25 }, () => reply(threadId)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 202).length).toBe(20);
    expect(refused.map(({ headers }) => headers.get("retry-after"))).toEqual(Array(5).fill("60"));
  });

  test("a reply is not refused because of earlier ones from a clock that was ahead", async () => {
    const clock = shiftedClock();
    const service = await startService({}, clock);
    try {
      await receivingInboxes(service, "in.test", ["box@in.test"]);
      clock.shift(DAY_MS);
      const { threadId } = await deliveredRecord(service, { to: "box@in.test" });
      const answer = () => service.call("POST", `/v1/threads/${threadId}/reply`, { text: "An answer" });
      for (let at = 0; at < 20; at++) expect((await answer()).status).toBe(202);
      expect((await answer()).status).toBe(429);
      clock.shift(-DAY_MS);
      expect((await answer()).status).toBe(202);
    } finally {
      await service.stop();
    }
  });

  test("a reply is one of at most twenty a minute, even over two processes", async () => {
    const { service } = scene;
    const masterKey = readFileSync(join(service.folder, "master.key"), "utf8").trim();
    const second = await startService({ ...service.sameDatabase, MASTER_KEY: masterKey, ROLES: "api" });
    try {
      const { address } = await newInbox();
      const { threadId } = await deliveredRecord(service, { to: address });
      const ask = (at: number) =>
        (at % 2 === 0 ? service : second).call(
          "POST",
          `/v1/threads/${threadId}/reply`,
          { text: "An answer" },
          { key: service.projectKey },
        );
      const answers = await Promise.all(Array.from({ length: 60 }, (_, at) => ask(at)));
      expect(answers.filter(({ status }) => status === 202)).toHaveLength(20);
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(40);
    } finally {
      await second.stop();
    }
  });

  test("a reply keeps the thread when its answer comes, and the record names each participant once", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: `${address.replace("@", "+t@")}` });
    const { messageId } = await replied(threadId);
    const headers = [
      "From: Ada@client.test",
      `To: ${address}`,
      "Cc: carol@c.test",
      `In-Reply-To: ${messageId}`,
    ];
    const back = await deliveredRecord(scene.service, { to: address, headers });
    expect(back.threadId).toBe(threadId);
    const thread = (await scene.service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(thread.participants).toEqual(["ada@client.test", "carol@c.test"]);
    expect(thread.lastMessageId).toBe(back.id);
    expect(thread.lastInboundAt).toBe(thread.lastMessageAt);
  });
});
