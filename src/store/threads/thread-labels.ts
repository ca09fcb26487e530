import type { Db } from "../engine/client.ts";

/** Maximum number of labels that are counted, and of threads whose labels are, the last active ones. */
const MAX_COUNTED_LABELS = 200;
const MAX_COUNTED_THREADS = 5_000;

/** A label in use. */
export interface LabelCount {
  label: string;
  threads: number;
}

/** Returns the labels of the project's last active threads, the most used first. */
export function countLabels(db: Db, senderId: string): Promise<LabelCount[]> {
  return db.all<{ label: string; threads: number }>(
    `SELECT value AS label, count(*) AS threads
     FROM (SELECT labels FROM threads INDEXED BY threads_by_project WHERE sender_id = ?
       ORDER BY last_message_at DESC, id DESC LIMIT ${MAX_COUNTED_THREADS}) AS recent, json_each(recent.labels)
     GROUP BY value ORDER BY threads DESC, label LIMIT ${MAX_COUNTED_LABELS}`,
    [senderId],
  );
}
