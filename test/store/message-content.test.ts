import { afterAll, beforeAll, expect, test } from "bun:test";
import { reservedBudget } from "../../src/store/contents/memory-budget.ts";
import { prepareBody, prepareContent } from "../../src/store/messages/prepare-content.ts";
import { readWhole } from "../../src/flows/mime/read-whole.ts";
import { systemClock } from "../../src/clock.ts";
import { newContent } from "../../src/store/contents/content-bytes.ts";
import { contentBytes } from "../../src/store/contents/content-read.ts";
import { removeContents } from "../../src/store/messages/content-release.ts";
import {
  getContent,
  getContentStart,
  getRaw,
  storeComposed,
  storeRendered,
} from "../../src/store/messages/message-content.ts";
import { insertMessage, type Message, ROW_OCTETS } from "../../src/store/messages/messages.ts";
import { type Lists, message, openLists } from "../support/lists.ts";

const NOW = 1_750_000_000_000;
let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

const deps = () => ({ ...lists, readWhole });
const bodyOf = (senderId: string, text: string) =>
  prepareBody({ db: lists.db, clock: systemClock }, senderId, { html: null, text });
const rows = () =>
  lists.db.all<{ refs: number; size: number }>("SELECT refs, size FROM contents ORDER BY id");

test("equal bodies of a project are one content, whatever their size; another project has its own", async () => {
  const [ours, theirs] = [await lists.project(), await lists.project()];
  for (const text of ["x", "x".repeat(5000)]) {
    for (const senderId of [ours, ours, theirs]) {
      const given = message(senderId, {});
      await lists.db.write(insertMessage(given, { body: await bodyOf(senderId, text) }, []));
      expect((await getContent(deps(), senderId, given.id, reservedBudget()))?.text).toBe(text);
    }
    expect((await rows()).slice(-2).map(({ refs }) => refs)).toEqual([2, 1]);
  }
});

test("a message counts for its project with a fixed number of octets per row and those of its strings", async () => {
  const senderId = await lists.project();
  const octetsOf = async (changes: Partial<Message>) => {
    const given = message(senderId, changes);
    await lists.db.write(insertMessage(given, { body: null }, []));
    const row = await lists.db.first<{ n: number }>("SELECT row_octets AS n FROM messages WHERE id = ?", [
      given.id,
    ]);
    return row?.n ?? 0;
  };
  const to = [{ email: "a@b.test" }];
  const twice = [...to, { email: "c@d.test" }];
  const least = await octetsOf({ subject: "", to });
  expect(await octetsOf({ subject: "ü".repeat(50), to })).toBe(least + 100);
  const longer = JSON.stringify(twice).length - JSON.stringify(to).length;
  expect(await octetsOf({ subject: "", to: twice })).toBe(least + ROW_OCTETS + longer);
  expect(await octetsOf({ testMode: true })).toBe(0);
});

test("a rendered template replaces the stored body once, and moves the reference counts", async () => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  const [draft, first, second] = ["draft", "first", "second"].map((word) => word.repeat(100_000));
  await lists.db.write(insertMessage(given, { body: await bodyOf(senderId, draft ?? "") }, []));
  for (const text of [first, second])
    await lists.db.write(
      storeRendered(senderId, given.id, { subject: "S", body: await bodyOf(senderId, text ?? "") }, NOW),
    );
  expect(await getContent(deps(), senderId, given.id, reservedBudget())).toMatchObject({
    text: first,
    rendered: true,
  });
  // The second rendering was written ahead and never used.
  expect((await rows()).slice(-3).map(({ refs }) => refs)).toEqual([0, 1, 0]);
});

test.each([
  ["small", Buffer.from("as sent")],
  ["large", Buffer.alloc(600_000, "as sent ")],
])("a %s message as composed is stored the first time", async (_, raw) => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  await lists.db.write(insertMessage(given, { body: null }, []));
  const preparing = { db: lists.db, clock: systemClock };
  await lists.db.write(storeComposed(given.id, await prepareContent(preparing, given.senderId, raw), NOW));
  await lists.db.write(storeComposed(given.id, newContent(Buffer.from("another")), NOW));
  const kept = await getRaw(lists.db, senderId, given.id);
  expect(
    kept !== null && Buffer.from(await contentBytes(lists, kept.content, reservedBudget())).equals(raw),
  ).toBe(true);
  expect((await rows()).at(-1)).toMatchObject({ refs: 1, size: raw.length });
});

test("a composed message whose chunks are gone is not stored, and the write continues", async () => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  const missing = newContent(Buffer.alloc(700_000, "never written "));
  await lists.db.write([
    ...insertMessage(given, { body: null }, []),
    ...storeComposed(given.id, missing, NOW),
  ]);
  expect(await getRaw(lists.db, senderId, given.id)).toBeNull();
  expect(await getContent(deps(), senderId, given.id, reservedBudget())).not.toBeNull();
});

test("a message that was submitted whole and has no body shows the texts in its bytes, until they are removed", async () => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  const bytes = Buffer.from("X-Own: a\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nGr\u00fc\u00dfe\r\n");
  const raw = await prepareContent({ db: lists.db, clock: systemClock }, senderId, bytes);
  await lists.db.write(insertMessage(given, { body: null, raw, envelope: { helo: "x" } }, []));
  const headers = { "X-Own": "a", "Content-Type": "text/plain; charset=utf-8" };
  const budget = reservedBudget();
  const whole = { html: null, text: "Gr\u00fc\u00dfe\n", headers };
  expect(await getContent(deps(), senderId, given.id, budget)).toMatchObject(whole);
  expect(await getContentStart(deps(), senderId, given.id, 5, budget)).toMatchObject({
    text: { part: "Gr\u00fc", cut: true },
    headers,
  });
  await lists.db.write(removeContents([given.id], { now: NOW }));
  const gone = { html: null, text: null, headers: {} };
  expect(await getContent(deps(), senderId, given.id, budget)).toMatchObject(gone);
});
