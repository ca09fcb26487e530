import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MOVING } from "../../src/core/states.ts";
import { indexMessages, MESSAGES_PER_TURN } from "../../src/flows/sweep/index-messages.ts";
import type { Db, Value } from "../../src/store/engine/client.ts";
import { indexLevels, mergePieces } from "../../src/store/search/index-pieces.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import { firstPlace, indexWaiting } from "../../src/store/search/message-index.ts";
import { listMessages } from "../../src/store/search/message-list.ts";
import { keepRendered } from "../../src/store/contents/message-content.ts";
import { insertMessage, type Message } from "../../src/store/messages.ts";
import {
  expressionOf,
  MAX_TERMS_UNITS,
  milestoneTerm,
  termsOf,
  termsWanted,
} from "../../src/store/search/search-terms.ts";
import { around } from "../support/around.ts";
import { type Lists, message, openLists } from "../support/lists.ts";
import { reason } from "../support/reason.ts";

const NOW = 1_700_000_000_000;

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

/** Works on a database of its own: an upgrade goes over all that is in one. */
async function inItsOwn(work: (upgraded: Lists) => Promise<void>): Promise<void> {
  const upgraded = await openLists();
  try {
    await work(upgraded);
  } finally {
    await upgraded.remove();
  }
}

describe("entering the index", () => {
  test("by two processes at once, over the same messages, enters each once", async () => {
    const senderId = await lists.project();
    const messages = Array.from({ length: 300 }, () => message(senderId, { subject: "entered twice" }));
    const other = await lists.another();
    try {
      await lists.store(messages);
      await lists.caughtUp(other);
      const overtaken: Db = {
        ...around(other),
        // Between its reads and its write the other process enters messages: the same ones, and others behind them.
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
      [expressionOf([], termsWanted(senderId, { q: "entered twice" }).grams)],
    );
    expect(places).toHaveLength(messages.length);
  });

  test("that dies before its commit has entered nothing, and the next turn enters all", async () => {
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

  test("leaves a message alone whose subject became another since it was read", async () => {
    const senderId = await lists.project();
    const given = message(senderId, { subject: "draft words" });
    await lists.db.write(insertMessage(given, { body: null }, []));
    const { db } = lists;
    const late: Db = {
      ...around(db),
      async write(statements) {
        const rendered = { subject: "Welcome Ann", body: null };
        await db.write(keepRendered(senderId, given.id, rendered, NOW));
        return db.write(statements);
      },
    };
    await indexWaiting(late, 500);
    expect(await lists.waitingOf(senderId)).toBe(1);
    await lists.index();
    expect(await lists.paged(senderId, { q: "welcome" }, 5)).toEqual([given.id]);
  });

  /** More than are few of a status, so that the index is asked. */
  async function sent(senderId: string): Promise<Message[]> {
    const messages = Array.from({ length: 1100 }, () => message(senderId, { status: "sent" }));
    await lists.store(messages);
    await lists.index();
    return messages;
  }

  test("leaves a message alone whose status became another since it was read", async () => {
    const senderId = await lists.project();
    const messages = await sent(senderId);
    const late = message(senderId, { status: "queued" });
    await lists.store([late]);
    const { db } = lists;
    const racing: Db = {
      ...around(db),
      async write(statements) {
        await lists.settle([{ ...late, status: "sent" }]);
        return db.write(statements);
      },
    };
    await indexWaiting(racing, 500);
    const wanted = { status: "sent", direction: "outbound" } as const;
    const ids = [late, ...messages.toReversed()].map(({ id }) => id);
    expect([await lists.waitingOf(senderId), await lists.paged(senderId, wanted, 400)]).toEqual([1, ids]);
    await lists.index();
    expect([await lists.waitingOf(senderId), await lists.paged(senderId, wanted, 400)]).toEqual([0, ids]);
  });

  test("of a final state that became another since it was read comes again", async () => {
    const senderId = await lists.project();
    const messages = await sent(senderId);
    const last = messages.at(-1) ?? message(senderId);
    await lists.settle([{ ...last, status: "delivered" }]);
    const { db } = lists;
    const racing: Db = {
      ...around(db),
      async write(statements) {
        await lists.settle([{ ...last, status: "bounced" }]);
        return db.write(statements);
      },
    };
    await indexWaiting(racing, 500);
    await lists.index();
    const found = await lists.listedBy(senderId, "status=bounced");
    expect([found, await lists.paged(senderId, { status: "sent", direction: "outbound" }, 400)]).toEqual([
      1,
      messages
        .slice(0, -1)
        .map(({ id }) => id)
        .reverse(),
    ]);
  });

  const ODD: readonly [name: string, subject: string][] = [
    ["a NUL", "a\0bc"],
    ["half of a surrogate pair", "a\ud83dbc"],
    ["nothing", ""],
  ];
  for (const [name, subject] of ODD)
    test(`enters a message with ${name} in its subject`, async () => {
      const senderId = await lists.project();
      await lists.store([message(senderId, { subject })]);
      await lists.index();
      expect(await lists.waitingOf(senderId)).toBe(0);
      expect(await lists.paged(senderId, { from: "news@shop.example" }, 5)).toHaveLength(1);
    });

  test("of a turn ends at its limit, one message further waits", async () => {
    const senderId = await lists.project();
    await lists.index();
    await lists.store(Array.from({ length: MESSAGES_PER_TURN + 1 }, () => message(senderId)));
    await indexMessages(lists.db);
    expect(await lists.waitingOf(senderId)).toBe(1);
    await indexMessages(lists.db);
    expect(await lists.waitingOf(senderId)).toBe(0);
  });

  test("in quiet turns merges the index to one piece of a size, and all is found as before", async () => {
    const senderId = await lists.project();
    const messages = Array.from({ length: 40 }, () => message(senderId, { subject: "piece by piece" }));
    for (const one of messages) {
      await lists.store([one]);
      await lists.index();
    }
    const most = async () => Math.max(...(await indexLevels(lists.db)).map(({ pieces }) => pieces));
    expect(await most()).toBeGreaterThan(1);
    for (let turn = 0; turn < 50 && (await most()) > 1; turn++) await indexMessages(lists.db);
    expect(await most()).toBe(1);
    expect(await mergePieces(lists.db, 16)).toBe(false);
    expect(await lists.paged(senderId, { q: "piece by piece" }, 7)).toEqual(
      messages.map(({ id }) => id).reverse(),
    );
  });
});

for (const [state, before] of [
  ["that waits for the index", async () => undefined],
  ["that is in the index", () => lists.index()],
] as const)
  test(`of a message ${state}, what a template made of the subject is found, what it was before is not`, async () => {
    const senderId = await lists.project();
    const given = message(senderId, { subject: "draft words" });
    const [beside, others] = [senderId, await lists.project()].map((id) =>
      message(id, { subject: "beside it" }),
    );
    for (const one of [given, beside, others])
      if (one) await lists.db.write(insertMessage(one, { body: null }, []));
    await before();
    await lists.db.write(keepRendered(senderId, given.id, { subject: "Welcome Ann", body: null }, NOW));
    const leaving = await lists.db.all<{ id: string }>("SELECT message_id AS id FROM messages_reentering");
    expect(leaving.filter(({ id }) => id !== given.id)).toEqual([]);
    await lists.index();
    // A second rendering is not kept, nor found.
    await lists.db.write(keepRendered(senderId, given.id, { subject: "Goodbye", body: null }, NOW));
    const count = async (q: string) =>
      (await listMessages(lists.db, senderId, { q }, null, 10)).messages.length;
    expect([await count("welcome"), await count("draft"), await count("goodbye")]).toEqual([1, 0, 0]);
  });

test("a message that leaves the index between the looks of one page, for the subject that its template became, is listed", async () => {
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
      if (looks++ === 0) await db.write(keepRendered(senderId, given.id, rendered, NOW));
      return rows;
    },
  };
  const page = await listMessages(racing, senderId, { from: given.from.email }, null, 10);
  expect(page.messages.map(({ id }) => id)).toEqual([given.id]);
});

test("the states that enter the index later are those that do not move", async () => {
  const row = await lists.db.first<{ sql: string }>(
    "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = 'messages_settle'",
  );
  const left = [...(row?.sql ?? "").matchAll(/NEW\.status <> '(\w+)'/g)].map(([, status]) => status);
  expect(left.sort()).toEqual([...MOVING].sort());
});

test("the terms of a message end at their limit, its sender and direction among them", () => {
  const to = Array.from({ length: 3000 }, (_, at) => ({ email: `recipient${at}@home.example` }));
  const terms = termsOf(message("snd_x", { to }));
  expect(terms.length).toBeLessThanOrEqual(MAX_TERMS_UNITS);
  expect(terms.length).toBeGreaterThan(MAX_TERMS_UNITS - 50);
  expect(terms).toContain("from=news@shop.example");
});

test("an index that counted its rows with time is made anew by the upgrade", () =>
  inItsOwn(async (upgraded) => {
    const { db } = upgraded;
    const senderId = await upgraded.project();
    const messages = Array.from({ length: 30 }, () => message(senderId, { subject: "before it" }));
    await upgraded.store(messages);
    const late = messages.slice(0, 2).map((one) => ({ ...one, status: "complained" as const }));
    await db.write(
      messages.flatMap((one) => [
        { sql: "UPDATE messages SET position = ? WHERE id = ?", args: [firstPlace(one.createdAt), one.id] },
        {
          sql: "INSERT INTO message_terms (rowid, terms) VALUES (?, ?)",
          args: [firstPlace(one.createdAt), termsOf(one)],
        },
      ]),
    );
    await upgraded.settle(late);
    await db.write([{ sql: "DELETE FROM schema_migrations WHERE version = 11", args: [] }]);
    expect(await migrate(db, NOW)).toEqual([11]);
    expect(await upgraded.waitingOf(senderId)).toBe(0);
    expect(await upgraded.paged(senderId, { q: "before it" }, 7)).toEqual(
      messages.map(({ id }) => id).reverse(),
    );
    expect(await upgraded.paged(senderId, { q: "before", status: "complained" }, 7)).toEqual(
      late.map(({ id }) => id).reverse(),
    );
    const rows = await db.all("SELECT rowid FROM message_terms WHERE message_terms MATCH ?", [
      expressionOf([], termsWanted(senderId, { q: "before it" }).grams),
    ]);
    expect(rows).toHaveLength(messages.length);
  }));

test("messages that were in the index before there were milestones get theirs by the upgrade", () =>
  inItsOwn(async (upgraded) => {
    const { db } = upgraded;
    const senderId = await upgraded.project();
    const messages = Array.from({ length: 40 }, (_, at) => {
      const one = message(senderId);
      return { ...one, id: `${one.id.slice(0, -2)}${at % 4 === 1 ? "00" : "0a"}` };
    });
    await upgraded.store(messages);
    await upgraded.index();
    const milestones = async () =>
      db.all<{ rowid: number }>("SELECT rowid FROM message_terms WHERE message_terms MATCH ?", [
        expressionOf([milestoneTerm(senderId)]),
      ]);
    const entered = await milestones();
    expect(entered).toHaveLength(10);
    await db.write([
      ...entered.map(({ rowid }) => ({
        sql: "INSERT INTO message_terms (message_terms, rowid, terms) VALUES ('delete', ?, ?)",
        args: [rowid, milestoneTerm(senderId)],
      })),
      { sql: "DELETE FROM schema_migrations WHERE version = 12", args: [] },
    ]);
    expect(await milestones()).toEqual([]);
    expect(await migrate(db, NOW)).toEqual([12]);
    expect(await milestones()).toEqual(entered);
  }));

test("messages with a long tag or address, of which the index had the beginning alone, enter it anew by the upgrade", () =>
  inItsOwn(async (upgraded) => {
    const { db } = upgraded;
    const senderId = await upgraded.project();
    const tag = (end: string) => ({ name: "n".repeat(150), value: `${"v".repeat(60)}${end}` });
    const email = `${"t".repeat(60)}@${"d".repeat(60)}.${"e".repeat(60)}.${"f".repeat(30)}.test`;
    const messages = [
      message(senderId, { tags: [tag("a")] }),
      message(senderId, { tags: [tag("b")] }),
      message(senderId, { to: [{ email }] }),
      message(senderId),
    ];
    const filters = [{ tag: tag("a") }, { tag: tag("b") }, { to: email.toUpperCase() }];
    await upgraded.store(messages);
    await upgraded.index();
    const places = () => db.all<unknown>("SELECT id, position FROM messages ORDER BY id");
    const found = async () => Promise.all(filters.map((filter) => upgraded.paged(senderId, filter, 5)));
    const [expected, entered] = [await found(), await places()];
    expect(expected).toEqual(messages.slice(0, 3).map(({ id }) => [id]));
    // As the index was: each such term ended after 200 units.
    for (const filter of filters) {
      const [term = ""] = termsWanted(senderId, filter).wholes;
      const rows = await db.all<{ rowid: number }>(
        "SELECT rowid FROM message_terms WHERE message_terms MATCH ?",
        [expressionOf([term])],
      );
      await db.write(
        rows.flatMap(({ rowid }) => [
          {
            sql: "INSERT INTO message_terms (message_terms, rowid, terms) VALUES ('delete', ?, ?)",
            args: [rowid, term],
          },
          {
            sql: "INSERT INTO message_terms (rowid, terms) VALUES (?, ?)",
            args: [rowid, term.replace(/#\w+$/, "")],
          },
        ]),
      );
    }
    expect(await found()).toEqual([[], [], []]);
    await db.write([{ sql: "DELETE FROM schema_migrations WHERE version = 12", args: [] }]);
    expect(await migrate(db, NOW)).toEqual([12]);
    expect([await found(), await places()]).toEqual([expected, entered]);
    expect(await db.all<unknown>("SELECT * FROM messages_reentering")).toEqual([]);
  }));
