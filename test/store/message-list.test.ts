import { afterAll, beforeAll, describe, expect } from "bun:test";
import { idFloor } from "../../src/core/ids.ts";
import type { Db, Value } from "../../src/store/engine/client.ts";
import { removalFromIndex } from "../../src/store/search/index-entries.ts";
import { indexWaiting } from "../../src/store/search/message-index.ts";
import { listMessages, type MessageFilter } from "../../src/store/lists/message-list.ts";
import { matches } from "../../src/store/lists/message-match.ts";
import { MAX_LOOKED_AT } from "../../src/store/lists/message-page.ts";
import type { Message } from "../../src/store/messages/messages.ts";
import { MILESTONES_PER_PAGE } from "../../src/store/lists/message-search.ts";
import { test } from "../support/engine-test.ts";
import { around } from "../support/around.ts";
import { casesHere } from "../support/database.ts";
import { type Lists, message, NOW, openLists, sharingPosition } from "../support/lists.ts";
import { shareOf } from "../support/share.ts";
import { countTurns } from "../support/turns.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

describe("a text search finds a part", () => {
  const rows: readonly [name: string, given: Partial<Message>, q: string, found: boolean][] = [
    ["in the subject, in any case", { subject: "Your Invoice" }, "yOUR iNV", true],
    ["within a word", { subject: "Your Invoice" }, "voic", true],
    ["in the sender's address", { from: { email: "Billing@shop.example" } }, "billing@", true],
    ["in the sender's name", { from: { email: "b@s.example", name: "Fritz Müller" } }, "MÜLLER", true],
    ["in a recipient's address", { to: [{ email: "zoe@d.example" }] }, "zoe@d", true],
    ["in a domain beyond ASCII", { to: [{ email: "zoe@xn--bcher-kva.example" }] }, "e@bÜch", true],
    ["in such a domain as it is stored", { from: { email: "z@xn--bcher-kva.example" } }, "xn--bcher", true],
    ["in a copy's address", { cc: [{ email: "zoe@d.example" }] }, "zoe@d", true],
    ["in a blind copy's name", { bcc: [{ email: "z@d.example", name: "Zoë" }] }, "zoë", true],
    ["with its spaces", { subject: "one two" }, "e t", true],
    ["not over the end of a field", { subject: "one" }, "onenews", false],
    ["not if its parts are apart", { subject: "abcx bcda" }, "abcd", false],
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
    ["of two characters that do not occur", { subject: "Wx yz" }, "qq", false],
    ["of 256 characters", { subject: `${"ab1 ".repeat(70)}end` }, "ab1 ".repeat(64), true],
    [
      "of 256 characters, all but the last",
      { subject: `${"ab1 ".repeat(63)}ab1!` },
      "ab1 ".repeat(64),
      false,
    ],
  ];
  for (const [name, given, q, found] of rows)
    test(`${name}: ${found}, before it is indexed and after`, async () => {
      const senderId = await lists.project();
      expect(matches(message(senderId, given), { q })).toBe(found);
      await lists.store([message(senderId, given)]);
      const rows = async () => (await listMessages(lists.db, senderId, { q }, null, 10)).messages.length;
      const waiting = await rows();
      await lists.index();
      expect([waiting, await rows()]).toEqual(found ? [1, 1] : [0, 0]);
    });
});

const FILTERS: readonly [name: string, filter: MessageFilter, expected: (message: Message) => boolean][] = [
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
    "a status of more than a thousand and direction",
    { status: "delivered", direction: "outbound" },
    ({ status, direction }) => status === "delivered" && direction === "outbound",
  ],
  [
    "q and a status of more than a thousand",
    { q: "subject 1", status: "delivered" },
    ({ subject, status }) => subject.startsWith("Subject 1") && status === "delivered",
  ],
];

/**
 * The messages that are indexed when the lists are read: the first ones in commit order. Also whether their final
 * states came after them.
 */
