import { afterAll, beforeAll, beforeEach, describe, expect } from "bun:test";
import { MAX_COMPARED_CHARS, MAX_LOOKED_AT, MAX_QUERIES } from "../../src/flows/search/find.ts";
import { findMessages } from "../../src/flows/search/find-messages.ts";
import { findThreads } from "../../src/flows/search/find-threads.ts";
import { FRAGMENT_CHARS, highlightsOf } from "../../src/flows/search/highlights.ts";
import { indexWords, WORDS_PER_TURN } from "../../src/flows/search/index-words.ts";
import { readTexts, SEARCHED_FILES, SEARCHED_OCTETS } from "../../src/flows/search/texts.ts";
import { newContent, ofProject } from "../../src/store/contents/content-bytes.ts";
import { bodyBytes } from "../../src/store/contents/message-body.ts";
import type { MessageFilter } from "../../src/store/lists/message-filter.ts";
import { byRareTerm, MILESTONES_PER_QUERY } from "../../src/store/lists/word-search.ts";
import { FEW } from "../../src/store/search/term-queries.ts";
import { insertAttachment } from "../../src/store/messages/attachments.ts";
import { insertMessage, type Message } from "../../src/store/messages/messages.ts";
import { MAX_PIECES, MAX_PLACES, placesOfPiece, textQuery } from "../../src/store/search/text-query.ts";
import { wordTermsWanted } from "../../src/store/search/search-terms.ts";
import { addWords, newWords, wordProgress } from "../../src/store/search/word-index.ts";
import { wordsIn } from "../../src/store/search/words.ts";
import { test } from "../support/engine-test.ts";
import { type Lists, message, NOW, openLists } from "../support/lists.ts";

let lists: Lists;
let senderId: string;
beforeAll(async () => {
  lists = await openLists();
});
beforeEach(async () => {
  senderId = await lists.project();
});
afterAll(() => lists.remove());

/** Indexes all messages that wait, with the words of their subjects unless others are given. */
async function index(words?: readonly string[]): Promise<void> {
  await lists.index();
  for (;;) {
    const waiting = await newWords(lists.db, 1000);
    const own = waiting.rows.map(({ subject }) => words ?? wordsIn(subject).map(({ word }) => word));
    await addWords(lists.db, waiting, own);
    if (waiting.rows.length < 1000) return;
  }
}

async function find(text: string, filter: MessageFilter = {}, limit = 100, from: number | null = null) {
  const page = await findMessages(
    { db: lists.db },
    { senderId, filter, query: textQuery(text) },
    from,
    limit,
  );
  return { ids: page.messages.map(({ id }) => id), stoppedAt: page.stoppedAt };
}

async function storeBody(text: string, given: Partial<Message> = {}): Promise<string> {
  const one = message(senderId, given);
  const body = ofProject(senderId, newContent(bodyBytes({ text, html: null })));
  await lists.db.write(insertMessage(one, { body }, []));
  return one.id;
}

