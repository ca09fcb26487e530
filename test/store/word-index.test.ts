import { afterAll, beforeAll, describe, expect } from "bun:test";
import { forgetMessages } from "../../src/flows/sweep/retention.ts";
import { indexWords, WORDS_PER_WRITE } from "../../src/flows/search/index-words.ts";
import { newContent, ofProject } from "../../src/store/contents/content-bytes.ts";
import { bodyBytes } from "../../src/store/contents/message-body.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { insertAttachment } from "../../src/store/messages/attachments.ts";
import { removeContents } from "../../src/store/messages/content-release.ts";
import { storeRendered } from "../../src/store/messages/message-content.ts";
import { insertMessage, type Message } from "../../src/store/messages/messages.ts";
import {
  MAX_TERMS_UNITS,
  expressionOf,
  wordTermsOf,
  wordTermsWanted,
} from "../../src/store/search/search-terms.ts";
import { indexedSince } from "../../src/http/views/highlights.ts";
import { timeOfPosition } from "../../src/store/search/positions.ts";
import { addWords, newWords, oldWords, wordProgress } from "../../src/store/search/word-index.ts";
import { wordsIn } from "../../src/store/search/words.ts";
import { test } from "../support/engine-test.ts";
import { around } from "../support/around.ts";
import { type Lists, message, NOW, openLists } from "../support/lists.ts";
import { manualClock } from "../support/manual-clock.ts";

let lists: Lists;
let senderId: string;
beforeAll(async () => {
  lists = await openLists();
  senderId = await lists.project();
});
afterAll(() => lists.remove());

function body(text: string | null, html: string | null = null) {
  return ofProject(senderId, newContent(bodyBytes({ text, html })));
}

async function stored(
  text: string | null,
  given: Partial<Message> = {},
  html: string | null = null,
): Promise<string> {
  const one = message(senderId, given);
  await lists.db.write(insertMessage(one, { body: body(text, html) }, []));
  return one.id;
}

/** Indexes until nothing waits. */
async function index(db: Db = lists.db): Promise<void> {
  await lists.index();
  const turn = indexWords({ db });
  for (let at = 0; at < 4; at++) await turn();
}

/** Messages that the index has for words. */
async function found(text: string, project = senderId, from?: string): Promise<string[]> {
  const words = wordsIn(text).map(({ word }) => word);
  const rows = await lists.db.all<{ id: string }>(
    `SELECT m.id FROM message_words w CROSS JOIN word_places p ON p.place = w.rowid
      CROSS JOIN messages m ON m.position = p.position AND m.word_place = p.place
      WHERE message_words MATCH ? ORDER BY w.rowid`,
    [expressionOf(wordTermsWanted(project, from === undefined ? {} : { from }, words))],
  );
  return rows.map(({ id }) => id);
}

const count = async (sql: string): Promise<number> => (await lists.db.first<{ n: number }>(sql))?.n ?? 0;

