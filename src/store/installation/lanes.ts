import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Statement } from "../engine/client.ts";

/** Maximum number of lanes with a state. Those of the lowest rank are deleted first, and of those the ones unchanged for longest. */
const MAX_LANES = 10_000;
/** Time after which a state without a change is deleted, milliseconds. */
const FORGOTTEN_AFTER_MS = 7 * DAY_MS;
/** Days whose figures are kept, the present one included. */
const DAYS_KEPT = 2;

/** The state of a lane as a process wrote it. */
export interface LaneRow {
  name: string;
  /** JSON. */
  state: string;
  version: number;
  /** Id of the instance. */
  changedBy: string;
  changedAt: number;
  /** A lane of a lower rank makes room for one of a higher. */
  rank: number;
}

/** The figures of a lane in one process on a day. */
export interface LaneFigures {
  lane: string;
  accepted: number;
  deferred: number;
  refused: number;
  /** Recipients that wait in it now. */
  waiting: number;
}

const SAVE = `INSERT INTO lanes (name, state, version, changed_by, changed_at, rank) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET state = excluded.state, version = excluded.version,
    changed_by = excluded.changed_by, changed_at = excluded.changed_at, rank = excluded.rank
  WHERE excluded.version > lanes.version`;

/** Returns the statement that stores the state of a lane, unless there is one of the same or a higher version. */
export function saveLane({ name, state, version, changedBy, changedAt, rank }: LaneRow): Statement {
  return { sql: SAVE, args: [name, state, version, changedBy, changedAt, rank] };
}

/** Returns the states of all lanes that have one. */
export function listLanes(db: Db): Promise<LaneRow[]> {
  return db.all<LaneRow>(
    `SELECT name, state, version, changed_by AS changedBy, changed_at AS changedAt, rank FROM lanes
      ORDER BY rank DESC, changed_at DESC LIMIT ?`,
    [MAX_LANES],
  );
}

/** Returns the statements that delete old states and the figures of past days. @param today days since 1970 */
export function deleteOldLanes(now: number, today: number): Statement[] {
  return [
    { sql: "DELETE FROM lanes WHERE changed_at < ?", args: [now - FORGOTTEN_AFTER_MS] },
    {
      sql: "DELETE FROM lanes WHERE name IN (SELECT name FROM lanes ORDER BY rank DESC, changed_at DESC LIMIT -1 OFFSET ?)",
      args: [MAX_LANES],
    },
    { sql: "DELETE FROM lane_figures WHERE day <= ?", args: [today - DAYS_KEPT] },
  ];
}

/** Returns the statement that adds a process's figures to those of a day. */
export function addLaneFigures(
  day: number,
  instanceId: string,
  { lane, accepted, deferred, refused, waiting }: LaneFigures,
): Statement {
  return {
    sql: `INSERT INTO lane_figures (day, lane, instance_id, accepted, deferred, refused, waiting)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (day, lane, instance_id) DO UPDATE SET accepted = accepted + excluded.accepted,
        deferred = deferred + excluded.deferred, refused = refused + excluded.refused, waiting = excluded.waiting`,
    args: [day, lane, instanceId, accepted, deferred, refused, waiting],
  };
}

/**
 * Returns the figures of all processes for a day, those of the busiest lanes first. Waiting messages are counted only in
 * processes that still run.
 */
export function laneFigures(db: Db, day: number): Promise<LaneFigures[]> {
  return db.all<LaneFigures>(
    `SELECT f.lane, SUM(f.accepted) AS accepted, SUM(f.deferred) AS deferred, SUM(f.refused) AS refused,
        SUM(CASE WHEN i.id IS NULL THEN 0 ELSE f.waiting END) AS waiting
      FROM lane_figures f LEFT JOIN instances i ON i.id = f.instance_id
      WHERE f.day = ? GROUP BY f.lane ORDER BY SUM(f.accepted + f.deferred + f.refused) DESC, f.lane LIMIT ?`,
    [day, MAX_LANES],
  );
}
