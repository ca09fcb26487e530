import { afterAll, beforeAll, describe, expect } from "bun:test";
import { indexMessages, MESSAGES_PER_TURN } from "../../src/flows/sweep/index-messages.ts";
import type { Db, Value } from "../../src/store/engine/client.ts";
import { indexWaiting, mergeSegments } from "../../src/store/search/message-index.ts";
import { listMessages } from "../../src/store/lists/message-list.ts";
import { storeRendered } from "../../src/store/messages/message-content.ts";
import { insertMessage } from "../../src/store/messages/messages.ts";
import { expressionOf, MAX_TERMS_UNITS, termsOf, termsWanted } from "../../src/store/search/search-terms.ts";
import { test } from "../support/engine-test.ts";
import { around } from "../support/around.ts";
import { type Lists, message, openLists } from "../support/lists.ts";
import { reason } from "../support/reason.ts";

const NOW = 1_700_000_000_000;

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

describe("adding to the index", () => {
  test("two processes that index the same messages at once add each once", async () => {
    const senderId = await lists.project();
    const messages = Array.from({ length: 300 }, () => message(senderId, { subject: "entered twice" }));
    const other = await lists.another();
    try {
      await lists.store(messages);
      await lists.caughtUp(other);
      const overtaken: Db = {
        ...around(other),
        // Between its reads and its write the other process adds messages: the same ones, and later ones.
        async first<Row>(sql: string, args?: Value[]) {
          await indexWaiting(lists.db, 100);
          return other.first<Row>(sql, args);
        },
      };
      for (let turn = 0; turn < 4; turn++) await indexWaiting(overtaken, 50);
    } finally {
      await other.close();
    }
    await lists.caughtUp();
    expect(await lists.waitingOf(senderId)).toBe(0);
    expect(await lists.paged(senderId, { q: "entered twice" }, 50)).toEqual(
      messages.map(({ id }) => id).reverse(),
    );
    const places = await lists.db.all<{ rowid: number }>(
      "SELECT rowid FROM message_terms WHERE message_terms MATCH ?",
      [expressionOf(termsWanted(senderId, { q: "entered twice" }).grams)],
    );
    expect(places).toHaveLength(messages.length);
  });

  test("an indexer that dies before its commit adds nothing, and the next turn adds all", async () => {
    const senderId = await lists.project();
    await lists.store([
      message(senderId, { subject: "survivor" }),
      message(senderId, { subject: "survivor" }),
    ]);
    const dying: Db = { ...around(lists.db), write: () => Promise.reject(new Error("killed")) };
    expect(String(await reason(indexWaiting(dying, 10)))).toContain("killed");
    expect([
      await lists.waitingOf(senderId),
      (await lists.paged(senderId, { q: "survivor" }, 5)).length,
    ]).toEqual([2, 2]);
    await lists.index();
    expect([
      await lists.waitingOf(senderId),
      (await lists.paged(senderId, { q: "survivor" }, 5)).length,
    ]).toEqual([0, 2]);
  });

  test("skips a message whose subject has changed since it was read", async () => {
    const senderId = await lists.project();
    const given = message(senderId, { subject: "draft words" });
    await lists.db.write(insertMessage(given, { body: null }, []));
    const { db } = lists;
    const late: Db = {
      ...around(db),
      async write(statements) {
        const rendered = { subject: "Welcome Ann", body: null };
        await db.write(storeRendered(senderId, given.id, rendered, NOW));
        return db.write(statements);
      },
    };
    await indexWaiting(late, 500);
    expect(await lists.waitingOf(senderId)).toBe(1);
    await lists.index();
    expect(await lists.paged(senderId, { q: "welcome" }, 5)).toEqual([given.id]);
  });

  const ODD: readonly [name: string, subject: string][] = [
    ["a NUL", "a\0bc"],
    ["half of a surrogate pair", "a\ud83dbc"],
    ["nothing", ""],
  ];
  for (const [name, subject] of ODD)
    test(`adds a message with ${name} in its subject`, async () => {
      const senderId = await lists.project();
      await lists.store([message(senderId, { subject })]);
      await lists.index();
      expect(await lists.waitingOf(senderId)).toBe(0);
      expect(await lists.paged(senderId, { from: "news@shop.example" }, 5)).toHaveLength(1);
    });

  test("a turn stops at its limit and leaves the next message waiting", async () => {
    const senderId = await lists.project();
    await lists.index();
    await lists.store(Array.from({ length: MESSAGES_PER_TURN + 1 }, () => message(senderId)));
    const turn = indexMessages(lists.db);
    await turn();
    expect(await lists.waitingOf(senderId)).toBe(1);
    await turn();
    expect(await lists.waitingOf(senderId)).toBe(0);
  });

  test("quiet turns merge the index until nothing is left to merge, without changing results", async () => {
    const senderId = await lists.project();
    const messages = Array.from({ length: 40 }, () => message(senderId, { subject: "piece by piece" }));
    for (const one of messages) {
      await lists.store([one]);
      await lists.index();
    }
    expect(await mergeSegments(lists.db, 16)).toBe(true);
    let writes = 0;
    const counted: Db = {
      ...around(lists.db),
      write(statements) {
        writes++;
        return lists.db.write(statements);
      },
    };
    const turn = indexMessages(counted);
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(await mergeSegments(lists.db, 16)).toBe(false);
    const before = writes;
    await turn();
    expect(writes - before).toBe(0);
    expect(await lists.paged(senderId, { q: "piece by piece" }, 7)).toEqual(
      messages.map(({ id }) => id).reverse(),
    );
  });
});

