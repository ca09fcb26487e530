import type { Database } from "bun:sqlite";

/** How far a service has got with its queue. */
export interface Progress {
  /**
   * Returns how many recipients wait or are in flight. It asks only indexes of those, so that it costs the service
   * nothing.
   */
  waiting(): number;
  /** Returns how many were sent, and when the last of them was settled. It reads the whole table. */
  sent(): { count: number; ended: number | null };
}

/** Reads the progress from the service's own database. */
export function progressOf(database: Database): Progress {
  const waiting = database.query<{ count: number }, []>(
    `SELECT (SELECT count(*) FROM recipients WHERE due_at IS NOT NULL AND status <> 'accepted')
      + (SELECT count(*) FROM recipients WHERE claimed_by IS NOT NULL) AS count`,
  );
  const sent = database.query<{ count: number; ended: number | null }, []>(
    "SELECT count(*) AS count, max(last_event_at) AS ended FROM recipients WHERE status = 'sent'",
  );
  return {
    waiting: () => waiting.get()?.count ?? 0,
    sent: () => sent.get() ?? { count: 0, ended: null },
  };
}
