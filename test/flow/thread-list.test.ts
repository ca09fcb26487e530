import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { MAX_BODY_CHARS, MAX_CONVERSATION_CHARS } from "../../src/http/views/conversation.ts";
import { MAX_SCANNED } from "../../src/store/matching/steps.ts";
import { MAX_PARTICIPANTS } from "../../src/store/threads/threads.ts";
import { inboxService } from "../support/inbox-service.ts";
import { delivered, deliveredRecord } from "../support/mail-in.ts";

setDefaultTimeout(60_000);

const scene = inboxService();
const { newInbox } = scene;
let count = 0;

async function list(inboxId: string, query: Record<string, string> = {}) {
  return (await scene.service.call("GET", `/v1/inboxes/${inboxId}/threads?${new URLSearchParams(query)}`))
    .body;
}

const idsOf = (page: { data: { id: string }[] }): string[] => page.data.map(({ id }) => id);

/** Reads page after page until the last. Runs `between` before each further one. */
async function walk(inboxId: string, query: Record<string, string>, between = async () => {}) {
  const seen: string[] = [];
  let page = await list(inboxId, query);
  seen.push(...idsOf(page));
  while (page.nextCursor !== null) {
    await between();
    page = await list(inboxId, { ...query, cursor: page.nextCursor });
    seen.push(...idsOf(page));
  }
  return seen;
}

describe("the list of threads", () => {
  test("the list of threads has no gaps or duplicates in its pages while new mail moves threads up", async () => {
    const { id, address } = await newInbox();
    const made: { thread: string; message: string }[] = [];
    for (let at = 0; at < 12; at++) {
      const message = `<walk${at}@client.test>`;
      const headers = [`Message-ID: ${message}`];
      made.unshift({
        thread: (await deliveredRecord(scene.service, { to: address, headers })).threadId,
        message,
      });
    }
    // Each time, a listed one, one still to come, and a new one.
    const bumps = [made[0], made[11], made[1], made[10], made[2], made[9]];
    const moved = new Set<string>();
    const seen = await walk(id, { limit: "3" }, async () => {
      for (const bumped of bumps.splice(0, 2)) {
        if (bumped === undefined) continue;
        moved.add(bumped.thread);
        await delivered(scene.service, { to: address, headers: [`In-Reply-To: ${bumped.message}`] });
      }
      await delivered(scene.service, { to: address });
    });
    expect(new Set(seen).size).toBe(seen.length);
    const still = made.map(({ thread }) => thread).filter((thread) => !moved.has(thread));
    expect(seen.filter((thread) => still.includes(thread))).toEqual(still);
    expect(moved.size).toBe(6);
    const anew = await walk(id, { limit: "100" });
    expect(anew.slice(0, 9).filter((thread) => moved.has(thread)).length).toBe(6);
  });

  test("moves a thread up by a reply and by a send", async () => {
    const { id, address } = await newInbox();
    const [a, b] = [
      await deliveredRecord(scene.service, { to: address }),
      await deliveredRecord(scene.service, { to: address }),
    ];
    expect(idsOf(await list(id))).toEqual([b.threadId, a.threadId]);
    await scene.service.call("POST", `/v1/threads/${a.threadId}/reply`, { text: "x" });
    expect(idsOf(await list(id))).toEqual([a.threadId, b.threadId]);
  });

  test.each([
    ["subject", "RECHNUNG 17", true],
    ["subject, case beyond ASCII", "ÜBER", true],
    ["sender", "Grace@Client", true],
    ["another participant", "copy@c.test", true],
    ["preview", "words of the last", true],
    ["a wildcard as a plain character", "Rechnung_17", false],
    ["a percent sign", "%", false],
    ["the syntax of a list", '","', false],
    ["the inbox's own address", "@in.test", false],
    ["an earlier mail's text", "first text", false],
    ["an absent text", "zebra", false],
  ])("the list of threads is searched by %s", async (_, q, found) => {
    const { id, address } = await newInbox();
    const message = `<q${++count}@client.test>`;
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: [
        "From: grace@client.test",
        `To: ${address}`,
        "Cc: copy@c.test",
        `Message-ID: ${message}`,
        "Subject: =?UTF-8?Q?Rechnung_17_=C3=BCber_alles?=",
      ],
      body: "first text",
    });
    await delivered(scene.service, {
      to: address,
      headers: ["From: grace@client.test", `In-Reply-To: ${message}`],
      body: "The words of the last mail",
    });
    await delivered(scene.service, {
      to: address,
      headers: ["From: other@o.test", "Subject: Other"],
      body: "Nothing",
    });
    expect(idsOf(await list(id, { q }))).toEqual(found ? [threadId] : []);
  });

  test("the list of threads is searched in pages, whose cursor is bound to the text", async () => {
    const { id, address } = await newInbox();
    const wanted: string[] = [];
    for (let at = 0; at < 6; at++) {
      const subject = at % 2 === 0 ? "Order" : "Other";
      const { threadId } = await deliveredRecord(scene.service, {
        to: address,
        headers: [`Subject: ${subject}`],
      });
      if (subject === "Order") wanted.unshift(threadId);
    }
    expect(await walk(id, { q: "order", limit: "2" })).toEqual(wanted);
    const { nextCursor } = await list(id, { q: "order", limit: "2" });
    const other = `/v1/inboxes/${id}/threads?q=other&cursor=${nextCursor}`;
    expect((await scene.service.call("GET", other)).status).toBe(400);
    for (const q of ["", "x".repeat(257)])
      expect((await scene.service.call("GET", `/v1/inboxes/${id}/threads?q=${q}`)).status).toBe(422);
  });

  test("the list of threads is searched up to a number of threads for each page, and the next page continues after them", async () => {
    const { id } = await newInbox();
    const { db } = scene.service.app;
    // One past the limit: the oldest thread is not read.
    await db.write([
      {
        sql: `INSERT INTO threads (id, sender_id, inbox_id, subject, preview, last_message_at, created_at, updated_at)
          WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
          SELECT 'thr_' || n, i.sender_id, i.id, 'subject ' || n || ' end', 'A preview of some length', n, n, n
            FROM numbers, inboxes i WHERE i.id = ?`,
        args: [MAX_SCANNED, id],
      },
    ]);
    expect(idsOf(await list(id, { q: "subject 1 end" }))).toEqual(["thr_1"]);
    const empty = await list(id, { q: "subject 0 end" });
    expect(empty).toEqual({ data: [], nextCursor: expect.any(String) });
    const rest = await list(id, { q: "subject 0 end", cursor: empty.nextCursor });
    expect([idsOf(rest), rest.nextCursor]).toEqual([["thr_0"], null]);
    expect(idsOf(await list(id, { q: "subject 99" })).length).toBe(20);
  });
});

