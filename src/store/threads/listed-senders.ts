import { idCeiling } from "../../core/ids.ts";
import { type Listed, MAX_LISTED, type SenderList } from "../../core/messages/listed-sender.ts";
import { changesRow, type ConfigurationQuery, type Db, type Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import { requireRoom } from "../engine/guards.ts";

/** A sender that an inbox, or a whole project, takes or refuses. */
export interface ListedSender extends Listed {
  id: string;
  senderId: string;
  /** Null: every inbox of the project. */
  inboxId: string | null;
  /** Milliseconds. */
  createdAt: number;
}

const LISTED = table<ListedSender>("listed_senders", {
  id: plain("id"),
  senderId: plain("sender_id"),
  inboxId: plain("inbox_id"),
  pattern: plain("pattern"),
  list: plain("list"),
  createdAt: plain("created_at"),
});

/**
 * Returns the statements that list a sender. They break the guard `too_many_records`; UNIQUE on `listed_senders` if the pattern is
 * on a list there; the foreign key if the inbox is gone.
 */
export function insertListed(listed: ListedSender): Statement[] {
  return [
    requireRoom("listed_senders WHERE sender_id = ?", listed.senderId, MAX_LISTED),
    LISTED.insert(listed),
  ];
}

/** Returns at most `take` listed senders of an inbox, or of the project itself, newest first, with ids below `after`. */
export function listListed(
  db: Db,
  senderId: string,
  inboxId: string | null,
  after: string | null,
  take: number,
): Promise<ListedSender[]> {
  const page = "WHERE sender_id = ? AND inbox_id IS ? AND id < ? ORDER BY id DESC LIMIT ?";
  return LISTED.all(db, page, [senderId, inboxId, after ?? idCeiling("lse"), take]);
}

/** Returns the entries of a project and its inboxes for an address itself. @param key of the address */
export function findListed(db: Db, senderId: string, key: string): Promise<ListedSender[]> {
  return LISTED.all(db, "WHERE sender_id = ? AND pattern = ?", [senderId, key]);
}

/** Takes a sender off a list. Returns false if it is not on that of the inbox, or of the project itself. */
export function deleteListed(db: Db, senderId: string, inboxId: string | null, id: string): Promise<boolean> {
  const sql = "DELETE FROM listed_senders WHERE sender_id = ? AND inbox_id IS ? AND id = ?";
  return changesRow(db, sql, [senderId, inboxId, id]);
}

/** Returns which of the patterns are on lists of an inbox or its project. A project without lists, as nearly all are, costs no query. */
export async function listedAmong(
  db: Db,
  { id: inboxId, senderId }: { id: string; senderId: string },
  patterns: readonly string[],
): Promise<Listed[]> {
  const { allow, block } = await usedLists(db, senderId);
  if (!allow && !block) return [];
  return db.all<Listed>(
    `SELECT pattern, list FROM listed_senders WHERE sender_id = ? AND pattern IN (SELECT value FROM json_each(?))
      AND (inbox_id IS NULL OR inbox_id = ?)`,
    [senderId, JSON.stringify(patterns), inboxId],
  );
}

const LISTS_ANY = "EXISTS (SELECT 1 FROM listed_senders WHERE sender_id = ?1 AND list =";
const USED_LISTS: ConfigurationQuery<Record<SenderList, number>, Record<SenderList, boolean>> = {
  sql: `SELECT ${LISTS_ANY} 'allow') AS allow, ${LISTS_ANY} 'block') AS block`,
  read: ({ allow, block }) => ({ allow: allow === 1, block: block === 1 }),
};

/** Returns which lists of a project and its inboxes have entries. It is cached until configuration changes. */
export async function usedLists(db: Db, senderId: string): Promise<Record<SenderList, boolean>> {
  return (await db.readConfig(USED_LISTS, [senderId])) ?? { allow: false, block: false };
}
