import { describe, expect, test } from "bun:test";
import { MAX_REMEMBERED_REFERENCES } from "../../src/store/threads/threads.ts";
import { inboxService } from "../support/inbox-service.ts";
import { deliver, deliveredRecord, type Letter } from "../support/mail-in.ts";
import { verifiedDomain } from "../support/service.ts";

const scene = inboxService();
const { newInbox, newMessageId } = scene;

/** The thread that a letter joins. */
async function threadOf(to: string, headers: readonly string[] = []): Promise<string> {
  return (await deliveredRecord(scene.service, { to, headers })).threadId;
}

describe("a message joins", () => {
  const [a, b, unknown] = ["<a@client.test>", "<b@client.test>", "<unknown@client.test>"];
  test.each([
    ["the thread that In-Reply-To names", [`In-Reply-To: ${a}`], "A"],
    ["the thread that References names", [`References: ${a}`], "A"],
    ["a thread named among unknown ones", [`References: ${a} ${unknown}`, `In-Reply-To: ${unknown}`], "A"],
    ["of two threads that of the last reference, the nearest ancestor", [`References: ${b} ${a}`], "A"],
    ["of two threads that of In-Reply-To", [`References: ${a} ${b}`, `In-Reply-To: ${a}`], "A"],
    ["a thread whose id is folded over lines", [`References: ${unknown}\r\n ${a}`], "A"],
    ["a new thread if an id differs in case", [`In-Reply-To: ${a.toUpperCase()}`], "new"],
    ["a new thread if only subjects agree", ["Subject: Re: Help"], "new"],
    ["a new thread if it names none", [], "new"],
    ["a new thread if In-Reply-To is prose", ["In-Reply-To: a mail of Ada's"], "new"],
  ])("%s", async (_, headers, joined) => {
    const { address } = await newInbox();
    const threads = {
      A: await threadOf(address, [`Message-ID: ${a}`, "Subject: Help"]),
      B: await threadOf(address, [`Message-ID: ${b}`, "Subject: Other"]),
    };
    const thread = await threadOf(address, [...headers]);
    if (joined === "A") expect(thread).toBe(threads.A);
    else expect([threads.A, threads.B]).not.toContain(thread);
  });

  test("the thread of a message that we sent, by its Message-ID on the wire", async () => {
    const { address } = await newInbox();
    const sent = await scene.service.call("POST", "/v1/emails", {
      from: { email: address },
      to: [{ email: "ada@client.test" }],
      subject: "Offer",
      html: "<p>Our <b>offer</b></p>",
    });
    const record = await scene.service.message(sent.body.id, "delivered");
    const raw = (await scene.service.call("GET", `/v1/emails/${record.id}/raw`)).body;
    const onWire = /^Message-ID: (<[^>]+>)\r$/m.exec(raw)?.[1];
    expect(onWire).toBe(record.messageId);
    expect(await threadOf(address, [`In-Reply-To: ${onWire}`])).toBe(record.threadId);
    const thread = (await scene.service.call("GET", `/v1/threads/${record.threadId}`)).body;
    expect(thread).toMatchObject({ subject: "Offer", participants: ["ada@client.test"], messageCount: 2 });
    expect(thread.messages[0].id).toBe(record.id);
  });

  test("the thread of another copy of itself that came by another way", async () => {
    const { address } = await newInbox();
    const own = `Message-ID: ${newMessageId()}`;
    const first = await threadOf(address, [own]);
    expect(
      await threadOf(address, ["Received: from list.test by relay.test; 1 Jan 2026 00:00:00 +0000", own]),
    ).toBe(first);
  });
});

describe("a message that we send", () => {
  const [a, b] = ["<a@client.test>", "<b@client.test>"];
  test.each([
    ["first", { "In-Reply-To": a, References: `${a} ${b}` }],
    ["last", { References: `${a} ${b}`, "in-reply-to": a }],
    ["alone", { "In-Reply-To": a }],
  ])("joins the thread that its In-Reply-To names, given %s", async (_, headers) => {
    const { address } = await newInbox();
    const thread = await threadOf(address, [`Message-ID: ${a}`]);
    await threadOf(address, [`Message-ID: ${b}`]);
    const { body } = await scene.service.call("POST", "/v1/emails", {
      from: { email: address },
      to: [{ email: "ada@client.test" }],
      subject: "Hi",
      text: "x",
      headers,
    });
    expect((await scene.service.message(body.id, "delivered")).threadId).toBe(thread);
  });
});

