import type { Reached } from "../../core/audience/ab-test.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import type { Db } from "../engine/client.ts";

/** The outcomes of the messages of a broadcast. `opened` and `clicked` count recipients, without machines. */
export const BROADCAST_FIGURES = [
  "sent",
  "delivered",
  "bounced",
  "complained",
  "failed",
  "opened",
  "clicked",
  "unsubscribed",
] as const;
export type BroadcastFigures = Record<(typeof BROADCAST_FIGURES)[number], number>;

/** The figures before the first message. */
export const NO_FIGURES = Object.fromEntries(
  BROADCAST_FIGURES.map((figure) => [figure, 0]),
) as BroadcastFigures;

/** Returns the messages that arrived and the recipients who opened or clicked, from which rates are made. */
export function reachedBy({ sent, delivered, opened, clicked }: BroadcastFigures): Reached {
  return { arrived: Math.max(sent, delivered), opened, clicked };
}

const SUMS = BROADCAST_FIGURES.map((figure) => `COALESCE(SUM(f.${figure}), 0) AS ${figure}`).join(", ");

/** Returns the figures of broadcasts of the project, by id. */
export async function figuresOfBroadcasts(
  db: Db,
  senderId: string,
  ids: readonly string[],
): Promise<Map<string, BroadcastFigures>> {
  const rows = await db.all<BroadcastFigures & { id: string }>(
    `SELECT b.id, ${SUMS} FROM json_each(?) j JOIN broadcasts b ON b.id = j.value AND b.sender_id = ?
      LEFT JOIN broadcast_figures f ON f.broadcast_id = b.id GROUP BY b.id`,
    [JSON.stringify(ids), senderId],
  );
  return new Map(rows.map(({ id, ...figures }) => [id, figures]));
}

/** Figures of an interval, which begins at a time in milliseconds. */
export type FiguresAt = BroadcastFigures & { at: number };

/**
 * Returns the figures of a broadcast by intervals of `hours` since the epoch, oldest first. Intervals without an event are left out.
 * @param most maximum number of intervals
 */
export async function figuresByTime(
  db: Db,
  broadcastId: string,
  hours: number,
  most: number,
): Promise<FiguresAt[]> {
  const rows = await db.all<BroadcastFigures & { place: number }>(
    `SELECT f.hour / ? AS place, ${SUMS} FROM broadcast_figures f WHERE f.broadcast_id = ? GROUP BY place ORDER BY place LIMIT ?`,
    [hours, broadcastId, most],
  );
  return rows.map(({ place, ...figures }) => ({ at: place * hours * HOUR_MS, ...figures }));
}