for (const [state, before] of [
  ["that is not indexed yet", async () => undefined],
  ["that is indexed", () => lists.index()],
] as const)
  test(`the rendered subject of a message ${state} is found and the earlier one is not`, async () => {
    const senderId = await lists.project();
    const given = message(senderId, { subject: "draft words" });
    const [beside, others] = [senderId, await lists.project()].map((id) =>
      message(id, { subject: "beside it" }),
    );
    for (const one of [given, beside, others])
      if (one) await lists.db.write(insertMessage(one, { body: null }, []));
    await before();
    await lists.db.write(storeRendered(senderId, given.id, { subject: "Welcome Ann", body: null }, NOW));
    const again = await lists.db.all<{ id: string }>("SELECT message_id AS id FROM messages_changed");
    expect(again.filter(({ id }) => id !== given.id)).toEqual([]);
    await lists.index();
    // A second rendering is neither stored nor found.
    await lists.db.write(storeRendered(senderId, given.id, { subject: "Goodbye", body: null }, NOW));
    const count = async (q: string) =>
      (await listMessages(lists.db, senderId, { q }, null, 10)).messages.length;
    expect([await count("welcome"), await count("draft"), await count("goodbye")]).toEqual([1, 0, 0]);
  });

test("a message whose subject is rendered during the reads of one page is listed", async () => {
  const senderId = await lists.project();
  const given = message(senderId, { subject: "", from: { email: "moving@shop.example" } });
  await lists.db.write(insertMessage(given, { body: null }, []));
  await lists.index();
  const { db } = lists;
  let looks = 0;
  const racing: Db = {
    ...around(db),
    async all<Row>(sql: string, args?: Value[]) {
      const rows = await db.all<Row>(sql, args);
      const rendered = { subject: "Welcome Ann", body: null };
      if (looks++ === 0) await db.write(storeRendered(senderId, given.id, rendered, NOW));
      return rows;
    },
  };
  const page = await listMessages(racing, senderId, { from: given.from.email }, null, 10);
  expect(page.messages.map(({ id }) => id)).toEqual([given.id]);
});

test("the terms of a message end at their limit, after its sender and direction", () => {
  const to = Array.from({ length: 3000 }, (_, at) => ({ email: `recipient${at}@home.example` }));
  const terms = termsOf(message("snd_x", { to }));
  expect(terms.length).toBeLessThanOrEqual(MAX_TERMS_UNITS);
  expect(terms.length).toBeGreaterThan(MAX_TERMS_UNITS - 50);
  expect(terms).toMatch(/from=[0-9a-f]{16} /);
  expect(terms).not.toContain("news@shop");
});
