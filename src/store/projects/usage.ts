import type { Db, Statement } from "../engine/client.ts";
import { rowsStatement, rowsText } from "../sql/rows-text.ts";

const COLUMNS = "sender_id, day, recipients";
const UNLIMITED = rowsText("usage", COLUMNS, "(?1, ?2, ?3)", {
  after: " ON CONFLICT (sender_id, day) DO UPDATE SET recipients = usage.recipients + excluded.recipients",
});
/** Never joined with others, because the limit is a parameter of the update. */
const LIMITED = rowsText("usage", COLUMNS, "(?1, ?2, CASE WHEN ?3 <= ?4 THEN ?3 END)", {
  after: ` ON CONFLICT (sender_id, day) DO UPDATE SET
    recipients = CASE WHEN usage.recipients + ?3 <= ?4 THEN usage.recipients + ?3 END`,
  repeats: false,
});

/** The UTC day of a time, as `YYYY-MM-DD`. */
export function utcDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/**
 * Returns the statement that takes accepted recipients from the project's volume of the day; `limit` null: there is no
 * limit. Over the limit the count becomes NULL, which the column refuses: the write is undone with the guard
 * `over_daily_volume`. So no order of writes passes the limit, and a failed write takes nothing.
 */
export function takeUsage(
  senderId: string,
  day: string,
  recipients: number,
  limit: number | null,
): Statement {
  return limit === null
    ? rowsStatement(UNLIMITED, [senderId, day, recipients])
    : rowsStatement(LIMITED, [senderId, day, recipients, limit]);
}

/** Returns the recipients accepted for the project on that UTC day. */
export async function usageOf(db: Db, senderId: string, day: string): Promise<number> {
  const row = await db.first<{ recipients: number }>(
    "SELECT recipients FROM usage WHERE sender_id = ? AND day = ?",
    [senderId, day],
  );
  return row?.recipients ?? 0;
}

/** Returns the recipients accepted for all projects by UTC day from `from` on. */
export function recipientsByDay(db: Db, from: string): Promise<{ day: string; recipients: number }[]> {
  return db.all(
    "SELECT day, SUM(recipients) AS recipients FROM usage WHERE day >= ? GROUP BY day ORDER BY day",
    [from],
  );
}
