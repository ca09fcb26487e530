import { afterAll, beforeAll, describe, expect } from "bun:test";
import { storeRendered } from "../../src/store/messages/message-content.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { insertMessage } from "../../src/store/messages/messages.ts";
import { fold } from "../../src/store/matching/folding.ts";
import { removalFromIndex } from "../../src/store/search/index-entries.ts";
import { indexWaiting } from "../../src/store/search/message-index.ts";
import { hasText } from "../../src/store/search/search-terms.ts";
import { containsText } from "../../src/store/matching/substring.ts";
import { test } from "../support/engine-test.ts";
import { around } from "../support/around.ts";
import { type Chance, chanceOf } from "../support/chance.ts";
import { casesHere } from "../support/database.ts";
import { type Lists, message, NOW, openLists } from "../support/lists.ts";
import { comparedAs, type Letters, lettersBy, spelledBy } from "../support/spellings.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

const subjectOnly = (subject: string) => ({ subject, from: { email: "" }, to: [], cc: [], bcc: [] });

/** Removes messages from the index and the database, as retention does. */
async function remove(ids: readonly string[]): Promise<void> {
  const { statements } = await removalFromIndex(lists.db, ids);
  const each = (sql: string): Statement => ({ sql, args: [JSON.stringify(ids)] });
  await lists.db.write([
    ...statements,
    each("DELETE FROM message_content WHERE message_id IN (SELECT value FROM json_each(?))"),
    each("DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))"),
  ]);
}

describe("case and accent folding is the same in all lists", () => {
  test("a search finds a text in messages if it finds it in contacts, however either is spelled", async () => {
    const chance = chanceOf(7);
    for (const _ of casesHere(Array.from({ length: 1500 }), 10)) {
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

  test("every cased letter is folded to the same letters in both", async () => {
    const cased = Array.from({ length: 0x1ffff }, (_, at) => at)
      .filter((at) => at < 0xd800 || at > 0xdfff)
      .map((at) => String.fromCodePoint(at))
      .filter((letter) => letter.toLowerCase() !== letter || letter.toUpperCase() !== letter)
      // Letters that differ after Unicode normalization of the text never occur.
      .filter((letter) => letter.normalize("NFC") === letter && !/\p{M}/u.test(letter));
    const one = new Map<string, string[]>();
    for (const letter of cased) one.set(fold(letter), [...(one.get(fold(letter)) ?? []), letter]);
    const all = JSON.stringify(cased);
    const asked = cased.filter((letter, at) => at % 7 === 0 || (one.get(fold(letter))?.length ?? 0) > 2);
    for (const letter of casesHere(asked, 10)) {
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
    ["Weiß am Ende", "s am"],
    ["ein Maß", "n mas"],
  ];
  test.each(rows)("a contact named %s is found by %s", async (text, q) => {
    const { sql, args } = containsText(["text"], q);
    expect(
      await lists.db.first(`SELECT 1 FROM (SELECT ? AS text) WHERE ${sql}`, [text, ...args]),
    ).not.toBeNull();
  });
  for (const [subject, q] of rows)
    for (const [state, enter] of [
      ["while it waits for the index", async () => undefined],
      ["in the index", () => lists.index()],
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

interface Kept {
  letters: Letters;
  subject: string;
}

/** A model of one project's messages and of the expected search results. */
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
  async (world) => {
    const { chance, senderId, kept } = world;
    const letters = lettersBy(chance, 8);
    const subject = spelledBy(chance, letters);
    const id = [...kept.keys()][chance.below(kept.size)];
    if (id === undefined) return;
    await lists.db.write(storeRendered(senderId, id, { subject, body: null }, NOW));
    const [row] = await lists.db.all<{ subject: string }>("SELECT subject FROM messages WHERE id = ?", [id]);
    // Only the first rendering is stored.
    if (row?.subject === subject) kept.set(id, { letters, subject });
  },
  async ({ chance, kept }) => {
    const id = [...kept.keys()][chance.below(kept.size)];
    if (id === undefined || chance.happens(0.5)) return;
    await remove([id]);
    kept.delete(id);
  },
  // Other changes happen between the read and the write of one turn.
  async (world) => {
    const { chance } = world;
    const late: Db = {
      ...around(lists.db),
      async write(statements) {
        await chance.pick(HAPPENINGS)(world);
        return lists.db.write(statements);
      },
    };
    await indexWaiting(late, 1 + chance.below(4));
  },
  ({ chance }) =>
    indexWaiting(
      { ...around(lists.db), write: () => Promise.reject(new Error("killed")) },
      1 + chance.below(3),
    ).catch(() => undefined),
];

/** Searches a part of one of the strings, in a random spelling. */
async function look({ chance, senderId, kept }: World): Promise<void> {
  const all = [...kept].toReversed();
  const some = all[chance.below(all.length)]?.[1];
  if (some === undefined) return;
  const begin = chance.below(5);
  const part = some.letters.slice(begin, begin + 1 + chance.below(4));
  const q = spelledBy(chance, part);
  const expected = all.filter(([, { letters }]) => comparedAs(letters).includes(comparedAs(part)));
  expect([q, await lists.paged(senderId, { q }, 3)]).toEqual([q, expected.map(([id]) => id)]);
}

describe("a message is found by any spelling, once, whatever happens to the index", () => {
  for (const seed of casesHere([1, 2, 3, 4, 5, 6, 7, 8], 4))
    test(`seed ${seed}`, async () => {
      const chance = chanceOf(seed);
      const world: World = { chance, senderId: await lists.project(), kept: new Map() };
      for (let step = 0; step < 120; step++) {
        await chance.pick(HAPPENINGS)(world);
        if (step % 3 === 0) await look(world);
      }
      await lists.index();
      for (let time = 0; time < 40; time++) await look(world);
    });
});