describe("a page of a search by words", () => {
  test.each([0, 1])("looks at 2000 candidates, and %i more are on the next page", async (more) => {
    const others = Array.from({ length: MAX_LOOKED_AT - 1 + more }, () =>
      message(senderId, { subject: "narwhal" }),
    );
    const wanted = message(senderId, { subject: "narwhal", status: "bounced", createdAt: NOW - 1000 });
    await lists.store([wanted]);
    await lists.index();
    await lists.store(others);
    await index();
    const first = await find("narwhal", { status: "bounced" }, 5);
    expect(first.ids).toEqual(more === 0 ? [wanted.id] : []);
    if (first.stoppedAt !== null)
      expect(await find("narwhal", { status: "bounced" }, 5, first.stoppedAt)).toEqual({
        ids: [wanted.id],
        stoppedAt: null,
      });
    expect(first.stoppedAt === null).toBe(more === 0);
  });

  test("ends after a mebibyte of text that does not have the words, and never shows a message for its hash alone", async () => {
    const count = MAX_COMPARED_CHARS / SEARCHED_OCTETS + 1;
    for (let at = 0; at < count; at++) await storeBody(`other ${"x ".repeat(SEARCHED_OCTETS / 2)}`);
    await index(["ghost"]);
    const first = await find("ghost");
    expect([first.ids, first.stoppedAt === null]).toEqual([[], false]);
    expect(await find("ghost", {}, 100, first.stoppedAt)).toEqual({ ids: [], stoppedAt: null });
  });

  test.each([0, 1])("joins frequent words in six queries, and %i more are on the next page", async (more) => {
    const all = Array.from({ length: 4 * (MAX_QUERIES * MILESTONES_PER_QUERY + more) }, (_, at) => {
      const one = message(senderId, { subject: at === 0 ? "even odd" : at % 8 < 4 ? "even" : "odd" });
      // Each fourth of them is a milestone.
      return { ...one, id: `${one.id.slice(0, -2)}${at % 4 === 0 ? "00" : "01"}` };
    });
    expect(all.length / 2).toBeGreaterThan(FEW);
    await lists.store(all);
    await index();
    const first = await find("even odd");
    expect(first.ids).toEqual(more === 0 ? [all[0]?.id ?? ""] : []);
    if (more === 1)
      expect((await find("even odd", {}, 100, first.stoppedAt)).ids).toEqual([all[0]?.id ?? ""]);
  });

  test("reads all candidates of a term that few messages have", async () => {
    const common = Array.from({ length: 2 * FEW }, () => message(senderId, { subject: "common" }));
    const rare = message(senderId, { subject: "common rare", createdAt: NOW - 1000 });
    await lists.store([rare]);
    await lists.index();
    await lists.store(common);
    await index();
    const places = { first: 0, last: Number.MAX_SAFE_INTEGER };
    const terms = (words: string[]) => wordTermsWanted(senderId, {}, words);
    const search = { senderId, terms: terms(["common", "rare"]), passes: { sql: "1", args: [] } };
    expect((await byRareTerm(lists.db, search, places)).terms).toEqual(terms(["rare"]));
    const [common1 = ""] = terms(["common"]);
    const both = { ...search, terms: [common1, common1] };
    expect((await byRareTerm(lists.db, both, places)).terms).toEqual([common1, common1]);
    expect((await find("common rare")).ids).toEqual([rare.id]);
  });

  test("of threads passes over messages without one", async () => {
    const { senderId: project, inboxId } = await lists.inbox();
    const reply = message(project, { subject: "auk", threadId: "thr_1", inboxId, createdAt: NOW - 1000 });
    await lists.db.write([
      {
        sql: `INSERT INTO threads (id, sender_id, inbox_id, subject, preview, last_message_at, created_at, updated_at)
          VALUES ('thr_1', ?, ?, 'auk', '', 1, 1, 1)`,
        args: [project, inboxId],
      },
    ]);
    await lists.store([reply]);
    await lists.index();
    await lists.store(Array.from({ length: MAX_LOOKED_AT + 1 }, () => message(project, { subject: "auk" })));
    await index();
    const all = {
      inboxId: null,
      archived: null,
      unread: null,
      folder: "inbox",
      label: null,
      assigneeId: null,
      q: null,
    } as const;
    const page = await findThreads(
      { db: lists.db },
      { senderId: project, filter: all, query: textQuery("auk") },
      null,
      5,
    );
    expect(page.threads.map(({ messageId }) => messageId)).toEqual([reply.id]);
    expect(page.stoppedAt).toBeNull();
  });

  test("finds a late message within its time, although it came after newer ones", async () => {
    const early = message(senderId, { subject: "late dodo", createdAt: NOW - 3_600_000 });
    await lists.store([message(senderId, { subject: "dodo", createdAt: NOW + 3_600_000 })]);
    await index();
    await lists.store([early]);
    await index();
    expect((await find("dodo", { after: NOW - 7_200_000, before: NOW })).ids).toEqual([early.id]);
  });
});

