import { log } from "../log.ts";
import type { Job, Queue, QueueName } from "./port.ts";

/**
 * Hints rows that are due now to the queue, without waiting. The rows are committed, so the sweep finds them if a hint
 * is lost.
 */
export function hint(queue: Queue, name: QueueName, jobs: readonly Job[]): void {
  if (jobs.length === 0) return;
  queue.add(name, jobs).catch((error: unknown) => {
    log("queue").debug("hint lost, the sweep will find the rows", {
      name,
      jobs: jobs.length,
      error: String(error),
    });
  });
}

/** Returns the job of one recipient. */
export function transmitJob(messageId: string, ord: number, domain: string): Job {
  return { key: `${messageId}.${ord}`, lane: domain };
}

/** Returns the recipient of a transmit job's key, or null if the key has another form. */
export function parseTransmitKey(key: string): { messageId: string; ord: number } | null {
  const match = /^(msg_[0-9a-z]{26})\.(\d{1,6})$/.exec(key);
  return match?.[1] === undefined ? null : { messageId: match[1], ord: Number(match[2]) };
}
