import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { idFloor, newId } from "../../src/core/ids.ts";
import { indexOlderMessages } from "../../src/store/message-index.ts";
import { listMessages, MAX_SHORT_TEXT_SCAN, type MessageFilter } from "../../src/store/message-list.ts";
import { insertListed, insertMessage, keepRendered, type Message } from "../../src/store/messages.ts";
import { MAX_TERMS_UNITS, termsOf } from "../../src/store/search-terms.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const NO_CONTENT = {
  html: null,
  text: null,
  headers: {},
  data: null,
  envelope: null,
  auth: null,
  replyText: null,
  rendered: false,
};

let database: TestDatabase;
let made = 0;

beforeAll(async () => {
  database = await testDatabase();
  await database.db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'o@a.example', 0)",
      args: [],
    },
  ]);
});
afterAll(() => database.remove());

/** A project of its own. */
async function project(): Promise<string> {
  const id = newId("snd", NOW);
  await database.db.write([
    {
      sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
        VALUES (?, 'acc', ?, 'p', 'pro', 'new', 0)`,
      args: [id, id],
    },
  ]);
  return id;
}

function message(senderId: string, given: Partial<Message> = {}): Message {
  const createdAt = given.createdAt ?? NOW + made++;
  return {
    id: newId("msg", createdAt),
    senderId,
    direction: "outbound",
    status: "delivered",
    from: { email: "news@shop.example" },
    to: [{ email: "ann@home.example" }],
    cc: [],
    bcc: [],
    replyTo: [],
    subject: "Hello",
    tags: [],
    rfcMessageId: null,
    inReplyTo: null,
    threadId: null,
    inboxId: null,
    templateId: null,
    scheduledAt: null,
    sentAt: null,
    size: 0,
    testMode: false,
    trackOpens: false,
    trackClicks: false,
    unsubscribeLink: false,
    createdAt,
    ...given,
  };
}

async function store(messages: readonly Message[]): Promise<void> {
  for (let at = 0; at < messages.length; at += 500)
    await database.db.write(messages.slice(at, at + 500).flatMap(insertListed));
}

/** All pages of a list, joined. */
async function paged(senderId: string, filter: MessageFilter, rows: number): Promise<string[]> {
  const ids: string[] = [];
  for (let before: string | null = null; ; ) {
    const page = await listMessages(database.db, senderId, filter, before, rows);
    ids.push(...page.map(({ id }) => id));
    if (page.length < rows) return ids;
    before = ids.at(-1) ?? null;
  }
}

describe("a text is found", () => {
  const rows: readonly [name: string, given: Partial<Message>, q: string, found: boolean][] = [
    ["in the subject, in any case", { subject: "Your Invoice" }, "yOUR iNV", true],
    ["within a word", { subject: "Your Invoice" }, "voic", true],
    ["in the sender's address", { from: { email: "Billing@shop.example" } }, "billing@", true],
    ["in the sender's name", { from: { email: "b@s.example", name: "Fritz Müller" } }, "MÜLLER", true],
    ["in a recipient's address", { to: [{ email: "zoe@d.example" }] }, "zoe@d", true],
    ["in a copy's address", { cc: [{ email: "zoe@d.example" }] }, "zoe@d", true],
    ["in a blind copy's name", { bcc: [{ email: "z@d.example", name: "Zoë" }] }, "zoë", true],
    ["with its spaces", { subject: "one two" }, "e t", true],
    ["not over the end of a field", { subject: "one" }, "onenews", false],
    ["not where its parts stand apart", { subject: "abcx bcda" }, "abcd", false],
    ["not in the spelling of a list", { subject: "x" }, "email", false],
    ["% as itself", { subject: "100% off" }, "00% o", true],
    ["% as itself only", { subject: "100x off" }, "00% o", false],
    ["_ as itself only", { subject: "a b c" }, "a_b", false],
    ["quotes as themselves", { subject: `say "it's"` }, `"it's"`, true],
    ["one kind of quote only", { subject: `say "its"` }, "'its'", false],
    ["words of the index's language", { subject: "a AND b OR c* NOT (d)" }, "AND b OR c* NOT (", true],
    ["accents however they are written", { subject: "Cafe\u0301 Paris" }, "CAFÉ P", true],
    ["beyond the basic plane", { subject: "party 🎉🎊 now" }, "🎉🎊", true],
    ["beyond the basic plane only as it is", { subject: "party 🎉🎊 now" }, "🎊🎉", false],
    ["of two characters", { subject: "Wx yz" }, "x ", true],
    ["of one character", { subject: "日本" }, "本", true],
    ["of two characters that are not there", { subject: "Wx yz" }, "qq", false],
    ["of 256 characters", { subject: `${"ab1 ".repeat(70)}end` }, "ab1 ".repeat(64), true],
    [
      "of 256 characters, all but the last",
      { subject: `${"ab1 ".repeat(63)}ab1!` },
      "ab1 ".repeat(64),
      false,
    ],
  ];
  for (const [name, given, q, found] of rows)
    test(`${name}: ${found}`, async () => {
      const senderId = await project();
      await store([message(senderId, given)]);
      expect(await listMessages(database.db, senderId, { q }, null, 10)).toHaveLength(found ? 1 : 0);
    });
});

describe("each filter, alone and with others, gives what a look at every message gives", () => {
  const senderIds: string[] = [];
  const stored: Message[] = [];
  const COUNT = 1500;
  beforeAll(async () => {
    senderIds.push(await project(), await project());
    for (let at = 0; at < COUNT; at++)
      stored.push(
        message(senderIds[at % 9 === 0 ? 1 : 0] ?? "", {
          // Several in a millisecond.
          createdAt: NOW + Math.floor(at / 7),
          status: at % 13 === 0 ? "bounced" : "delivered",
          direction: at % 5 === 0 ? "inbound" : "outbound",
          from: { email: `From${at % 3}@shop.example` },
          to: [{ email: `to${at % 11}@home.example`, name: "To" }],
          cc: at % 4 === 0 ? [{ email: "copy@home.example" }] : [],
          subject: `Subject ${at % 17} of ${at}`,
          tags: [{ name: "Kind", value: `v:${at % 6}` }],
        }),
      );
    // Committed out of the order of their ids: by a little, and by hours.
    const shuffled = stored.toSorted((a, b) => (a.id.slice(-6) < b.id.slice(-6) ? -1 : 1));
    const old = message(senderIds[0] ?? "", { createdAt: NOW - 9_000_000, subject: "Subject 3 of old" });
    await store([...shuffled, old]);
    stored.push(old);
    stored.sort((a, b) => (a.id < b.id ? 1 : -1));
  });

  const filters: readonly [name: string, filter: MessageFilter, expected: (message: Message) => boolean][] = [
    ["none", {}, () => true],
    ["status", { status: "bounced" }, ({ status }) => status === "bounced"],
    ["direction", { direction: "inbound" }, ({ direction }) => direction === "inbound"],
    ["from, in any case", { from: "fROM1@shop.example" }, ({ from }) => from.email.startsWith("From1@")],
    ["a part of from", { from: "rom1@shop.example" }, () => false],
    ["to", { to: "TO7@home.example" }, ({ to }) => to[0]?.email === "to7@home.example"],
    ["to, a copy", { to: "copy@home.example" }, ({ cc }) => cc.length > 0],
    ["tag", { tag: { name: "Kind", value: "v:2" } }, ({ tags }) => tags[0]?.value === "v:2"],
    ["tag in another case", { tag: { name: "kind", value: "v:2" } }, () => false],
    ["after", { after: NOW + 100 }, ({ createdAt }) => createdAt >= NOW + 100],
    ["before", { before: NOW + 100 }, ({ createdAt }) => createdAt < NOW + 100],
    ["q", { q: "ject 3 OF" }, ({ subject }) => subject.startsWith("Subject 3 of")],
    ["q of two", { q: "99" }, ({ subject }) => subject.includes("99")],
    ["q and before", { q: "ject 3 of", before: NOW }, ({ subject }) => subject.endsWith("old")],
    [
      "q, status, direction, from, tag, after",
      {
        q: "SUBJECT",
        status: "delivered",
        direction: "outbound",
        from: "from2@shop.example",
        tag: { name: "Kind", value: "v:5" },
        after: NOW + 20,
      },
      (of) =>
        of.status === "delivered" &&
        of.direction === "outbound" &&
        of.from.email.startsWith("From2@") &&
        of.tags[0]?.value === "v:5" &&
        of.createdAt >= NOW + 20,
    ],
    [
      "q and a status of more than a thousand",
      { q: "subject 1", status: "delivered" },
      ({ subject, status }) => subject.startsWith("Subject 1") && status === "delivered",
    ],
  ];
  for (const [name, filter, expected] of filters)
    for (const rows of [3, 50])
      test(`${name}, pages of ${rows}: newest first, none left out, none twice`, async () => {
        for (const senderId of senderIds) {
          const wanted = stored
            .filter((one) => one.senderId === senderId && expected(one))
            .map(({ id }) => id);
          expect(await paged(senderId, filter, rows)).toEqual(wanted);
        }
      });
});

test("a short text is looked for among the newest 4000 messages of a page, not one further", async () => {
  const senderId = await project();
  const first = message(senderId, { subject: "qq" });
  const rest = Array.from({ length: MAX_SHORT_TEXT_SCAN }, () => message(senderId));
  const last = rest.pop();
  await store([first, ...rest]);
  const found = () => listMessages(database.db, senderId, { q: "QQ" }, null, 10);
  expect((await found()).map(({ id }) => id)).toEqual([first.id]);
  if (last !== undefined) await store([last]);
  expect(await found()).toEqual([]);
});

test("what a template made of the subject is found, what it was before is not", async () => {
  const senderId = await project();
  const given = message(senderId, { subject: "draft words" });
  await database.db.write(insertMessage(given, NO_CONTENT, [], null));
  await database.db.write(
    keepRendered(senderId, given.id, { subject: "Welcome Ann", html: null, text: null }),
  );
  // A second rendering is not kept, nor found.
  await database.db.write(keepRendered(senderId, given.id, { subject: "Goodbye", html: null, text: null }));
  const count = async (q: string) => (await listMessages(database.db, senderId, { q }, null, 10)).length;
  expect([await count("welcome"), await count("draft"), await count("goodbye")]).toEqual([1, 0, 0]);
});

test("messages stored before there was an index are entered into it, once", async () => {
  const senderId = await project();
  const old = Array.from({ length: 300 }, () => message(senderId, { subject: "ancient history" }));
  const [insert] = insertListed(message(senderId));
  expect(insert?.sql).toContain("INTO messages");
  await database.db.write(
    old.flatMap((one) => {
      const [row] = insertListed(one);
      return row === undefined
        ? []
        : [row, { sql: "UPDATE messages SET position = NULL WHERE id = ?", args: [one.id] }];
    }),
  );
  expect(await paged(senderId, { q: "ancient" }, 50)).toEqual([]);
  await indexOlderMessages(database.db);
  await indexOlderMessages(database.db);
  expect(await paged(senderId, { q: "ancient" }, 50)).toEqual(old.map(({ id }) => id).reverse());
});

test("messages that share a place in the index are all listed", async () => {
  const senderId = await project();
  const messages = Array.from({ length: 40 }, () => message(senderId, { createdAt: NOW - 5_000_000 }));
  await store(messages);
  const position = 16 * (NOW - 5_000_000);
  for (const one of messages)
    await database.db.write([
      { sql: "UPDATE messages SET position = ? WHERE id = ?", args: [position, one.id] },
      { sql: "INSERT INTO message_terms (rowid, terms) VALUES (?, ?)", args: [position, termsOf(one)] },
    ]);
  expect(await paged(senderId, { direction: "outbound" }, 7)).toEqual(messages.map(({ id }) => id).reverse());
});

test("the terms of a message end at their limit, its sender and direction among them", () => {
  const to = Array.from({ length: 3000 }, (_, at) => ({ email: `recipient${at}@home.example` }));
  const terms = termsOf(message("snd_x", { to }));
  expect(terms.length).toBeLessThanOrEqual(MAX_TERMS_UNITS);
  expect(terms.length).toBeGreaterThan(MAX_TERMS_UNITS - 50);
  expect(terms).toContain("from=news@shop.example");
});

test("a beginning that is no message's id is compared as it is", async () => {
  const senderId = await project();
  await store([message(senderId)]);
  expect(await listMessages(database.db, senderId, { q: "hello" }, idFloor("msg", NOW * 2), 5)).toHaveLength(
    1,
  );
  expect(await listMessages(database.db, senderId, { q: "hello" }, "msg_", 5)).toEqual([]);
});
