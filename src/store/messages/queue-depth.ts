import type { Db } from "../engine/client.ts";

/**
 * Maximum number of rows of one kind that are counted. A file is read on the thread that serves all requests.
 */
export const MAX_COUNTED = 10_000;

/** The number of rows that wait in one outbox, over all projects and processes. */
export interface OutboxDepth {
  /** Rows that are due, at most `MAX_COUNTED`. */
  due: number;
  /** Rows put off to a later try, at most `MAX_COUNTED`. */
  later: number;
  /** When the longest due row became due, milliseconds; null if none is due. */
  dueSince: number | null;
}

export interface QueueDepths {
  recipients: OutboxDepth;
  deliveries: OutboxDepth;
  /** Recipients of scheduled mail whose time is in the future, at most `MAX_COUNTED`. */
  scheduled: number;
  /** Fan-outs whose deliveries will be made later, at most `MAX_COUNTED`. */
  fanOuts: number;
}

// Each part reads a partial index from one end. Its WHERE repeats the index's, or SQLite would not use the index.
const DEPTHS = `SELECT
    (SELECT COUNT(*) FROM (SELECT 1 FROM recipients WHERE due_at <= ?1 AND status <> 'accepted' LIMIT ?2)) AS transmit,
    (SELECT COUNT(*) FROM (SELECT 1 FROM recipients WHERE due_at > ?1 AND status <> 'accepted' LIMIT ?2)) AS retry,
    (SELECT MIN(due_at) FROM recipients WHERE due_at <= ?1 AND status <> 'accepted') AS transmit_since,
    (SELECT COUNT(*) FROM (SELECT 1 FROM recipients WHERE due_at > 0 AND status = 'accepted' LIMIT ?2)) AS scheduled,
    (SELECT COUNT(*) FROM (SELECT 1 FROM webhook_deliveries WHERE due_at <= ?1 LIMIT ?2)) AS webhook,
    (SELECT COUNT(*) FROM (SELECT 1 FROM webhook_deliveries WHERE due_at > ?1 LIMIT ?2)) AS webhook_retry,
    (SELECT MIN(due_at) FROM webhook_deliveries WHERE due_at <= ?1) AS webhook_since,
    (SELECT COUNT(*) FROM (SELECT 1 FROM fan_outs LIMIT ?2)) AS fan_out`;

interface DepthRow {
  transmit: number;
  retry: number;
  transmit_since: number | null;
  scheduled: number;
  webhook: number;
  webhook_retry: number;
  webhook_since: number | null;
  fan_out: number;
}

/** Returns how much waits in the outboxes at `now`. */
export async function queueDepths(db: Db, now: number): Promise<QueueDepths> {
  const row = await db.first<DepthRow>(DEPTHS, [now, MAX_COUNTED]);
  if (row === null) throw new Error("a query of one row gave none");
  return {
    recipients: { due: row.transmit, later: row.retry, dueSince: row.transmit_since },
    deliveries: { due: row.webhook, later: row.webhook_retry, dueSince: row.webhook_since },
    scheduled: row.scheduled,
    fanOuts: row.fan_out,
  };
}