describe("a thread", () => {
  test("a thread has attachments once a message has come with one, and still after one without", async () => {
    const { id, address } = await newInbox();
    const message = "<attached@client.test>";
    await delivered(scene.service, {
      to: address,
      headers: [
        `Message-ID: ${message}`,
        "MIME-Version: 1.0",
        "Content-Type: application/pdf",
        "Content-Disposition: attachment; filename=a.pdf",
      ],
    });
    await delivered(scene.service, { to: address, headers: [`In-Reply-To: ${message}`] });
    expect((await list(id)).data).toMatchObject([{ messageCount: 2, hasAttachments: true }]);
  });

  test("a thread has exactly the fields of its record", async () => {
    const { id, address } = await newInbox();
    const record = await deliveredRecord(scene.service, {
      to: address,
      headers: ["Subject: Help"],
      body: "A  question\r\n",
    });
    const [thread] = (await list(id)).data;
    expect(thread).toEqual({
      id: record.threadId,
      inboxId: id,
      senderId: record.senderId,
      subject: "Help",
      preview: "A question",
      participants: ["ada@client.test"],
      participantNames: { "ada@client.test": "Ada" },
      messageCount: 1,
      hasAttachments: false,
      lastMessageId: record.id,
      lastMessageAt: record.createdAt,
      lastInboundAt: record.createdAt,
      read: false,
      archived: false,
      labels: [],
      assigneeId: null,
      folder: "inbox",
      snoozedUntil: null,
      deletesAt: null,
      createdAt: record.createdAt,
      updatedAt: record.createdAt,
    });
    const whole = (await scene.service.call("GET", `/v1/threads/${record.threadId}`)).body;
    // Findings in the parts are in the message's own record alone.
    const { links, codes, invitation, ...message } = (
      await scene.service.call("GET", `/v1/emails/${record.id}`)
    ).body;
    expect([links, codes, invitation]).toEqual([[], [], null]);
    expect(whole).toEqual({ ...thread, messages: [message], notes: [] });
  });

  test("a thread shows the first participants in order of arrival, each once", async () => {
    const { address } = await newInbox();
    const many = Array.from({ length: MAX_PARTICIPANTS }, (_, at) => `p${MAX_PARTICIPANTS - at}@p.test`);
    const first = `<crowd${++count}@client.test>`;
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: [
        `Message-ID: ${first}`,
        `To: ${address.replace("@", "+x@")}, ADA@client.test, ${"l".repeat(400)}@p.test`,
        `Cc: ${many.join(",\r\n ")}`,
      ],
    });
    await delivered(scene.service, {
      to: address,
      headers: ["From: aaa@late.test", `In-Reply-To: ${first}`],
    });
    const { participants } = (await scene.service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(participants).toEqual(["ada@client.test", ...many.slice(0, MAX_PARTICIPANTS - 1)]);
  });

  test("a thread shows its last hundred messages, oldest first, and all of them in pages", async () => {
    const { address } = await newInbox();
    const first = `<long${++count}@client.test>`;
    const ids = [await delivered(scene.service, { to: address, headers: [`Message-ID: ${first}`] })];
    for (let at = 0; at < 100; at++)
      ids.push(await delivered(scene.service, { to: address, headers: [`In-Reply-To: ${first}`] }));
    const { threadId } = (await scene.service.call("GET", `/v1/emails/${ids[0]}`)).body;
    const thread = (await scene.service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(thread.messageCount).toBe(101);
    expect(thread.messages.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1));
    const seen: string[] = [];
    let cursor = "";
    do {
      const { body } = await scene.service.call("GET", `/v1/threads/${threadId}/messages?limit=40${cursor}`);
      seen.push(...idsOf(body));
      // Mail that arrives between pages shifts nothing.
      await delivered(scene.service, { to: address, headers: [`In-Reply-To: ${first}`] });
      cursor = body.nextCursor === null ? "" : `&cursor=${body.nextCursor}`;
    } while (cursor !== "");
    expect(seen).toEqual(ids.toReversed());
  });

  test("cuts long bodies, and older ones once the answer is full, but the records have them", async () => {
    const { address } = await newInbox();
    const first = `<big${++count}@client.test>`;
    const body = `${"x".repeat(70)}\r\n`.repeat(Math.ceil((MAX_BODY_CHARS + 1) / 71));
    const many = MAX_CONVERSATION_CHARS / MAX_BODY_CHARS + 1;
    const id = await delivered(scene.service, {
      to: address,
      headers: [`Message-ID: ${first}`, "X-Own: 1"],
      body,
    });
    for (let at = 1; at < many; at++)
      await delivered(scene.service, { to: address, headers: [`In-Reply-To: ${first}`], body });
    const record = (await scene.service.call("GET", `/v1/emails/${id}`)).body;
    expect(record.text.length).toBeGreaterThan(MAX_BODY_CHARS);
    const { messages } = (await scene.service.call("GET", `/v1/threads/${record.threadId}`)).body;
    expect(messages.length).toBe(many);
    expect(messages.at(-1)).toMatchObject({ truncated: true, text: record.text.slice(0, MAX_BODY_CHARS) });
    expect(messages[0]).toMatchObject({ id, truncated: true, text: "", headers: {} });
    expect(JSON.stringify(messages).length).toBeLessThan(MAX_CONVERSATION_CHARS * 1.2);
  });

  test("a thread shows the outcome of its messages", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    const bounced = await scene.service.call("POST", `/v1/threads/${threadId}/reply`, {
      text: "x",
      cc: [{ email: "bounced@simulator.mail.test" }],
    });
    await scene.service.message(bounced.body.id, "bounced");
    const { messages } = (await scene.service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(messages.map(({ status }: { status: string }) => status)).toEqual(["delivered", "bounced"]);
    expect(messages[1].recipients.map(({ status }: { status: string }) => status)).toEqual([
      "delivered",
      "bounced",
    ]);
  });
});

