import type { Db, Statement } from "../engine/client.ts";

/** Maximum number of lanes whose warm-up is kept. Those used least recently are deleted first. */
const MAX_WARM_UPS = 10_000;

/** How far an address has come with a provider, and what it has sent there on that day. */
export interface WarmUpRow {
  lane: string;
  /** Days since 1970. */
  day: number;
  step: number;
  /** Messages a day to which it grows. */
  target: number;
  /** True if the provider has refused our address on that day. */
  blocked: boolean;
  accepted: number;
  deferred: number;
  refused: number;
}

/** Returns how far all lanes have come. */
export async function listWarmUps(db: Db): Promise<WarmUpRow[]> {
  const rows = await db.all<Omit<WarmUpRow, "blocked"> & { blocked: number }>(
    `SELECT w.lane, w.day, w.step, w.target, w.blocked, COALESCE(SUM(f.accepted), 0) AS accepted,
        COALESCE(SUM(f.deferred), 0) AS deferred, COALESCE(SUM(f.refused), 0) AS refused
      FROM warm_ups w LEFT JOIN lane_figures f ON f.day = w.day AND f.lane = w.lane
      GROUP BY w.lane ORDER BY w.lane LIMIT ?`,
    [MAX_WARM_UPS],
  );
  return rows.map((row) => ({ ...row, blocked: row.blocked === 1 }));
}

/** Returns the statement that begins a lane's warm-up, unless it has begun. */
export function beginWarmUp(lane: string, day: number, target: number): Statement {
  const sql = "INSERT OR IGNORE INTO warm_ups (lane, day, step, target) VALUES (?, ?, 0, ?)";
  return { sql, args: [lane, day, target] };
}

/** Returns the statement that moves a lane to a later day, or to another target, unless another process has. */
export function continueWarmUp(
  lane: string,
  from: number,
  to: Pick<WarmUpRow, "day" | "step" | "target">,
): Statement {
  return {
    sql: `UPDATE warm_ups SET day = ?1, step = ?2, target = ?3, blocked = CASE day WHEN ?1 THEN blocked ELSE 0 END
      WHERE lane = ?4 AND day = ?5`,
    args: [to.day, to.step, to.target, lane, from],
  };
}

/** Returns the statement that notes that a provider has refused our address. */
export function noteWarmUpBlock(lane: string): Statement {
  return { sql: "UPDATE warm_ups SET blocked = 1 WHERE lane = ?", args: [lane] };
}

/** Returns the statement that deletes what is over the maximum. */
export function deleteOldWarmUps(): Statement {
  return {
    sql: "DELETE FROM warm_ups WHERE lane IN (SELECT lane FROM warm_ups ORDER BY day DESC LIMIT -1 OFFSET ?)",
    args: [MAX_WARM_UPS],
  };
}