describe("messages that name an unknown id are in one thread if", () => {
  const CONVERSATIONS = 20;
  const MAILS = 4;

  const item = (address: string, parent: string) => ({
    from: { email: address },
    to: [{ email: "ada@client.test" }],
    subject: "Ticket",
    text: "x",
    headers: { References: `<root@else.test> ${parent}` },
  });
  const sent = async (id: string) => (await scene.service.call("GET", `/v1/emails/${id}`)).body.threadId;
  const WAYS: readonly [string, (address: string, id: string, parent: string) => Promise<string[]>][] = [
    [
      "they are sent at once",
      (address, _, parent) =>
        Promise.all(
          Array.from({ length: MAILS }, async () =>
            sent((await scene.service.call("POST", "/v1/emails", item(address, parent))).body.id),
          ),
        ),
    ],
    [
      "they are sent in one batch",
      async (address, _, parent) => {
        const emails = Array.from({ length: MAILS }, () => item(address, parent));
        const { body } = await scene.service.call("POST", "/v1/emails/batch", { emails });
        return Promise.all(body.data.map(({ id }: { id: string }) => sent(id)));
      },
    ],
    [
      "they are simulated at once",
      (_, inboxId, parent) =>
        Promise.all(
          Array.from({ length: MAILS }, async () => {
            const mail = { inboxId, text: "x", inReplyTo: parent };
            return (await scene.service.call("POST", "/v1/inbound/simulate", mail)).body.threadId;
          }),
        ),
    ],
  ];
  test.each([...WAYS])("%s", async (_, threadsOf) => {
    for (let conversation = 0; conversation < CONVERSATIONS; conversation++) {
      const { address, id } = await newInbox();
      const threads = await threadsOf(address, id, newMessageId());
      expect(threads).toEqual(Array(MAILS).fill(expect.stringMatching(/^thr_/)));
      expect(new Set(threads).size).toBe(1);
      const shown = (await scene.service.call("GET", `/v1/inboxes/${id}/threads`)).body.data;
      expect(shown).toMatchObject([{ id: threads[0], messageCount: MAILS }]);
    }
  });

  test("the nearest id that messages of a batch name is that of an earlier one, of the inbox, or of neither", async () => {
    const { address } = await newInbox();
    const [known, first, second] = [newMessageId(), newMessageId(), newMessageId()];
    const old = await threadOf(address, [`Message-ID: ${known}`]);
    const naming = (References: string) => ({ ...item(address, ""), headers: { References } });
    const emails = [first, `${known} ${first}`, `${first} ${known} ${second}`, second, newMessageId()].map(
      naming,
    );
    const { body } = await scene.service.call("POST", "/v1/emails/batch", { emails });
    const threads = await Promise.all(body.data.map(({ id }: { id: string }) => sent(id)));
    expect(threads.slice(0, 4)).toEqual([threads[0], threads[0], old, old]);
    expect(new Set([old, threads[0], threads[4]]).size).toBe(3);
  });
});

describe("a message that arrives before its parent", () => {
  test("a message that arrives before its parent is joined by its parent", async () => {
    const { address } = await newInbox();
    const [parent, child] = [newMessageId(), newMessageId()];
    const first = await threadOf(address, [`Message-ID: ${child}`, `In-Reply-To: ${parent}`]);
    expect(await threadOf(address, [`Message-ID: ${parent}`])).toBe(first);
  });

  test("a message that arrives before its parent is joined by its siblings, even if the parent never comes", async () => {
    const { address } = await newInbox();
    const [root, left, right] = [newMessageId(), newMessageId(), newMessageId()];
    const first = await threadOf(address, [`References: ${root} ${left}`]);
    expect(await threadOf(address, [`References: ${root} ${right}`])).toBe(first);
  });

  test("a message that arrives before its parent is not joined by messages that name another id, or in another inbox", async () => {
    const [here, elsewhere] = [await newInbox(), await newInbox()];
    const parent = newMessageId();
    const first = await threadOf(here.address, [`In-Reply-To: ${parent}`]);
    expect(await threadOf(here.address, [`In-Reply-To: ${newMessageId()}`])).not.toBe(first);
    expect(await threadOf(elsewhere.address, [`In-Reply-To: ${parent}`])).not.toBe(first);
  });

  test("shares a thread with it and its siblings, also if they arrive together, as after an outage", async () => {
    const { address } = await newInbox();
    const conversations = Array.from({ length: 30 }, async () => {
      const parent = newMessageId();
      const letters = [[`Message-ID: ${parent}`], [`In-Reply-To: ${parent}`], [`References: ${parent}`]];
      return new Set(await Promise.all(letters.map((headers) => threadOf(address, headers)))).size;
    });
    expect(await Promise.all(conversations)).toEqual(conversations.map(() => 1));
  });

  test("a message that arrives before its parent leaves the parent in the thread of the parent's own references", async () => {
    const { address } = await newInbox();
    const [root, parent] = [newMessageId(), newMessageId()];
    const old = await threadOf(address, [`Message-ID: ${root}`]);
    const early = await threadOf(address, [`In-Reply-To: ${parent}`]);
    expect(early).not.toBe(old);
    expect(await threadOf(address, [`Message-ID: ${parent}`, `References: ${root}`])).toBe(old);
  });

  test("a message that arrives before its parent is remembered by a limited number of its nearest references", async () => {
    const { id, address } = await newInbox();
    const references = Array.from({ length: MAX_REMEMBERED_REFERENCES + 1 }, () => newMessageId());
    const first = await threadOf(address, [`References: ${references.join("\r\n ")}`]);
    const row = await scene.service.app.db.first<{ n: number }>(
      "SELECT count(*) AS n FROM thread_references WHERE inbox_id = ?",
      [id],
    );
    expect(row?.n).toBe(MAX_REMEMBERED_REFERENCES);
    expect(await threadOf(address, [`Message-ID: ${references[1]}`])).toBe(first);
    expect(await threadOf(address, [`Message-ID: ${references[0]}`])).not.toBe(first);
  });

  test("a message of ours is also joined by the parent that it names and that arrives later", async () => {
    const { address } = await newInbox();
    const parent = newMessageId();
    const sent = await scene.service.call("POST", "/v1/emails", {
      from: { email: address },
      to: [{ email: "ada@client.test" }],
      subject: "Re: x",
      text: "x",
      headers: { "in-reply-to": parent },
    });
    const { threadId } = (await scene.service.call("GET", `/v1/emails/${sent.body.id}`)).body;
    expect(await threadOf(address, [`Message-ID: ${parent}`])).toBe(threadId);
  });
});