test("ids of another project answer like ids that do not exist", async () => {
  const { id, address } = await newInbox();
  const record = await deliveredRecord(scene.service, { to: address });
  const other = await scene.service.call(
    "POST",
    "/v1/senders",
    { name: "Stranger" },
    { key: scene.service.accountKey },
  );
  const options = { key: scene.service.accountKey, headers: { "X-Service-Product": other.body.id } };
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await scene.service.call(method, path, body, options);
    const { requestId: _, ...error } = answer.body.error;
    return { status: answer.status, error };
  };
  const rows: [string, (inbox: string, thread: string) => string, unknown][] = [
    ["GET", (inbox) => `/v1/inboxes/${inbox}/threads?q=x`, undefined],
    ["GET", (_inbox, thread) => `/v1/threads/${thread}`, undefined],
    ["GET", (_inbox, thread) => `/v1/threads/${thread}/messages`, undefined],
    ["POST", (_inbox, thread) => `/v1/threads/${thread}/reply`, { text: "x", messageId: record.id }],
    ["GET", (inbox) => `/v1/inboxes/${inbox}`, undefined],
    ["PATCH", (inbox) => `/v1/inboxes/${inbox}`, { displayName: "x" }],
    ["DELETE", (inbox) => `/v1/inboxes/${inbox}`, undefined],
  ];
  for (const [method, path, body] of rows) {
    const foreign = await ask(method, path(id, record.threadId), body);
    expect(foreign.status).toBe(404);
    expect(foreign).toEqual(await ask(method, path("inb_0", "thr_0"), body));
  }
  expect((await scene.service.call("GET", `/v1/threads/${record.threadId}`)).body.messageCount).toBe(1);
});