describe("the index of words", () => {
  test("has the subject, the text, what the html shows, and file names, newest first", async () => {
    const first = await stored("paid by zebra", {}, "<p>paid by <b>wal</b>rus</p><style>hidden</style>");
    const second = await stored("a zebra again", { subject: "Ostrich" });
    await lists.db.write([
      insertAttachment(
        second,
        {
          id: "att_1",
          filename: "pelican.pdf",
          contentType: "a/b",
          disposition: "attachment",
          contentId: null,
          size: 1,
          content: null,
        },
        0,
      ),
    ]);
    await index();
    expect(await found("zebra")).toEqual([second, first]);
    expect(await found("walrus")).toEqual([first]);
    expect([await found("ostrich"), await found("pelican")]).toEqual([[second], [second]]);
    expect(await found("hidden")).toEqual([]);
    expect(await found("zebra", senderId, "news@shop.example")).toEqual([second, first]);
    expect(await found("zebra", senderId, "other@shop.example")).toEqual([]);
  });

  test("has other lists for each project", async () => {
    await stored("shared heron");
    await index();
    expect(await found("heron", await lists.project())).toEqual([]);
  });

  test("keeps no word in the database file", async () => {
    await index();
    const rows = await lists.db.all<{ term: string }>("SELECT hex(block) AS term FROM message_words_data");
    const hex = Buffer.from("zebra").toString("hex").toUpperCase();
    expect(rows.filter(({ term }) => term.includes(hex))).toEqual([]);
  });

  test("loses a message that is deleted, or whose contents are removed", async () => {
    const [first, second] = [await stored("two swans"), await stored("one swan, swans")];
    await index();
    expect(await found("swans")).toEqual([second, first]);
    await lists.db.write(removeContents([first], { now: NOW }));
    expect(await found("swans")).toEqual([second]);
    await lists.db.write([{ sql: "DELETE FROM messages WHERE id = ?", args: [second] }]);
    expect(await found("swans")).toEqual([]);
    expect(await count("SELECT count(*) AS n FROM message_words WHERE message_words MATCH 'zzzzz'")).toBe(0);
  });

  test("loses messages that are older than the retention", async () => {
    const other = await lists.project();
    const one = message(other, { createdAt: NOW - 5 * 86_400_000 });
    await lists.db.write(insertMessage(one, { body: body("retired gannet") }, []));
    await index();
    const words = await count("SELECT count(*) AS n FROM message_words_docsize");
    await forgetMessages({ db: lists.db, clock: manualClock(NOW) }, 3)();
    expect(await count("SELECT count(*) AS n FROM message_words_docsize")).toBe(words - 1);
  });

  test("gets the output of a template that is rendered after indexing", async () => {
    const id = await stored(null, { subject: "{{x}}" });
    await index();
    await lists.db.write(
      storeRendered(senderId, id, { subject: "Rendered kestrel", body: body("with a falcon") }, NOW),
    );
    await index();
    expect([await found("kestrel"), await found("falcon")]).toEqual([[id], [id]]);
    expect(await count("SELECT count(*) AS n FROM words_changed")).toBe(0);
  });

  const MEANWHILE: readonly [name: string, change: (id: string) => Parameters<Db["write"]>[0]][] = [
    ["deleted", (id) => [{ sql: "DELETE FROM messages WHERE id = ?", args: [id] }]],
    ["without contents", (id) => removeContents([id], { now: NOW })],
  ];
  test.each(MEANWHILE)(
    "a message that is %s between the read and the write stays out",
    async (_name, change) => {
      await index();
      const id = await stored("brief cormorant");
      await lists.index();
      const { db } = lists;
      const late: Db = {
        ...around(db),
        async write(statements) {
          await db.write(change(id));
          return db.write(statements);
        },
      };
      const waiting = await newWords(late, 10);
      await addWords(late, waiting, [["brief", "cormorant"]]);
      expect(await found("cormorant")).toEqual([]);
      await index();
      expect(await found("cormorant")).toEqual([]);
      expect((await wordProgress(db)).indexed).toBe((await wordProgress(db)).newest);
    },
  );

  test("two processes that index the same messages add each once", async () => {
    const ids = [];
    for (let at = 0; at < 3; at++) ids.push(await stored("double egret"));
    await lists.index();
    const waiting = await newWords(lists.db, 10);
    await index();
    const before = await wordProgress(lists.db);
    await addWords(
      lists.db,
      waiting,
      waiting.rows.map(() => ["wrong"]),
    );
    expect(await wordProgress(lists.db)).toEqual(before);
    expect(await found("egret")).toEqual(ids.reverse());
  });

  test("a place is not given twice, even if the newest message is deleted", async () => {
    const gone = await stored("gone lapwing");
    await index();
    await lists.db.write([{ sql: "DELETE FROM messages WHERE id = ?", args: [gone] }]);
    const id = await stored("new lapwing");
    await index();
    expect(await found("lapwing")).toEqual([id]);
  });

  test("terms end at their limit", () => {
    const words = Array.from({ length: MAX_TERMS_UNITS }, (_, at) => `w${at}`);
    const all = wordTermsOf({ ...message(senderId), tags: [] }, words, false);
    expect(all.length).toBeLessThanOrEqual(MAX_TERMS_UNITS);
    expect(all.length).toBeGreaterThan(MAX_TERMS_UNITS - 11);
  });
});

describe("messages from before the index of words", () => {
  test("get their places from the newest down, in steps that continue after a stop", async () => {
    const old = await openLists();
    try {
      const project = await old.project();
      const ids: string[] = [];
      for (let at = 0; at < WORDS_PER_WRITE + 3; at++) {
        const one = message(project, { subject: `old booby ${at}` });
        ids.push(one.id);
        await old.db.write(insertMessage(one, { body: null }, []));
      }
      await old.index();
      // As an upgrade finds them.
      await old.db.write([
        { sql: "UPDATE messages SET word_place = NULL", args: [] },
        { sql: "DELETE FROM word_places", args: [] },
        {
          sql: "UPDATE word_progress SET indexed = newest, filled = (SELECT MAX(position) FROM messages)",
          args: [],
        },
      ]);
      const fresh = message(project, { subject: "new booby" });
      await old.db.write(insertMessage(fresh, { body: null }, []));
      await old.index();
      const step = await oldWords(old.db, WORDS_PER_WRITE);
      await addWords(
        old.db,
        step,
        step.rows.map(({ subject }) => wordsIn(subject).map(({ word }) => word)),
      );
      expect(step.rows.map(({ id }) => id)).toEqual(ids.toReversed().slice(0, WORDS_PER_WRITE));
      const last = step.rows.at(-1)?.position ?? 0;
      expect(await indexedSince(old.db)).toEqual({
        indexedSince: new Date(timeOfPosition(last)).toISOString(),
      });
      await indexWords({ db: old.db })();
      expect(await indexedSince(old.db)).toEqual({});
      const rows = await old.db.all<{ id: string }>(
        `SELECT m.id FROM message_words w CROSS JOIN messages m ON m.word_place = w.rowid
          WHERE message_words MATCH ? ORDER BY w.rowid`,
        [expressionOf(wordTermsWanted(project, {}, ["booby"]))],
      );
      expect(rows.map(({ id }) => id)).toEqual([fresh.id, ...ids.toReversed()]);
    } finally {
      await old.remove();
    }
  });
});