const STATES: readonly [name: string, indexed: number, settled: "at once" | "later"][] = [
  ["while all wait for the index", 0, "at once"],
  ["with some in the index and some waiting", 0.6, "at once"],
  ["with all in the index", 1, "at once"],
  ["with some in the index, their final states after them", 0.6, "later"],
  ["with all in the index, their final states after them", 1, "later"],
];

for (const [nth, [state, indexed, settled]] of STATES.entries())
  describe(`${state}, each filter, alone and combined, gives the result of checking every message`, () => {
    const senderIds: string[] = [];
    const stored: Message[] = [];
    const COUNT = 1500;
    beforeAll(async () => {
      senderIds.push(await lists.project(), await lists.project());
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
      const shuffled = stored
        .toSorted((a, b) => (a.id.slice(-6) < b.id.slice(-6) ? -1 : 1))
        .map((one) => (settled === "at once" ? one : { ...one, status: "queued" as const }));
      const old = message(senderIds[0] ?? "", { createdAt: NOW - 9_000_000, subject: "Subject 3 of old" });
      await lists.store(shuffled.slice(0, COUNT * indexed));
      await lists.index();
      await lists.store([...shuffled.slice(COUNT * indexed), old]);
      if (indexed === 1) await lists.index();
      if (settled !== "at once") await lists.settle(stored);
      stored.push(old);
      stored.sort((a, b) => (a.id < b.id ? 1 : -1));
    });

    for (const [name, filter, expected] of casesHere(FILTERS, 4, nth))
      for (const rows of shareOf([50, 7], 2, nth + FILTERS.findIndex(([other]) => other === name)))
        test(`${name}, pages of ${rows}: newest first, with each message once`, async () => {
          for (const senderId of senderIds) {
            const wanted = stored
              .filter((one) => one.senderId === senderId && expected(one))
              .map(({ id }) => id);
            expect(await lists.paged(senderId, filter, rows)).toEqual(wanted);
            const matching = stored.filter((one) => one.senderId === senderId && matches(one, filter));
            expect(matching.map(({ id }) => id)).toEqual(wanted);
          }
        });
  });

test("messages that enter the index during paging are listed, each once", async () => {
  const senderId = await lists.project();
  const messages = Array.from({ length: 120 }, () => message(senderId, { subject: "moving" }));
  await lists.store(messages);
  const ids = await lists.paged(senderId, { q: "moving" }, 7, () => indexWaiting(lists.db, 10));
  expect(ids).toEqual(messages.map(({ id }) => id).reverse());
});

test("messages that enter the index between the two reads of one page are listed, each once", async () => {
  const senderId = await lists.project();
  const messages = Array.from({ length: 20 }, () => message(senderId, { subject: "moving" }));
  await lists.store(messages);
  const { db } = lists;
  const racing: Db = {
    ...around(db),
    async all<Row>(sql: string, args?: Value[]) {
      const rows = await db.all<Row>(sql, args);
      await indexWaiting(db, 5);
      return rows;
    },
  };
  const page = await listMessages(racing, senderId, { q: "moving" }, null, 50);
  expect(page.messages.map(({ id }) => id)).toEqual(messages.map(({ id }) => id).reverse());
});

test("a page searches a short text in at most 2000 messages, and the next page continues below them", async () => {
  const senderId = await lists.project();
  const first = message(senderId, { subject: "qq" });
  const rest = Array.from({ length: MAX_LOOKED_AT }, () => message(senderId));
  const last = rest.pop();
  await lists.store([first, ...rest]);
  const found = (before: string | null) => listMessages(lists.db, senderId, { q: "QQ" }, before, 10);
  expect((await found(null)).messages.map(({ id }) => id)).toEqual([first.id]);
  if (last !== undefined) await lists.store([last]);
  const page = await found(null);
  expect(page).toEqual({ messages: [], stoppedAt: rest[0]?.id ?? "" });
  expect((await found(page.stoppedAt)).messages.map(({ id }) => id)).toEqual([first.id]);
});

