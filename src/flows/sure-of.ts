import type { Db } from "../store/engine/client.ts";

/**
 * What `ask` finds. Where it finds nothing, and whoever waits is told so for good, a database that may not have heard of it yet is
 * brought up to date and asked once more: another process may have made it a moment ago.
 */
export async function sureOf<Found>(
  db: Db,
  ask: () => Promise<Found>,
  isNothing: (found: Found) => boolean,
): Promise<Found> {
  const found = await ask();
  return isNothing(found) && (await db.catchUp()) ? ask() : found;
}