describe("the limits of indexed texts", () => {
  test("64 KiB of a body are searched", async () => {
    const filler = "ab ".repeat(SEARCHED_OCTETS / 3);
    const within = await storeBody(`${filler.slice(0, SEARCHED_OCTETS - 4)} yak`);
    const beyond = await storeBody(`${filler.slice(0, SEARCHED_OCTETS - 3)} yak`);
    const bodies = [];
    for (const id of [within, beyond])
      bodies.push(
        (await readTexts({ db: lists.db }, { id, sender_id: senderId, subject: "" })).bodies[0]?.slice(-3),
      );
    expect(bodies).toEqual(["yak", " ya"]);
  });

  test("the names of a hundred files are searched", async () => {
    const id = await storeBody("x");
    const file = (at: number) => ({
      id: `att_${senderId}${at}`,
      filename: `f${at}`,
      contentType: "a/b",
      disposition: "attachment" as const,
      contentId: null,
      size: 1,
      content: null,
    });
    await lists.db.write(
      Array.from({ length: SEARCHED_FILES + 1 }, (_, at) => insertAttachment(id, file(at), at)),
    );
    const { fileNames } = await readTexts({ db: lists.db }, { id, sender_id: senderId, subject: "" });
    expect([fileNames.length, fileNames.at(-1)]).toEqual([SEARCHED_FILES, `f${SEARCHED_FILES - 1}`]);
  });

  test("a turn of the index stops at its limit and leaves the next message waiting", async () => {
    await index();
    await lists.store(Array.from({ length: WORDS_PER_TURN + 1 }, () => message(senderId)));
    await lists.index();
    const turn = indexWords({ db: lists.db });
    await turn();
    const { newest, indexed } = await wordProgress(lists.db);
    expect(indexed - newest).toBe(1);
    await turn();
    expect((await wordProgress(lists.db)).indexed).toBe(newest);
  });

  test("while many messages come, a turn makes one write", async () => {
    await index();
    const turn = indexWords({ db: lists.db });
    await turn();
    await lists.store(Array.from({ length: 120 }, () => message(senderId)));
    await lists.index();
    await turn();
    const { newest, indexed } = await wordProgress(lists.db);
    expect(indexed - newest).toBe(70);
  });
});

describe("a searched text", () => {
  test("ten words are searched for", () => {
    const words = Array.from({ length: MAX_PIECES }, (_, at) => `w${at}`);
    expect(textQuery(words.join(" "))).toEqual(words.map((word) => [word]));
  });

  test("twenty places of a word are marked", () => {
    expect(placesOfPiece(wordsIn("ox ".repeat(MAX_PLACES + 1)), ["ox"])).toHaveLength(MAX_PLACES);
  });

  const LONG = `${"word ".repeat(100)}needle ${"word ".repeat(100)}`;
  const SHOWN: readonly [name: string, body: string, text: string, marked: string[]][] = [
    ["in the middle of a long text", LONG, "needle", ["needle"]],
    ["at the end", `${"word ".repeat(100)}needle`, "needle", ["needle"]],
    ["within half of a surrogate pair", `${"😀".repeat(100)} needle`, "needle", ["needle"]],
    ["across a line end", "one\nneedle\tagain", "needle again", ["needle", "again"]],
    ["that overlap", "請求書類", "請求書 求書類", ["請求書類"]],
    [
      "of an address longer than a fragment",
      `${"ab.".repeat(70)}ab`,
      `${"ab.".repeat(70)}ab`,
      ["ab.".repeat(70).slice(0, FRAGMENT_CHARS)],
    ],
  ];
  test.each(SHOWN)("words %s are marked in a fragment of one line", (_name, body, text, marked) => {
    const found = highlightsOf({ subject: "", bodies: [body], fileNames: [] }, textQuery(text)) ?? [];
    const shown = found.flatMap(({ fragment, ranges }) =>
      ranges.map(({ start, end }) => fragment.slice(start, end)),
    );
    expect(shown).toEqual(marked);
    for (const { fragment } of found) {
      expect(fragment.length).toBeLessThanOrEqual(FRAGMENT_CHARS);
      expect(fragment).not.toMatch(/[\n\t]/);
      expect(fragment.isWellFormed()).toBe(true);
    }
  });
});