describe("a short text with another filter, over thousands of messages", () => {
  const wanted = { q: "QQ", from: "from@shop.example" } as const;
  const many = (senderId: string, stepMs: number) =>
    Array.from({ length: 3 * MAX_LOOKED_AT }, (_, at) =>
      message(senderId, {
        from: { email: wanted.from },
        subject: at % 1900 === 7 ? "qq" : "other",
        createdAt: NOW - 9_000_000 + at * stepMs,
      }),
    );
  const steps = [
    ["a millisecond each", 1],
    ["all of one millisecond", 0],
  ] as const;
  for (const [name, stepMs] of casesHere(steps, 2))
    test(`is found to the last one: ${name}`, async () => {
      const senderId = await lists.project();
      const messages = many(senderId, stepMs);
      const expected = messages.filter(({ subject }) => subject === "qq").map(({ id }) => id);
      await lists.store(messages);
      expect(await lists.paged(senderId, wanted, 2)).toEqual(expected.toReversed());
      await lists.index();
      expect(await lists.paged(senderId, wanted, 2)).toEqual(expected.toReversed());
    });
});

test("a value that few messages have is found together with one that all have, while it is few and after", async () => {
  const senderId = await lists.project();
  const rare = (count: number) =>
    Array.from({ length: count }, () => message(senderId, { tags: [{ name: "kind", value: "rare" }] }));
  const stored: Message[] = [];
  for (const count of [199, 1, 1]) {
    stored.push(...rare(count));
    await lists.store(stored.slice(-count));
    await lists.index();
    const wanted = { direction: "outbound", tag: { name: "kind", value: "rare" } } as const;
    expect(await lists.paged(senderId, wanted, 60)).toEqual(stored.map(({ id }) => id).reverse());
  }
});

describe("filters that each match many messages and together almost none", () => {
  /** Every 15th message is a milestone. */
  const asMilestone = (id: string, at: number): string =>
    id.slice(0, -2) + (at % 15 === 7 ? "00" : at % 2 === 0 ? "1a" : "2b");
  const MESSAGES = 900;
  // The oldest one passes all filters. Of the others as many have the sender as have the tag, and none has both.
  const made = (senderId: string, stepMs: number) =>
    Array.from({ length: MESSAGES }, (_, at) => {
      const one = message(senderId, { createdAt: NOW - 90_000_000 + at * stepMs });
      const half = at % 2 === 0;
      return {
        ...one,
        id: asMilestone(one.id, at),
        from: { email: half || at === 0 ? "a@shop.example" : "b@shop.example" },
        tags: [{ name: "kind", value: half && at !== 0 ? "x" : "y" }],
        status: at % 3 === 0 ? ("delivery_delayed" as const) : ("bounced" as const),
        subject: `order ${at} weiß`,
      };
    });
  const wanted = { from: "a@shop.example", tag: { name: "kind", value: "y" } } as const;
  const filters: [string, MessageFilter, (one: Message) => boolean][] = [
    ["sender and tag", wanted, () => true],
    ["and a text of all", { ...wanted, q: "order" }, () => true],
    ["and a text of all, of which there are two foldings", { ...wanted, q: "weiß" }, () => true],
    ["and a text of all in another spelling", { ...wanted, q: "WEISS" }, () => true],
    ["and a status that is not final", { ...wanted, status: "delivery_delayed" }, () => true],
    ["and one that none of them has", { ...wanted, status: "bounced" }, () => false],
    ["and a text of another", { ...wanted, q: "order 77" }, () => false],
  ];
  for (const [nth, [name, filter, hasOldest]] of filters.entries())
    for (const stepMs of shareOf([0, 20, 400], 3, nth))
      test(`${name}, ${stepMs} ms apart: pages end at milestones and miss nothing`, async () => {
        const senderId = await lists.project();
        const messages = made(senderId, stepMs);
        await lists.store(messages);
        await lists.index();
        const expected = messages.slice(0, 1).filter(hasOldest);
        expect(await lists.paged(senderId, filter, 10)).toEqual(expected.map(({ id }) => id));
      });

  test("the first page ends after the fourth milestone, not one message later", async () => {
    const senderId = await lists.project();
    const messages = made(senderId, 400);
    await lists.store(messages);
    await lists.index();
    const milestones = messages.filter(({ id }) => id.endsWith("00")).toReversed();
    const { messages: found, stoppedAt } = await listMessages(lists.db, senderId, wanted, null, 10);
    expect(found).toEqual([]);
    const last = milestones[MILESTONES_PER_PAGE - 1];
    const behind = milestones[MILESTONES_PER_PAGE];
    expect([stoppedAt, last?.id, behind?.id].sort()).toEqual([behind?.id, last?.id, stoppedAt]);
    const next = await listMessages(lists.db, senderId, wanted, stoppedAt, 10);
    expect([next.stoppedAt, stoppedAt].sort()).toEqual([next.stoppedAt, stoppedAt]);
    expect(next.stoppedAt).not.toBe(stoppedAt);
  });

  test("few messages of a text are found at once, however many have the other text", async () => {
    const senderId = await lists.project();
    const messages = made(senderId, 400);
    await lists.store(messages);
    await lists.index();
    const filter = { from: "a@shop.example", q: "order 12" };
    const expected = messages.filter(
      ({ from, subject }) => from.email === filter.from && subject.includes(filter.q),
    );
    const page = await listMessages(lists.db, senderId, filter, null, 50);
    expect(page.messages.map(({ id }) => id)).toEqual(expected.map(({ id }) => id).toReversed());
  });

  test("milestones leave the index with their messages", async () => {
    const senderId = await lists.project();
    const messages = made(senderId, 20);
    await lists.store(messages);
    await lists.index();
    expect(await lists.listedBy(senderId, "milestone=")).toBe(60);
    const ids = messages.map(({ id }) => id);
    const { statements } = await removalFromIndex(lists.db, ids);
    await lists.db.write(statements);
    expect(await lists.listedBy(senderId, "milestone=")).toBe(0);
  });
});

