import type { IdRange } from "../../core/ids.ts";
import type { Db, Statement } from "../engine/client.ts";

/** A table of counts by project and UTC day. */
export type DailyCounts = "usage" | "reputation";

/** Deletes at most `limit` counts from before that UTC day; returns how many. */
export async function deleteOldCounts(
  db: Db,
  table: DailyCounts,
  day: string,
  limit: number,
): Promise<number> {
  const [written] = await db.write([
    {
      sql: `DELETE FROM ${table}
        WHERE (sender_id, day) IN (SELECT sender_id, day FROM ${table} WHERE day < ? LIMIT ?)`,
      args: [day, limit],
    },
  ]);
  return written?.changes ?? 0;
}

/** Returns the projects of a range, in the order of their ids. */
export function projectsOf(db: Db, { after, below, limit }: IdRange): Promise<{ id: string }[]> {
  return db.all<{ id: string }>("SELECT id FROM senders WHERE id > ? AND id < ? ORDER BY id LIMIT ?", [
    after,
    below,
    limit,
  ]);
}

/** The tables of figures, each with its key and the column that counts time since the epoch. */
const FIGURE_TABLES = {
  stats: { key: "sender_id, hour", time: "hour" },
  stats_destinations: { key: "sender_id, day, domain, outcome", time: "day" },
  stats_domains: { key: "sender_id, day", time: "day" },
  stats_providers: { key: "sender_id, day, provider", time: "day" },
} as const;

/**
 * Returns the statement that deletes at most `limit` of the projects' rows of a table from before that hour or day
 * since the epoch.
 */
export function deleteOldFigures(
  table: keyof typeof FIGURE_TABLES,
  senderIds: readonly string[],
  before: number,
  limit: number,
): Statement {
  const { key, time } = FIGURE_TABLES[table];
  const columns = key.replace(/\w+/g, "s.$&");
  return {
    sql: `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${columns} FROM json_each(?) j
        CROSS JOIN ${table} s ON s.sender_id = j.value AND s.${time} < ? LIMIT ?)`,
    args: [JSON.stringify(senderIds), before, limit],
  };
}
