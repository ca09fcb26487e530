import type { Db } from "./client.ts";

/**
 * Runs `query`. If it finds nothing and this database is a replica, syncs with the primary and runs it once more. Another
 * process may have written the row a moment ago.
 */
export async function queryAfterSync<Found>(
  db: Db,
  query: () => Promise<Found>,
  isEmpty: (found: Found) => boolean,
): Promise<Found> {
  const found = await query();
  return isEmpty(found) && (await db.syncWithPrimary()) ? query() : found;
}