describe("a page reads 2000 messages at most, and the next continues below them", () => {
  /** Stores that many messages that do not match, and an older one that does. */
  const flood = async (made: (senderId: string, wanted: boolean) => Message, indexed: boolean) => {
    const senderId = await lists.project();
    const messages = Array.from({ length: MAX_LOOKED_AT + 1 }, (_, at) => made(senderId, at === 0));
    await lists.store(messages);
    if (indexed) await lists.index();
    return { senderId, ids: messages.map(({ id }) => id) };
  };
  // Each has all search terms but not the text, as an attacker's messages may.
  const subjects = { filter: { q: "abcdefgh ijklmnop" }, wanted: "abcdefgh ijklmnop" };
  const unwanted = "abcdefgh ijklmnox, abcdefgh xjklmnop, xh ijx, gh ix, h ijk";

  test("if the index cannot tell them apart: a text", async () => {
    const { senderId, ids } = await flood(
      (project, isWanted) => message(project, { subject: isWanted ? subjects.wanted : unwanted }),
      true,
    );
    const page = await listMessages(lists.db, senderId, subjects.filter, null, 10);
    expect(page.messages).toEqual([]);
    expect(page.stoppedAt).not.toBe(null);
    expect(await lists.paged(senderId, subjects.filter, 10)).toEqual(ids.slice(0, 1));
  });

  test("if the index cannot tell them apart: a tag with a quote and one with its replacement", async () => {
    const filter = { tag: { name: "by", value: "o_neil" } };
    const { senderId, ids } = await flood(
      (project, isWanted) =>
        message(project, { tags: [{ name: "by", value: `o${isWanted ? "_" : "'"}neil` }] }),
      true,
    );
    const page = await listMessages(lists.db, senderId, filter, null, 10);
    expect(page.messages).toEqual([]);
    expect(page.stoppedAt).not.toBe(null);
    expect(await lists.paged(senderId, filter, 10)).toEqual(ids.slice(0, 1));
  });

  test("if they are not indexed yet", async () => {
    const filter = { from: "one@shop.example" };
    const { senderId, ids } = await flood(
      (project, isWanted) => message(project, isWanted ? { from: { email: filter.from } } : {}),
      false,
    );
    const page = await listMessages(lists.db, senderId, filter, null, 10);
    expect(page).toEqual({ messages: [], stoppedAt: ids[1] ?? "" });
    expect(await lists.paged(senderId, filter, 10)).toEqual(ids.slice(0, 1));
  });

  test("the index distinguishes tags and addresses that are equal in their first 200 characters", async () => {
    const long = (end: string) => ({ name: "n".repeat(250), value: end });
    const { senderId, ids } = await flood(
      (project, isWanted) => message(project, { tags: [long(isWanted ? "this" : "that")] }),
      true,
    );
    const page = await listMessages(lists.db, senderId, { tag: long("this") }, null, 10);
    expect(page.messages.map(({ id }) => id)).toEqual(ids.slice(0, 1));
  });
});

