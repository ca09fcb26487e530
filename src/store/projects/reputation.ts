import { DAY_MS, HOUR_MS } from "../../core/time/units.ts";
import { type Db, type Guard, type Statement, textsByGuard } from "../engine/client.ts";
import { utcDay } from "./usage.ts";

/** UTC days over which outcomes are counted, today included. */
export const WINDOW_DAYS = 7;

/** The numbers that an outcome adds to the project's reputation of its day. */
export interface ReputationCounts {
  /** Recipients whose outcome is known. Each counts once, whatever happens to it later. */
  settled: number;
  bounced: number;
  /** How many of `bounced` are no reason to suspend the project. Left out: none. */
  excused?: number;
  complained: number;
}

/** Returns the first UTC day of the window that ends with `now`. */
function windowStart(now: number): string {
  return utcDay(now - (WINDOW_DAYS - 1) * DAY_MS);
}

const addText = textsByGuard(
  (condition) => `INSERT INTO reputation (sender_id, day, hour, settled, bounced, excused, complained)
      SELECT ?, ?, ?, ?, ?, ?, ? WHERE ${condition}
      ON CONFLICT (sender_id, day) DO UPDATE SET hour = excluded.hour, settled = settled + excluded.settled,
        bounced = bounced + excluded.bounced, excused = excused + excluded.excused, complained = complained + excluded.complained`,
);

/**
 * Returns the statement that adds to the counts of a UTC day if the guard holds. A trigger adds them to the hour's in
 * `stats`.
 */
export function addReputation(
  senderId: string,
  at: number,
  { settled, bounced, excused = 0, complained }: ReputationCounts,
  guard: Guard,
): Statement {
  return {
    sql: addText(guard),
    args: [
      senderId,
      utcDay(at),
      Math.floor(at / HOUR_MS),
      settled,
      bounced,
      excused,
      complained,
      ...guard.args,
    ],
  };
}

/**
 * Returns the statements that count a recipient with an authenticated complaint, unless a complaint of that recipient
 * counts already. They follow the statement of `addReputation`, which makes the day's row.
 * @param email the recipient's `addressKey`
 */
export function addComplainant(senderId: string, email: string, now: number, guard: Guard): Statement[] {
  const [since, today] = [windowStart(now), utcDay(now)];
  return [
    {
      sql: `UPDATE reputation SET complainants = complainants + 1 WHERE sender_id = ? AND day = ?
        AND NOT EXISTS (SELECT 1 FROM complaints WHERE sender_id = ? AND email = ? AND day BETWEEN ? AND ?)
        AND ${guard.sql}`,
      args: [senderId, today, senderId, email, since, today, ...guard.args],
    },
    {
      sql: `INSERT INTO complaints (sender_id, email, day) SELECT ?, ?, ? WHERE ${guard.sql}
        ON CONFLICT (sender_id, email) DO UPDATE SET day = excluded.day WHERE day NOT BETWEEN ? AND excluded.day`,
      args: [senderId, email, today, ...guard.args, since],
    },
  ];
}

/**
 * Rates and numbers that suspend a sender. Rates are in thousandths of the recipients settled; 0 suspends none. A
 * project of the tier `unlimited` is only warned.
 */
export interface ReputationLimits {
  /** Fewest recipients for which a rate is computed. */
  minSettled: number;
  bouncedPerMille: number;
  complainedPerMille: number;
  /** Fewest distinct recipients with an authenticated complaint for complaints to suspend a sender. */
  minComplainants: number;
}

/** Time after which a sender that is still near suspension is warned again. */
const WARN_AGAIN_MS = DAY_MS;

/**
 * Returns a query that rates the counts of a window: `over` suspends, `half` warns. `half` means half of a rate, for
 * half as many recipients or with half of the complaints. Parameters 1 to 4 are the limits, 5 and 6 the window's days.
 */
function verdicts(whose: string): string {
  return `SELECT sender_id,
      settled >= ?1 AND ((?2 > 0 AND bounced * 1000 >= settled * ?2)
        OR (?3 > 0 AND complainants >= ?4 AND complainants * 1000 >= settled * ?3)) AS over,
      (?2 > 0 AND settled * 2 >= ?1 AND bounced * 2000 >= settled * ?2)
        OR (?3 > 0 AND complainants > 0 AND complainants * 2000 >= settled * ?3
          AND (settled * 2 >= ?1 OR complainants * 2 >= ?4)) AS half
    FROM (SELECT sender_id, SUM(settled) AS settled, SUM(bounced - excused) AS bounced, SUM(complainants) AS complainants
      FROM reputation WHERE ${whose} AND day BETWEEN ?5 AND ?6 GROUP BY sender_id)`;
}

