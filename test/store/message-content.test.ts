import { afterAll, beforeAll, expect, test } from "bun:test";
import { keepBody, keepContent } from "../../src/flows/contents/keep.ts";
import { systemClock } from "../../src/clock.ts";
import { newContent } from "../../src/store/contents/content-bytes.ts";
import { contentBytes } from "../../src/store/contents/content-read.ts";
import { MAX_INLINE_OCTETS } from "../../src/store/contents/message-body.ts";
import { getContent, getRaw, keepComposed, keepRendered } from "../../src/store/contents/message-content.ts";
import { insertMessage } from "../../src/store/messages.ts";
import { type Lists, message, openLists } from "../support/lists.ts";

const NOW = 1_750_000_000_000;
let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

const bodyOf = (senderId: string, text: string) =>
  keepBody({ db: lists.db, clock: systemClock }, senderId, { html: null, text });
const rows = () =>
  lists.db.all<{ refs: number; size: number }>("SELECT refs, size FROM contents ORDER BY id");

/** A text whose body is so much larger than what stands in a message's row; quotes and names take the rest. */
const textOver = (more: number): string =>
  "x".repeat(MAX_INLINE_OCTETS - '{"html":null,"text":""}'.length + more);

test.each([
  ["of 16 KiB stands in the message's row", 0, 0],
  ["of one octet more is a content", 1, 1],
])("a body %s", async (_, more, contents) => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  const before = (await rows()).length;
  await lists.db.write(insertMessage(given, { body: await bodyOf(senderId, textOver(more)) }, []));
  expect((await rows()).length - before).toBe(contents);
  expect((await getContent(lists, senderId, given.id))?.text).toBe(textOver(more));
});

test("what a template became takes the place of what was there, once, and the counts go with it", async () => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  const [draft, first, second] = ["draft", "first", "second"].map((word) => word.repeat(100_000));
  await lists.db.write(insertMessage(given, { body: await bodyOf(senderId, draft ?? "") }, []));
  for (const text of [first, second])
    await lists.db.write(
      keepRendered(senderId, given.id, { subject: "S", body: await bodyOf(senderId, text ?? "") }, NOW),
    );
  expect(await getContent(lists, senderId, given.id)).toMatchObject({ text: first, rendered: true });
  // The second's was written ahead; nobody took it up.
  expect((await rows()).slice(-3).map(({ refs }) => refs)).toEqual([0, 1, 0]);
});

test.each([
  ["small", Buffer.from("as sent")],
  ["large", Buffer.alloc(600_000, "as sent ")],
])("a %s mail as composed is kept the first time", async (_, raw) => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  await lists.db.write(insertMessage(given, { body: null }, []));
  const deps = { db: lists.db, clock: systemClock };
  await lists.db.write(keepComposed(given.id, await keepContent(deps, given.senderId, raw), NOW));
  await lists.db.write(keepComposed(given.id, newContent(Buffer.from("another")), NOW));
  const kept = await getRaw(lists.db, senderId, given.id);
  expect(kept !== null && Buffer.from(await contentBytes(lists, kept.content)).equals(raw)).toBe(true);
  expect((await rows()).at(-1)).toMatchObject({ refs: 1, size: raw.length });
});

test("a mail as composed whose chunks are gone is not kept, and the write goes on", async () => {
  const senderId = await lists.project();
  const given = message(senderId, {});
  const missing = newContent(Buffer.alloc(700_000, "never written "));
  await lists.db.write([
    ...insertMessage(given, { body: null }, []),
    ...keepComposed(given.id, missing, NOW),
  ]);
  expect(await getRaw(lists.db, senderId, given.id)).toBeNull();
  expect(await getContent(lists, senderId, given.id)).not.toBeNull();
});
