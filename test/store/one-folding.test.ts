import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { indexMessages } from "../../src/flows/sweep/index-messages.ts";
import { keepRendered } from "../../src/store/contents/message-content.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import { insertMessage, type Message } from "../../src/store/messages.ts";
import { enterAnew } from "../../src/store/search/entering-anew.ts";
import { fold } from "../../src/store/search/folding.ts";
import { removalFromIndex } from "../../src/store/search/index-removal.ts";
import { indexWaiting } from "../../src/store/search/message-index.ts";
import { hasText } from "../../src/store/search/search-terms.ts";
import { containsText } from "../../src/store/search/substring.ts";
import { around } from "../support/around.ts";
import { type Chance, chanceOf } from "../support/chance.ts";
import { type Lists, message, NOW, openLists } from "../support/lists.ts";
import { asBefore, enterAsBefore, foundAsBefore } from "../support/older-index.ts";
import { comparedAs, type Letters, lettersBy, spelledBy } from "../support/spellings.ts";
import { reason } from "../support/reason.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

const subjectOnly = (subject: string) => ({ subject, from: { email: "" }, to: [], cc: [], bcc: [] });

/** How many of the project's messages the index has by an older rule, or lists as such. */
async function olderOf(senderId: string): Promise<number> {
  const row = await lists.db.first<{ count: number }>(
    "SELECT count(*) AS count FROM messages WHERE sender_id = ? AND position IS NOT NULL AND terms_rule = 1",
    [senderId],
  );
  return row?.count ?? 0;
}

/** Enters anew whatever is left of it, here and in other tests. */
async function allAnew(): Promise<void> {
  while ((await enterAnew(lists.db, 50)) > 0);
}

/** Takes messages out of the index and the database, as retention does. */
async function remove(ids: readonly string[]): Promise<void> {
  const { statements } = await removalFromIndex(lists.db, ids);
  const each = (sql: string): Statement => ({ sql, args: [JSON.stringify(ids)] });
  await lists.db.write([
    ...statements,
    each("DELETE FROM message_content WHERE message_id IN (SELECT value FROM json_each(?))"),
    each("DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))"),
  ]);
}

describe("one folding serves all lists", () => {
  test("a text stands in a message where it stands in a contact, and however either is spelled", async () => {
    const chance = chanceOf(7);
    for (let round = 0; round < 1500; round++) {
      const letters = lettersBy(chance, 6);
      const begin = chance.below(4);
      const part = chance.happens(0.3)
        ? lettersBy(chance, 1 + chance.below(2))
        : letters.slice(begin, begin + 3);
      const [text, q] = [spelledBy(chance, letters), spelledBy(chance, part)];
      const { sql, args } = containsText(["text"], q);
      const row = await lists.db.first(`SELECT 1 FROM (SELECT ? AS text) WHERE ${sql}`, [text, ...args]);
      const expected = comparedAs(letters).includes(comparedAs(part));
      expect([text, q, hasText(subjectOnly(text), q), row !== null]).toEqual([text, q, expected, expected]);
    }
  });

  test("every letter that has a case is one with the same letters in both", async () => {
    const cased = Array.from({ length: 0x1ffff }, (_, at) => at)
      .filter((at) => at < 0xd800 || at > 0xdfff)
      .map((at) => String.fromCodePoint(at))
      .filter((letter) => letter.toLowerCase() !== letter || letter.toUpperCase() !== letter)
      // Those that are other letters in the one form of Unicode that a text has are never met.
      .filter((letter) => letter.normalize("NFC") === letter && !/\p{M}/u.test(letter));
    const one = new Map<string, string[]>();
    for (const letter of cased) one.set(fold(letter), [...(one.get(fold(letter)) ?? []), letter]);
    const all = JSON.stringify(cased);
    for (const letter of cased.filter(
      (_, at) => at % 7 === 0 || (one.get(fold(cased[at] ?? ""))?.length ?? 0) > 2,
    )) {
      const { sql, args } = containsText(["j.value"], letter);
      const rows = await lists.db.all<{ value: string }>(`SELECT j.value FROM json_each(?) j WHERE ${sql}`, [
        all,
        ...args,
      ]);
      const expected = cased.filter((other) => fold(other).includes(fold(letter)));
      expect([letter, rows.map(({ value }) => value)]).toEqual([letter, expected]);
    }
  });

  const rows: readonly [subject: string, q: string][] = [
    ["Rechnung Hauptstraße 5", "HAUPTSTRASSE"],
    ["Rechnung Hauptstrasse 5", "straße"],
    ["Rezervasyon İstanbul", "istanbul"],
    ["rezervasyon istanbul", "İSTANBUL"],
    ["Diyarbakır", "DIYARBAKIR"],
    ["Jose\u0301 Pe\u0301rez", "josé pér"],
    ["ΕΛΛΗΝΙΚΟΣ", "ελληνικός".normalize("NFD").replace("\u0301", "")],
    ["Soﬁa", "sofia"],
    ["5 \u00b5m", "5 \u03bcm"],
    ["aß", "ASS"],
    ["ass", "aß"],
  ];
  for (const [subject, q] of rows)
    for (const [state, enter] of [
      ["while it waits for the index", async () => undefined],
      ["in the index", () => lists.index()],
      [
        "entered by an older program, entered anew",
        async () => {
          await enterAsBefore(lists.db, 100);
          await allAnew();
        },
      ],
    ] as const)
      test(`${q} finds ${subject}, ${state}`, async () => {
        const senderId = await lists.project();
        const given = message(senderId, { subject });
        await lists.store([message(senderId), given]);
        await enter();
        expect(await lists.paged(senderId, { q }, 5)).toEqual([given.id]);
        expect(await lists.paged(senderId, { q, direction: "outbound" }, 5)).toEqual([given.id]);
      });
});

