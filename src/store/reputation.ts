import { HOUR_MS } from "../core/time-units.ts";
import type { Guard, Statement } from "./engine/client.ts";
import { utcDay } from "./usage.ts";

/** What an outcome adds to the project's reputation of its day. */
export interface ReputationCounts {
  /** Recipients whose outcome is known; each once, whatever becomes of it later. */
  settled: number;
  bounced: number;
  complained: number;
}

/** Adds to the counts of the UTC day of a time, where the guard holds; a trigger adds them to the hour's in `stats`. */
export function addReputation(
  senderId: string,
  at: number,
  { settled, bounced, complained }: ReputationCounts,
  guard: Guard,
): Statement {
  return {
    sql: `INSERT INTO reputation (sender_id, day, hour, settled, bounced, complained)
      SELECT ?, ?, ?, ?, ?, ? WHERE ${guard.sql}
      ON CONFLICT (sender_id, day) DO UPDATE SET hour = excluded.hour, settled = settled + excluded.settled,
        bounced = bounced + excluded.bounced, complained = complained + excluded.complained`,
    args: [senderId, utcDay(at), Math.floor(at / HOUR_MS), settled, bounced, complained, ...guard.args],
  };
}

/** Rates that suspend a sender, in thousandths of the recipients settled. */
export interface ReputationLimits {
  /** Recipients below which no rate is drawn. */
  minSettled: number;
  bouncedPerMille: number;
  complainedPerMille: number;
}

/**
 * Suspends a sender that is not, where its counts from the UTC day `since` to that of `now` reach one of the limits: what was
 * counted under a clock that was ahead would count until it has come round.
 */
export function suspendOverLimits(
  senderId: string,
  since: string,
  { minSettled, bouncedPerMille, complainedPerMille }: ReputationLimits,
  now: number,
): Statement {
  return {
    sql: `UPDATE senders SET suspended_at = ? WHERE id = ? AND suspended_at IS NULL AND (
        SELECT SUM(settled) >= ?
          AND (SUM(bounced) * 1000 >= SUM(settled) * ? OR SUM(complained) * 1000 >= SUM(settled) * ?)
        FROM reputation WHERE sender_id = ? AND day BETWEEN ? AND ?)`,
    args: [now, senderId, minSettled, bouncedPerMille, complainedPerMille, senderId, since, utcDay(now)],
  };
}

/** Forgets the counts of a sender that is suspended: what it was suspended for must not suspend it again. */
export function forgetReputation(accountId: string, senderId: string): Statement {
  return {
    sql: `DELETE FROM reputation WHERE sender_id IN
        (SELECT id FROM senders WHERE account_id = ? AND id = ? AND suspended_at IS NOT NULL)`,
    args: [accountId, senderId],
  };
}
