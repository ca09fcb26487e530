import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Statement } from "../engine/client.ts";
import { requireGuard } from "../engine/guards.ts";

/** Maximum number of links that an address gets within a day, from all projects. */
export const MAX_JOIN_LINKS_TO_ADDRESS = 3;
/** Maximum number of links that a project mails within a day. */
export const MAX_JOIN_LINKS_OF_PROJECT = 1000;

/**
 * Returns the statements that count a link which is mailed now. With too many, the guard `too_many_links` undoes the write.
 * @param address the hash of the address key
 */
export function noteJoinLink(senderId: string, address: string, now: number): Statement[] {
  const fewer = (column: string) =>
    `(SELECT COUNT(*) FROM join_links WHERE ${column} = ? AND mailed_at > ?) < ?`;
  const since = now - DAY_MS;
  return [
    requireGuard("too_many_links", {
      sql: `${fewer("address")} AND ${fewer("sender_id")}`,
      args: [address, since, MAX_JOIN_LINKS_TO_ADDRESS, senderId, since, MAX_JOIN_LINKS_OF_PROJECT],
    }),
    {
      sql: "INSERT INTO join_links (sender_id, address, mailed_at) VALUES (?, ?, ?)",
      args: [senderId, address, now],
    },
  ];
}

/** Deletes at most `limit` links that were mailed before a time. Returns how many. */
export async function deleteOldJoinLinks(db: Db, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM join_links WHERE id IN (
    SELECT id FROM join_links WHERE mailed_at < ? ORDER BY mailed_at LIMIT ?)`;
  const [written] = await db.write([{ sql, args: [before, limit] }]);
  return written?.changes ?? 0;
}
