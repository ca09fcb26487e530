/**
 * Prefix of all our keys in Redis. If two installations share a Redis, they need different prefixes or database
 * numbers.
 */
export const DEFAULT_PREFIX = "postrider";

/**
 * The kinds of work in queues: a first delivery to a recipient, a retry, a webhook push. Retries have a separate
 * queue, so that new messages do not wait for them.
 */
export type QueueName = "transmit" | "retry" | "push";

/**
 * A hint that a row is due. It carries an id and a lane, and no data, because the database is the truth. A hint may
 * be lost, doubled or stale.
 */
export interface Job {
  /**
   * Identity of the row: `msg_….<ord>` for a recipient, `dlv_…` for a webhook delivery. If the key is already
   * waiting, it is not added again.
   */
  key: string;
  /** The project with the recipient's domain or the webhook. Rows with the same value wait in one list. */
  lane: string;
}

/**
 * Runs one job. The queue forgets the job even if it rejects, which is logged. If the row is still due, the sweep
 * adds it again.
 */
export type JobHandler = (job: Job) => Promise<void>;

/** The queue port. It has two adapters, in the process and BullMQ on Redis. One contract test checks both. */
export interface Queue {
  /**
   * Adds jobs for any worker, and resolves when they are handed over. If the queue is full, drops the rest, and the
   * sweep adds them again.
   */
  add(name: QueueName, jobs: readonly Job[]): Promise<void>;
  /** Starts running the jobs of that name, at most `concurrency` at a time. May be called once per name. */
  work(name: QueueName, handler: JobHandler, concurrency: number): void;
  /** Throws if the queue cannot be reached. */
  check(): Promise<void>;
  /** Stops starting jobs, waits at most `graceMs` for running ones, and closes connections. */
  close(graceMs: number): Promise<void>;
}

/** Facts that a Redis reports about itself. */
export interface RedisFacts {
  version: string;
  /** `maxmemory-policy`. */
  policy: string;
  appendOnly: boolean;
  /** True for a replica, which takes no writes. */
  isReplica: boolean;
  /** Share of its `maxmemory` that is used: 1 is full, and 0 means that it has no limit. */
  fullness: number;
  /** Its clock, milliseconds. */
  now: number;
}
