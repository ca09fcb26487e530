import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { listContacts } from "../../src/store/projects/contacts.ts";
import { addSuppression, listSuppressions } from "../../src/store/projects/suppressions.ts";
import {
  listThreads,
  type ThreadPage,
  type ThreadPosition,
  type ThreadsFound,
} from "../../src/store/threads/thread-list.ts";
import { casesHere } from "../support/database.ts";
import { type Lists, NOW, openLists } from "../support/lists.ts";
import { countTurns } from "../support/turns.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

/** A string of one letter, which is a beginning of the searched text at every position. */
const LETTERS = [
  ["ASCII", "a"],
  ["beyond ASCII", "é"],
] as const;

/** Stores contacts of those names, the oldest first, and returns their ids. */
async function storeContacts(senderId: string, names: readonly string[]): Promise<string[]> {
  const rows = names.map((name, at) => [newId("con", NOW + at), `c${at}@home.example`, name] as const);
  await lists.db.write([
    {
      sql: `INSERT INTO contacts (id, sender_id, email, email_key, first_name, last_name, subscribed, metadata, created_at, updated_at)
        SELECT value ->> 0, ?, value ->> 1, value ->> 1, value ->> 2, value ->> 2, 1, '{}', 0, 0 FROM json_each(?)`,
      args: [senderId, JSON.stringify(rows)],
    },
  ]);
  return rows.map(([id]) => id);
}

/**
 * Stores threads of those subjects, the oldest first, in a new inbox. Returns the ids of the inbox, the threads and
 * the project.
 */
async function storeThreads(subjects: readonly string[], participants: readonly string[]) {
  const { senderId, inboxId } = await lists.inbox();
  const rows = subjects.map((subject, at) => [newId("thr", NOW + at), subject, NOW + at] as const);
  await lists.db.write([
    {
      sql: `INSERT INTO threads (id, sender_id, inbox_id, subject, preview, participants, message_count, has_attachments,
          last_message_id, last_message_at, created_at, updated_at)
        SELECT value ->> 0, ?, ?, value ->> 1, '', ?, 1, 0, 'msg_1', value ->> 2, 0, 0 FROM json_each(?)`,
      args: [senderId, inboxId, JSON.stringify(participants), JSON.stringify(rows)],
    },
  ]);
  return { senderId, inboxId, ids: rows.map(([id]) => id) };
}

describe("a search reads near matches in steps, and finds the match after them", () => {
  for (const [name, letter] of casesHere(LETTERS, 2)) {
    const q = `${letter.repeat(150)}z`;

    test(`among contacts: ${name}`, async () => {
      const senderId = await lists.project();
      const [wanted] = await storeContacts(senderId, [
        `x${q}`,
        ...Array.from({ length: 2000 }, () => letter.repeat(200)),
      ]);
      const found: string[] = [];
      let after: string | null = null;
      let turns = 0;
      do {
        const page = await countTurns(() => listContacts(lists.db, senderId, { q }, after, 10));
        found.push(...page.result.rows.map(({ id }) => id));
        after = page.result.stoppedAt;
        turns += page.turns;
      } while (after !== null);
      expect(found).toEqual([wanted ?? ""]);
      expect(turns).toBeGreaterThan(10);
    });

    test(`among threads: ${name}`, async () => {
      const participants = Array.from({ length: 50 }, (_, at) => `${letter.repeat(300)}${at}@x.example`);
      const { senderId, inboxId, ids } = await storeThreads(
        [`x${q}`, ...Array.from({ length: 30 }, () => letter.repeat(990))],
        participants,
      );
      const found: string[] = [];
      let after: ThreadPosition | null = null;
      let turns = 0;
      do {
        const wanted: ThreadPage = {
          senderId,
          filter: {
            inboxId,
            q,
            archived: false,
            unread: null,
            folder: "inbox",
            label: null,
            assigneeId: null,
          },
          after,
          limit: 10,
        };
        const page: { result: ThreadsFound; turns: number } = await countTurns(() =>
          listThreads(lists.db, wanted),
        );
        found.push(...page.result.threads.map(({ id }) => id));
        after = page.result.stoppedAt;
        turns += page.turns;
      } while (after !== null);
      expect(found).toEqual(ids.slice(0, 1));
      expect(turns).toBeGreaterThan(10);
    });
  }

  test("among suppressed addresses", async () => {
    const senderId = await lists.project();
    const domain = `${"a".repeat(60)}.`.repeat(3);
    const entries = Array.from({ length: 4000 }, (_, at) =>
      addSuppression({
        id: newId("sup", NOW + at),
        senderId,
        email: `${at === 0 ? "z" : "y"}${at}@${domain}example`,
        reason: "manual",
        bounceType: null,
        messageId: null,
        note: null,
        expiresAt: null,
        createdAt: NOW,
      }),
    );
    for (let at = 0; at < entries.length; at += 500) await lists.db.write(entries.slice(at, at + 500).flat());
    const filter = { q: `${"a".repeat(60)}z` };
    const { result, turns } = await countTurns(() =>
      listSuppressions(lists.db, senderId, filter, NOW, null, 10),
    );
    expect(result).toEqual({ rows: [], stoppedAt: null });
    expect(turns).toBeGreaterThan(5);
    const { rows } = await listSuppressions(lists.db, senderId, { q: "z0@AAA" }, NOW, null, 10);
    expect(rows.map(({ email }) => email)).toEqual([`z0@${domain}example`]);
  });
});
