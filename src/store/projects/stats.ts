import { HOUR_MS } from "../../core/time/units.ts";
import type { Db } from "../engine/client.ts";

/** The name that counts all domains beyond the number that a project may have in a day. */
export const OTHER_DOMAINS = "other";

/** The events that are counted by hour. */
export const FIGURES = [
  "accepted",
  "sent",
  "delivered",
  "delayed",
  "bounced",
  "complained",
  "rejected",
  "failed",
  "opened",
  "clicked",
  "received",
] as const;
export type Figure = (typeof FIGURES)[number];

/** The numbers that rates are computed from: recipients whose outcome is known, by the rule of reputation. */
export interface Settled {
  settled: number;
  settledBounced: number;
  settledComplained: number;
}

export interface FiguresAt extends Settled {
  /** Milliseconds since the epoch at which the interval begins. */
  at: number;
  figures: Readonly<Record<Figure, number>>;
}

type FiguresRow = Record<Figure, number> & {
  place: number;
  settled: number;
  settled_bounced: number;
  settled_complained: number;
};

const SUMS = [...FIGURES, "settled", "settled_bounced", "settled_complained"]
  .map((figure) => `SUM(${figure}) AS ${figure}`)
  .join(", ");

/**
 * Returns the project's figures from `from` up to `to`, oldest first. They are summed by intervals of `intervalMs`
 * (whole hours) since the epoch. Intervals without events are left out. Times in milliseconds.
 */
export async function figuresOf(
  db: Db,
  senderId: string,
  { from, to, intervalMs }: { from: number; to: number; intervalMs: number },
): Promise<FiguresAt[]> {
  const hours = Math.round(intervalMs / HOUR_MS);
  const rows = await db.all<FiguresRow>(
    `SELECT hour / ${hours} AS place, ${SUMS} FROM stats WHERE sender_id = ? AND hour >= ? AND hour < ?
      GROUP BY place ORDER BY place`,
    [senderId, Math.floor(from / HOUR_MS), Math.ceil(to / HOUR_MS)],
  );
  return rows.map(({ place, settled, settled_bounced, settled_complained, ...figures }) => ({
    at: place * intervalMs,
    figures,
    settled,
    settledBounced: settled_bounced,
    settledComplained: settled_complained,
  }));
}

/** The outcomes of mail to a domain. */
export interface DestinationCounts {
  domain: string;
  delivered: number;
  delayed: number;
  bounced: number;
}

/** Values of `outcome` that are no delivery time; see the schema. */
const DELAYED = -1;
const BOUNCED = -2;

/**
 * Returns the domains with the most outcomes on the UTC days from `fromDay` to `toDay` (since the epoch), most first.
 */
export function busiestDomains(
  db: Db,
  senderId: string,
  fromDay: number,
  toDay: number,
  limit: number,
): Promise<DestinationCounts[]> {
  return db.all<DestinationCounts>(
    `SELECT domain, SUM(CASE WHEN outcome >= 0 THEN count ELSE 0 END) AS delivered,
        SUM(CASE WHEN outcome = ${DELAYED} THEN count ELSE 0 END) AS delayed,
        SUM(CASE WHEN outcome = ${BOUNCED} THEN count ELSE 0 END) AS bounced
      FROM stats_destinations WHERE sender_id = ? AND day >= ? AND day <= ?
      GROUP BY domain ORDER BY SUM(count) DESC, domain LIMIT ?`,
    [senderId, fromDay, toDay, limit],
  );
}

/** Deliveries to a domain that took at most `ms`, and more than the next smaller step. */
export interface DurationCount {
  domain: string;
  ms: number;
  count: number;
}

/** Returns how long deliveries to the domains took on those days. */
export function deliveryDurations(
  db: Db,
  senderId: string,
  domains: readonly string[],
  fromDay: number,
  toDay: number,
): Promise<DurationCount[]> {
  const days = Array.from({ length: toDay - fromDay + 1 }, (_, at) => fromDay + at);
  // Each day is listed, so that the index leads to each domain: a range would read all of them.
  return db.all<DurationCount>(
    `SELECT domain, outcome AS ms, SUM(count) AS count FROM stats_destinations
      WHERE sender_id = ? AND day IN (SELECT value FROM json_each(?))
        AND domain IN (SELECT value FROM json_each(?)) AND outcome >= 0
      GROUP BY domain, outcome`,
    [senderId, JSON.stringify(days), JSON.stringify(domains)],
  );
}
