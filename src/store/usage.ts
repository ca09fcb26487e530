import { ConstraintError, type Db, type Statement } from "./engine/client.ts";

/** The UTC day of a time, as `YYYY-MM-DD`. */
export function utcDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/**
 * Takes accepted recipients out of the project's volume of the day; `limit` null: there is no limit. Over it the
 * count becomes NULL, which the column refuses: the write fails as a whole, and `isOverUsage` tells why. So no
 * order in which writes reach the database can pass the limit, and a write that fails takes nothing.
 */
export function takeUsage(
  senderId: string,
  day: string,
  recipients: number,
  limit: number | null,
): Statement {
  const most = limit ?? Number.MAX_SAFE_INTEGER;
  return {
    sql: `INSERT INTO usage (sender_id, day, recipients) VALUES (?, ?, CASE WHEN ? <= ? THEN ? END)
      ON CONFLICT (sender_id, day) DO UPDATE SET
        recipients = CASE WHEN usage.recipients + excluded.recipients <= ? THEN usage.recipients + excluded.recipients END`,
    args: [senderId, day, recipients, most, recipients, most],
  };
}

/** Whether a write failed because `takeUsage` in it went over its limit. */
export function isOverUsage(error: unknown): boolean {
  return error instanceof ConstraintError && error.notNull === "usage.recipients";
}

/** Recipients accepted for the project on that UTC day. */
export async function usageOf(db: Db, senderId: string, day: string): Promise<number> {
  const row = await db.first<{ recipients: number }>(
    "SELECT recipients FROM usage WHERE sender_id = ? AND day = ?",
    [senderId, day],
  );
  return row?.recipients ?? 0;
}
