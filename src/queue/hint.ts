import { actingAsService } from "../core/actor.ts";
import { log } from "../log.ts";
import type { Job, Queue, QueueName } from "./port.ts";

/**
 * Hints rows that are due now to the queue, without waiting. The rows are committed, so the sweep finds them if a hint
 * is lost.
 * @param lost called if the queue does not take the jobs, for example because Redis is full
 */
export function hint(
  queue: Queue,
  name: QueueName,
  jobs: readonly Job[],
  lost: () => void = () => undefined,
): void {
  if (jobs.length === 0) return;
  actingAsService(() => queue.add(name, jobs)).catch((error: unknown) => {
    log("queue").debug("hint lost, the sweep will find the rows", {
      name,
      jobs: jobs.length,
      error: String(error),
    });
    lost();
  });
}

/** A recipient whose turn and way are decided by its project, its domain, whether it is bulk mail, and the From domain. */
export interface TransmitLane {
  senderId: string;
  domain: string;
  /** False if left out. */
  bulk?: boolean;
  /** Id of the From domain if that has its own routes. Null if left out. */
  routedBy?: string | null;
}

const BULK = "bulk";

/** Returns the job of one recipient. */
export function transmitJob(messageId: string, ord: number, lane: TransmitLane): Job {
  return { key: `${messageId}.${ord}`, lane: transmitLane(lane) };
}

/** Returns the lane of a transmit job. */
export function transmitLane({ senderId, domain, bulk = false, routedBy = null }: TransmitLane): string {
  return `${senderId} ${domain}${bulk ? ` ${BULK}` : ""}${routedBy === null ? "" : ` ${routedBy}`}`;
}

/** Reads the lane of a transmit job. A lane of one word is a domain. */
export function parseTransmitLane(lane: string): Required<TransmitLane> {
  const [senderId = "", domain, ...more] = lane.split(" ");
  if (domain === undefined) return { senderId: "", domain: senderId, bulk: false, routedBy: null };
  return { senderId, domain, bulk: more[0] === BULK, routedBy: more.find((word) => word !== BULK) ?? null };
}

/** Returns the recipient of a transmit job's key, or null if the key has another form. */
export function parseTransmitKey(key: string): { messageId: string; ord: number } | null {
  const match = /^(msg_[0-9a-z]{26})\.(\d{1,6})$/.exec(key);
  return match?.[1] === undefined ? null : { messageId: match[1], ord: Number(match[2]) };
}