describe("what an older program has entered", () => {
  const SUBJECT = "Hauptstraße";
  const stored = async (count: number, given: Partial<Message> = {}) => {
    const senderId = await lists.project();
    const messages = Array.from({ length: count }, () => message(senderId, { subject: SUBJECT, ...given }));
    await allAnew();
    await lists.db.write(messages.flatMap((one) => insertMessage(one, { body: null }, [])));
    await enterAsBefore(lists.db, count);
    return { senderId, ids: messages.map(({ id }) => id).toReversed() };
  };
  const found = (senderId: string, q = "HAUPTSTRASSE") => lists.paged(senderId, { q }, 50);

  test("is found as it was until it is entered anew, the newest first, so many at a time", async () => {
    const { senderId, ids } = await stored(7);
    expect([await found(senderId), await found(senderId, "hauptstraße")]).toEqual([[], ids]);
    expect(await enterAnew(lists.db, 3)).toBe(3);
    expect([await found(senderId), await found(senderId, "hauptstraße")]).toEqual([ids.slice(0, 3), ids]);
    expect([
      await enterAnew(lists.db, 3),
      await enterAnew(lists.db, 3),
      await enterAnew(lists.db, 3),
    ]).toEqual([3, 1, 0]);
    expect([await found(senderId), await found(senderId, "hauptstraße")]).toEqual([ids, ids]);
  });

  test("is entered anew in the turns of the index", async () => {
    const { senderId, ids } = await stored(450);
    await indexMessages(lists.db);
    expect(await olderOf(senderId)).toBe(50);
    await indexMessages(lists.db);
    expect(await found(senderId)).toEqual(ids);
  });

  test("is a hundred messages of a turn in which much else enters, not one more", async () => {
    const { senderId } = await stored(101);
    await lists.store(Array.from({ length: 51 }, () => message(senderId)));
    await indexMessages(lists.db);
    expect(await olderOf(senderId)).toBe(1);
  });

  test("is left alone where it is ASCII", async () => {
    const { senderId, ids } = await stored(3, { subject: "Hauptstrasse" });
    expect(await enterAnew(lists.db, 10)).toBe(0);
    expect([await olderOf(senderId), await found(senderId, "straße")]).toEqual([3, ids]);
  });

  for (const [name, subject] of [
    ["a NUL", "a\0ß"],
    ["half of a surrogate pair", "\ud83dß"],
    ["letters of one folding alone", "Müller"],
  ] as const)
    test(`with ${name} in its subject is entered anew once`, async () => {
      await stored(1, { subject });
      expect([await enterAnew(lists.db, 10), await enterAnew(lists.db, 10)]).toEqual([1, 0]);
    });

  test("is entered anew whole where a program died before the commit", async () => {
    const { senderId, ids } = await stored(4);
    const dying: Db = { ...around(lists.db), write: () => Promise.reject(new Error("killed")) };
    expect(String(await reason(enterAnew(dying, 10)))).toContain("killed");
    expect([await found(senderId), await found(senderId, SUBJECT)]).toEqual([[], ids]);
    await enterAnew(lists.db, 10);
    expect(await found(senderId)).toEqual(ids);
  });

  test("is entered anew by two processes at once, and listed once", async () => {
    const { senderId, ids } = await stored(60);
    const other = await lists.another();
    try {
      await lists.caughtUp(other);
      const overtaken: Db = {
        ...around(other),
        async write(statements) {
          await enterAnew(lists.db, 20);
          return other.write(statements);
        },
      };
      for (let turn = 0; turn < 8; turn++) await enterAnew(overtaken, 15);
    } finally {
      await other.close();
    }
    await lists.caughtUp();
    expect([
      await olderOf(senderId),
      await found(senderId),
      await lists.paged(senderId, { q: SUBJECT }, 7),
    ]).toEqual([0, ids, ids]);
  });

  const render = (senderId: string, id: string, subject: string): Statement[] =>
    keepRendered(senderId, id, { subject, body: null }, NOW);

  test("and gets another subject between the look and the write is entered by that one alone", async () => {
    const { senderId, ids } = await stored(1);
    const late: Db = {
      ...around(lists.db),
      async write(statements) {
        await lists.db.write(render(senderId, ids[0] ?? "", "Fußweg"));
        return lists.db.write(statements);
      },
    };
    await enterAnew(late, 10);
    expect(await lists.waitingOf(senderId)).toBe(1);
    await lists.index();
    expect([await found(senderId), await found(senderId, "FUSSWEG")]).toEqual([[], ids]);
    // What it has no more, nobody could take out again.
    expect(await lists.listedBy(senderId, "ass")).toBe(0);
  });

  test("and is entered by an older program under another subject between the look and the write is entered anew", async () => {
    const { senderId, ids } = await stored(1);
    const late: Db = {
      ...around(lists.db),
      async write(statements) {
        await lists.db.write(render(senderId, ids[0] ?? "", "Fußweg"));
        await enterAsBefore(lists.db, 10);
        return lists.db.write(statements);
      },
    };
    await enterAnew(late, 10);
    await enterAnew(lists.db, 10);
    expect(await found(senderId, "FUSSWEG")).toEqual(ids);
  });

  test("and goes between the look and the write leaves nothing behind in the index", async () => {
    const { senderId, ids } = await stored(1);
    const late: Db = {
      ...around(lists.db),
      async write(statements) {
        await remove(ids);
        return lists.db.write(statements);
      },
    };
    await enterAnew(late, 10);
    expect(await lists.listedBy(senderId, "ass")).toBe(0);
  });

  test("under another subject, though this one entered it first, is entered anew", async () => {
    const senderId = await lists.project();
    const given = message(senderId, { subject: SUBJECT });
    await lists.db.write(insertMessage(given, { body: null }, []));
    await lists.index();
    expect(await enterAnew(lists.db, 10)).toBe(0);
    await lists.db.write(render(senderId, given.id, "Fußweg"));
    await enterAsBefore(lists.db, 100);
    expect(await found(senderId, "FUSSWEG")).toEqual([]);
    await allAnew();
    expect(await found(senderId, "FUSSWEG")).toEqual([given.id]);
  });

  for (const [name, prepare] of [
    ["has been entered anew", allAnew],
    ["waits to be", async () => undefined],
  ] as const)
    test(`and ${name} leaves nothing behind in the index when it goes`, async () => {
      const { senderId, ids } = await stored(3);
      const terms = ["aße", "ass", "sse", "aup", "direction=outbound"];
      const listed = () => Promise.all(terms.map((term) => lists.listedBy(senderId, term)));
      await prepare();
      expect((await listed()).slice(-2)).toEqual([3, 3]);
      await remove(ids);
      expect(await listed()).toEqual([0, 0, 0, 0, 0]);
    });

  test("and what this one enters is found by an older program", async () => {
    const { senderId, ids } = await stored(2);
    const given = message(senderId, { subject: SUBJECT });
    await lists.store([given]);
    await lists.index();
    await allAnew();
    expect(await foundAsBefore(lists.db, senderId, "ptstraße")).toEqual(new Set([given.id, ...ids]));
  });

  test("is what the migration finds", async () => {
    const before = await openLists();
    try {
      const senderId = await before.project();
      const given = message(senderId, { subject: SUBJECT });
      for (const sql of [
        "DROP TRIGGER messages_reenter",
        "DROP INDEX messages_older_terms",
        "ALTER TABLE messages DROP COLUMN terms_rule",
        "DELETE FROM schema_migrations WHERE version = 18",
      ])
        await before.db.migrate([{ sql, args: [] }]);
      await before.store([given]);
      await enterAsBefore(before.db, 10);
      expect(await migrate(before.db, NOW)).toEqual([18]);
      // A start waits for none of it.
      expect(await before.paged(senderId, { q: "STRASSE" }, 5)).toEqual([]);
      await indexMessages(before.db);
      expect(await before.paged(senderId, { q: "STRASSE" }, 5)).toEqual([given.id]);
    } finally {
      await before.remove();
    }
  });
});