describe("a page compares no more recipients than 2000 usual messages have, and the next continues below them", () => {
  /** About two thousand recipients, as a stranger may name in a message. */
  const crowd = Array.from({ length: 2000 }, (_, at) => ({ email: `someone${at}@example.net` }));
  const MESSAGES = 120;
  const cases: readonly [string, Partial<MessageFilter>][] = [
    ["a text", { q: "zq" }],
    ["a recipient together with a status", { to: "zq@home.example", status: "bounced" }],
    ["a text and a recipient", { q: "zq", to: "zq@home.example" }],
  ];
  for (const [nth, [name, filter]] of cases.entries())
    for (const indexed of casesHere([false, true], 2, nth))
      test(`${name}, ${indexed ? "after indexing" : "before indexing"}`, async () => {
        const senderId = await lists.project();
        const wanted = message(senderId, { to: [{ email: "zq@home.example" }], status: "bounced" });
        const others = Array.from({ length: MESSAGES }, () =>
          message(senderId, { cc: crowd, status: "bounced" }),
        );
        await lists.store([wanted, ...others]);
        if (indexed) await lists.index();
        const { result, turns } = await countTurns(() => listMessages(lists.db, senderId, filter, null, 10));
        const foundByIndex = indexed && filter.to !== undefined && filter.status === undefined;
        if (!foundByIndex) {
          expect(result.messages).toEqual([]);
          expect(result.stoppedAt).not.toBe(null);
          // Other requests have had a turn in between.
          expect(turns).toBeGreaterThan(3);
        }
        expect(await lists.paged(senderId, filter, 10)).toEqual([wanted.id]);
      });
});

test("late messages that share a position in the index are all listed, whichever came first", async () => {
  const senderId = await lists.project();
  await lists.store([message(senderId, { direction: "inbound" })]);
  await lists.index();
  const messages = sharingPosition(
    Array.from({ length: 40 }, () => message(senderId, { createdAt: NOW - 5_000_000 })),
  );
  for (const some of [messages.slice(0, 15), messages.slice(15)]) {
    await lists.store(some);
    await lists.index();
  }
  const places = await lists.db.all(
    "SELECT DISTINCT position FROM messages WHERE sender_id = ? AND direction = 'outbound'",
    [senderId],
  );
  expect(places).toHaveLength(1);
  expect(await lists.paged(senderId, { direction: "outbound", from: "news@shop.example" }, 7)).toEqual(
    messages.map(({ id }) => id).reverse(),
  );
});

test("a prefix that is not a message id is compared as it is", async () => {
  const senderId = await lists.project();
  await lists.store([message(senderId)]);
  const found = async (before: string) =>
    (await listMessages(lists.db, senderId, { q: "hello" }, before, 5)).messages.length;
  expect(await found(idFloor("msg", NOW * 2))).toBe(1);
  expect(await found("msg_")).toBe(0);
});
