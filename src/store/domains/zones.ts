import type { Db, Statement } from "../engine/client.ts";

// Zones of the name server and their versions. They serve secondaries, which get what is public anyway. The schema marks a
// zone as due when one of its records may have changed. Times in milliseconds.

/** A zone whose records must be read again. */
export interface DueZone {
  name: string;
  /** Digest of the last version's records; "" if there is none. */
  digest: string;
}

/** Which rows are due, and until when a claim on them lasts. */
export interface DueRows {
  now: number;
  leaseUntil: number;
  /** No row waits longer than until then, unless the clock has been set back since; so it is due. */
  farthest: number;
  limit: number;
}

/** Returns the serial of a zone's last version; 0 if there is none. */
export async function zoneSerial(db: Db, name: string): Promise<number> {
  const row = await db.first<{ serial: number }>("SELECT serial FROM zones WHERE name = ?", [name]);
  return row?.serial ?? 0;
}

/**
 * Returns the statements for the start of a process, whose settings may be new: all zones are compared again, and every
 * secondary gets a notice of every zone.
 */
export function restartZones(own: string, secondaries: readonly string[], now: number): Statement[] {
  const all = JSON.stringify(secondaries);
  return [
    { sql: "DELETE FROM zones WHERE own = 1 AND name <> ?", args: [own] },
    {
      sql: "INSERT INTO zones (name, own) VALUES (?, 1) ON CONFLICT DO NOTHING",
      args: [own],
    },
    { sql: "UPDATE zones SET due_at = 0", args: [] },
    { sql: "DELETE FROM zone_notices WHERE secondary NOT IN (SELECT value FROM json_each(?))", args: [all] },
    {
      sql: `INSERT INTO zone_notices (zone, secondary, due_at)
            SELECT zones.name, given.value, ? FROM zones, json_each(?) AS given WHERE zones.serial > 0
            ON CONFLICT (zone, secondary) DO UPDATE SET due_at = excluded.due_at`,
      args: [now, all],
    },
  ];
}

/** Claims zones that are due. No other process gets them until the lease ends, unless they change again. */
export async function claimDueZones(db: Db, due: DueRows): Promise<DueZone[]> {
  const rows = await claim(db, "zones", "name, digest", due);
  return rows.map(({ name, digest }) => ({ name: String(name), digest: String(digest) }));
}

/** Most of the time nothing is due, and a read needs no commit. */
async function claim(db: Db, table: "zones" | "zone_notices", columns: string, due: DueRows) {
  const { now, leaseUntil, farthest, limit } = due;
  const isDue = `FROM ${table} WHERE due_at <= ? OR due_at > ?`;
  if ((await db.first(`SELECT 1 ${isDue} LIMIT 1`, [now, farthest])) === null) return [];
  const [written] = await db.write([
    {
      sql: `UPDATE ${table} SET due_at = ? WHERE rowid IN (SELECT rowid ${isDue} ORDER BY due_at LIMIT ?)
            RETURNING ${columns}`,
      args: [leaseUntil, now, farthest, limit],
    },
  ]);
  return written?.rows ?? [];
}

/** The finding about a claimed zone. */
export interface ReadZone {
  name: string;
  digest: string;
  /** Time at which the read began. */
  readAt: number;
  leaseUntil: number;
  /** When to compare again, if no key retires and no certificate comes into use before. */
  nextAt: number;
}

/** Returns the statement that ends the claim on a zone. If its records differ from those of the last version, it makes one. */
export function settleZone({ name, digest, readAt, leaseUntil, nextAt }: ReadZone): Statement {
  return {
    sql: `UPDATE zones SET serial = CASE WHEN digest = ? THEN serial ELSE MAX(serial + 1, ?) END, digest = ?,
            due_at = MIN(?, COALESCE(
              (SELECT MIN(retire_at) FROM dkim_keys WHERE retire_at > ? AND (zones.own = 1 OR domain_id IN
                (SELECT id FROM domains WHERE served = 1 AND name = zones.name))), ?),
              COALESCE((SELECT MIN(served_from) FROM certificates WHERE served_from > ?), ?))
          WHERE name = ? AND due_at = ?`,
    args: [
      digest,
      Math.floor(readAt / 1000),
      digest,
      nextAt,
      readAt,
      nextAt,
      readAt,
      nextAt,
      name,
      leaseUntil,
    ],
  };
}

/** Returns the statement that owes every secondary a notice of a zone. */
export function insertNotices(zone: string, secondaries: readonly string[], now: number): Statement {
  return {
    sql: `INSERT INTO zone_notices (zone, secondary, due_at)
          SELECT zones.name, given.value, ? FROM zones, json_each(?) AS given WHERE zones.name = ?
          ON CONFLICT (zone, secondary) DO UPDATE SET due_at = excluded.due_at, tries = 0, last_error = NULL`,
    args: [now, JSON.stringify(secondaries), zone],
  };
}

/** A notice that a secondary has not acknowledged. */
export interface ZoneNotice {
  zone: string;
  /** Address and port. */
  secondary: string;
  tries: number;
}

/** Claims notices that are due. */
export async function claimDueNotices(db: Db, due: DueRows): Promise<ZoneNotice[]> {
  const rows = await claim(db, "zone_notices", "zone, secondary, tries", due);
  return rows.map(({ zone, secondary, tries }) => ({
    zone: String(zone),
    secondary: String(secondary),
    tries: Number(tries),
  }));
}

/** Returns the statement that ends a claimed notice. It changes nothing if the zone has changed since. */
export function acknowledgeNotice({ zone, secondary }: ZoneNotice, leaseUntil: number): Statement {
  return {
    sql: "DELETE FROM zone_notices WHERE zone = ? AND secondary = ? AND due_at = ?",
    args: [zone, secondary, leaseUntil],
  };
}

/** Returns the statement that makes a claimed notice due again after a failed try. */
export function retryNotice(
  { zone, secondary }: ZoneNotice,
  error: string,
  at: number,
  leaseUntil: number,
): Statement {
  return {
    sql: `UPDATE zone_notices SET tries = tries + 1, last_error = ?, due_at = ?
          WHERE zone = ? AND secondary = ? AND due_at = ?`,
    args: [error, at, zone, secondary, leaseUntil],
  };
}

/** Notices that failed at a secondary. */
export interface FailedNotices {
  count: number;
  /** One of the zones, and why its notice failed. */
  zone: string;
  error: string;
}

/** Returns the notices that failed at a secondary; null if there are none. */
export async function failedNotices(db: Db, secondary: string): Promise<FailedNotices | null> {
  const row = await db.first<{ count: number; zone: string; error: string }>(
    `SELECT COUNT(*) AS count, MIN(zone) AS zone, last_error AS error FROM zone_notices
     WHERE secondary = ? AND last_error IS NOT NULL GROUP BY secondary`,
    [secondary],
  );
  return row;
}