interface Kept {
  letters: Letters;
  subject: string;
}

/** What has happened to the messages of one project: model of what is found. */
interface World {
  chance: Chance;
  senderId: string;
  kept: Map<string, Kept>;
}

const HAPPENINGS: readonly [(world: World) => Promise<unknown>, ...((world: World) => Promise<unknown>)[]] = [
  async ({ chance, senderId, kept }) => {
    const letters = lettersBy(chance, 8);
    const address = { email: "x@y.q" };
    const given = message(senderId, { from: address, to: [address], subject: spelledBy(chance, letters) });
    await lists.db.write(insertMessage(given, { body: null }, []));
    kept.set(given.id, { letters, subject: given.subject });
  },
  ({ chance }) => indexWaiting(lists.db, 1 + chance.below(4)),
  ({ chance }) => enterAsBefore(lists.db, 1 + chance.below(4)),
  ({ chance }) => enterAnew(lists.db, 1 + chance.below(3)),
  async (world) => {
    const { chance, senderId, kept } = world;
    const letters = lettersBy(chance, 8);
    const subject = spelledBy(chance, letters);
    const id = [...kept.keys()][chance.below(kept.size)];
    if (id === undefined) return;
    await lists.db.write(keepRendered(senderId, id, { subject, body: null }, NOW));
    const [row] = await lists.db.all<{ subject: string }>("SELECT subject FROM messages WHERE id = ?", [id]);
    // The first rendering is kept, no other.
    if (row?.subject === subject) kept.set(id, { letters, subject });
  },
  async ({ chance, kept }) => {
    const id = [...kept.keys()][chance.below(kept.size)];
    if (id === undefined || chance.happens(0.5)) return;
    await remove([id]);
    kept.delete(id);
  },
  // Between the look and the write of one turn others happen.
  async (world) => {
    const { chance } = world;
    const late: Db = {
      ...around(lists.db),
      async write(statements) {
        await chance.pick(HAPPENINGS)(world);
        return lists.db.write(statements);
      },
    };
    await enterAnew(late, 1 + chance.below(3));
  },
  ({ chance }) =>
    enterAnew(
      { ...around(lists.db), write: () => Promise.reject(new Error("killed")) },
      chance.below(3),
    ).catch(() => undefined),
];