function verdictArgs(limits: ReputationLimits, now: number): (string | number)[] {
  const { minSettled, bouncedPerMille, complainedPerMille, minComplainants } = limits;
  return [minSettled, bouncedPerMille, complainedPerMille, minComplainants, windowStart(now), utcDay(now)];
}

const JUDGE = `UPDATE senders SET suspended_at = iif(verdict.over AND trust_tier <> 'unlimited', ?7, NULL), warned_at = ?7
  FROM (${verdicts("sender_id = ?8")}) AS verdict
  WHERE id = ?8 AND suspended_at IS NULL
    AND ((verdict.over AND trust_tier <> 'unlimited') OR (verdict.half AND COALESCE(warned_at, 0) <= ?7 - ?9))
  RETURNING suspended_at, trust_tier`;

/**
 * Returns the statement that suspends a sender whose counts reach a limit, or notes that they reach half of one. A
 * suspended sender stays as it is. Days after `now` do not count: the clock was ahead then.
 * The RETURNING row has `suspended_at` and `trust_tier`. A null `suspended_at`: the sender is only near suspension. No
 * row: nothing has changed.
 * @param seldom true after an outcome that lowers the rates: only the recipient who makes them count can change a row
 */
export function judgeSender(
  senderId: string,
  limits: ReputationLimits,
  now: number,
  seldom = false,
): Statement {
  return {
    sql: JUDGE,
    args: [...verdictArgs(limits, now), now, senderId, WARN_AGAIN_MS],
    seldom,
  };
}

/** Returns how many recipients of all projects were settled in a window. */
export async function settledInWeek(db: Db, now: number): Promise<number> {
  const row = await db.first<{ settled: number | null }>(
    "SELECT SUM(settled) AS settled FROM reputation WHERE day BETWEEN ? AND ?",
    [windowStart(now), utcDay(now)],
  );
  return row?.settled ?? 0;
}

/** Returns how many senders have reached one of the limits, suspended or not. */
export async function countOverLimits(db: Db, limits: ReputationLimits, now: number): Promise<number> {
  const row = await db.first<{ count: number }>(
    `SELECT COUNT(*) AS count FROM (${verdicts("TRUE")}) WHERE over`,
    verdictArgs(limits, now),
  );
  return row?.count ?? 0;
}

/** Returns at most `take` ids of senders that are not suspended and have reached half of a limit. */
export async function nearSuspension(
  db: Db,
  limits: ReputationLimits,
  now: number,
  take: number,
): Promise<string[]> {
  // Such a sender was warned within the window, because every outcome is judged.
  const warned = "sender_id IN (SELECT id FROM senders WHERE warned_at > ?7 AND suspended_at IS NULL)";
  const rows = await db.all<{ id: string }>(
    `SELECT sender_id AS id FROM (${verdicts(warned)}) WHERE half ORDER BY sender_id LIMIT ?8`,
    [...verdictArgs(limits, now), now - (WINDOW_DAYS + 1) * DAY_MS, take],
  );
  return rows.map(({ id }) => id);
}

/** Returns the statements that forget the counts of a suspended sender: the same counts must not suspend it again. */
export function forgetReputation(accountId: string, senderId: string): Statement[] {
  const suspended = `sender_id IN
    (SELECT id FROM senders WHERE account_id = ? AND id = ? AND suspended_at IS NOT NULL)`;
  const args = [accountId, senderId];
  return [
    { sql: `DELETE FROM reputation WHERE ${suspended}`, args },
    { sql: `DELETE FROM complaints WHERE ${suspended}`, args },
  ];
}

/** Deletes at most `limit` complaints from before that UTC day; returns how many. */
export async function deleteOldComplaints(db: Db, day: string, limit: number): Promise<number> {
  const [written] = await db.write([
    {
      sql: `DELETE FROM complaints
        WHERE (sender_id, email) IN (SELECT sender_id, email FROM complaints WHERE day < ? LIMIT ?)`,
      args: [day, limit],
    },
  ]);
  return written?.changes ?? 0;
}
