import { log } from "../log.ts";
import type { Job, Queue, QueueName } from "../queue/port.ts";

/**
 * Tells the queue of rows that are due now. Nobody waits for it: the rows are committed, so a hint that is lost
 * costs a turn of the sweep and nothing else.
 */
export function hint(queue: Queue, name: QueueName, jobs: readonly Job[]): void {
  if (jobs.length === 0) return;
  queue.add(name, jobs).catch((error: unknown) => {
    log("queue").debug("hint lost, the sweep brings it", { name, jobs: jobs.length, error: String(error) });
  });
}

/** The job of one recipient. */
export function transmitJob(messageId: string, ord: number, domain: string): Job {
  return { key: `${messageId}.${ord}`, lane: domain };
}

/** The recipient behind a transmit job's key; null where the key is none. */
export function parseTransmitKey(key: string): { messageId: string; ord: number } | null {
  const match = /^(msg_[0-9a-z]{26})\.(\d{1,6})$/.exec(key);
  return match?.[1] === undefined ? null : { messageId: match[1], ord: Number(match[2]) };
}