describe("hostile references", () => {
  test.each([
    ["ten thousand ids, the known one first", (known: string) => [known, ...ids(9_999)], true],
    ["ten thousand ids, the known one last", (known: string) => [...ids(9_999), known], true],
    ["an id of 1 MB", (known: string) => [`<${"x".repeat(1_000_000)}@a.test>`, known], true],
    ["control characters", (known: string) => ["<\x01\x1b[2J@a.test>", known], true],
    ["unclosed brackets", (known: string) => ["<".repeat(5_000), known], true],
  ])("%s do no harm", async (_, named, joins) => {
    const { address } = await newInbox();
    const known = newMessageId();
    const thread = await threadOf(address, [`Message-ID: ${known}`]);
    const references = named(known).join("\r\n ");
    expect((await threadOf(address, [`References: ${references}`])) === thread).toBe(joins);
  });

  test("a NUL is refused before anything is read", async () => {
    const { address } = await newInbox();
    const reply = await deliver(scene.service, { to: address, headers: ["References: <a\0b@a.test>"] });
    expect(reply).toStartWith("550 5.6.0");
  });

  test("a forged copy of a Message-ID does not draw later answers out of the first message's thread", async () => {
    const { address } = await newInbox();
    const [known, lure] = [newMessageId(), newMessageId()];
    const first = await threadOf(address, [`Message-ID: ${known}`]);
    const lured = await threadOf(address, [`Message-ID: ${lure}`]);
    expect(await threadOf(address, [`Message-ID: ${known}`, `In-Reply-To: ${lure}`])).toBe(lured);
    expect(await threadOf(address, [`In-Reply-To: ${known}`])).toBe(first);
  });

  test("an id of another inbox or project is ignored", async () => {
    const [mine, neighbour] = [await newInbox(), await newInbox()];
    const sender = await scene.service.call(
      "POST",
      "/v1/senders",
      { name: "Other" },
      { key: scene.service.accountKey },
    );
    const made = await scene.service.call(
      "POST",
      "/v1/api-keys",
      { name: "other", senderId: sender.body.id },
      { key: scene.service.accountKey },
    );
    const key: string = made.body.secret;
    const domain = await verifiedDomain(scene.service, "other.test", key);
    await scene.service.call("PATCH", `/v1/domains/${domain}/receiving`, { enabled: true }, { key });
    await scene.service.call("POST", "/v1/inboxes", { address: "box@other.test" }, { key });
    const [known, awaited] = [newMessageId(), newMessageId()];
    const threads = [
      await threadOf(mine.address, [`Message-ID: ${known}`, `References: ${awaited}`]),
      await threadOf(neighbour.address, [`References: ${known} ${awaited}`]),
    ];
    const letter: Letter = { to: "box@other.test", headers: [`References: ${known} ${awaited}`] };
    expect(await deliver(scene.service, letter)).toStartWith("250");
    const list = await scene.service.call("GET", "/v1/emails", undefined, { key });
    const other = await scene.service.call("GET", `/v1/emails/${list.body.data[0].id}`, undefined, { key });
    threads.push(other.body.threadId);
    expect(new Set(threads).size).toBe(3);
    expect((await scene.service.call("GET", `/v1/threads/${threads[0]}`, undefined, { key })).status).toBe(
      404,
    );
  });
});

function ids(many: number): string[] {
  return Array.from({ length: many }, (_, at) => `<ref${at}@a.test>`);
}