/** Looks for a part of one of the texts, in some spelling. */
async function look({ chance, senderId, kept }: World, whole: boolean): Promise<void> {
  const all = [...kept].toReversed();
  const some = all[chance.below(all.length)]?.[1];
  if (some === undefined) return;
  const begin = chance.below(5);
  const part = some.letters.slice(begin, begin + 1 + chance.below(4));
  const q = spelledBy(chance, part);
  const expected = all.filter(([, { letters }]) => comparedAs(letters).includes(comparedAs(part)));
  const before = expected.filter(([, { subject }]) => asBefore(subject).includes(asBefore(q)));
  const listed = await lists.paged(senderId, { q }, 3);
  const ids = (of: typeof expected) => of.map(([id]) => id);
  // Of what is not entered anew yet, each at most once, in its order, and all that an older program found.
  expect([q, listed]).toEqual([q, ids(expected).filter((id) => listed.includes(id))]);
  expect([q, ids(before).filter((id) => !listed.includes(id))]).toEqual([q, []]);
  if (whole) expect([q, listed]).toEqual([q, ids(expected)]);
}

describe("whatever happens, a message is found by any spelling once it is entered anew, and never twice", () => {
  for (let seed = 1; seed <= 8; seed++)
    test(`seed ${seed}`, async () => {
      const chance = chanceOf(seed);
      const world: World = { chance, senderId: await lists.project(), kept: new Map() };
      for (let step = 0; step < 120; step++) {
        await chance.pick(HAPPENINGS)(world);
        if (step % 3 === 0) await look(world, false);
      }
      await lists.index();
      await allAnew();
      for (let time = 0; time < 40; time++) await look(world, true);
    });
});
