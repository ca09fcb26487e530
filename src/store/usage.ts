import type { Db, Guard, Statement } from "./client.ts";

/** The UTC day of a time, as `YYYY-MM-DD`. */
export function utcDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** Counts accepted recipients towards the project's volume of the day. */
export function addUsage(senderId: string, day: string, recipients: number): Statement {
  return {
    sql: `INSERT INTO usage (sender_id, day, recipients) VALUES (?, ?, ?)
      ON CONFLICT (sender_id, day) DO UPDATE SET recipients = recipients + excluded.recipients`,
    args: [senderId, day, recipients],
  };
}

/** Recipients accepted for the project on that UTC day. */
export async function usageOf(db: Db, senderId: string, day: string): Promise<number> {
  const row = await db.first<{ recipients: number }>(
    "SELECT recipients FROM usage WHERE sender_id = ? AND day = ?",
    [senderId, day],
  );
  return row?.recipients ?? 0;
}

/** What a settled recipient adds to the project's reputation of the day. */
export type ReputationField = "settled" | "bounced" | "complained";

/** Counts one outcome, where the guard holds. */
export function addReputation(
  senderId: string,
  day: string,
  field: ReputationField,
  guard: Guard,
): Statement {
  const [settled, bounced, complained] = [
    field !== "complained",
    field === "bounced",
    field === "complained",
  ];
  return {
    sql: `INSERT INTO reputation (sender_id, day, settled, bounced, complained) SELECT ?, ?, ?, ?, ? WHERE ${guard.sql}
      ON CONFLICT (sender_id, day) DO UPDATE SET settled = settled + excluded.settled,
        bounced = bounced + excluded.bounced, complained = complained + excluded.complained`,
    args: [senderId, day, Number(settled), Number(bounced), Number(complained), ...guard.args],
  };
}
