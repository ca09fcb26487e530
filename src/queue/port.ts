/**
 * The kinds of work that wait in queues: a recipient to deliver to for the first time, one to try again, a webhook
 * delivery to push. Retries have a queue of their own, so that new mail never waits behind them.
 */
export type QueueName = "transmit" | "retry" | "push";

/**
 * A hint that a row is due. It carries an id and where it belongs, never data: the database is the truth,
 * and a hint may be lost, doubled or stale at any time.
 */
export interface Job {
  /**
   * Identity of the row: `msg_….<ord>` for a recipient, `dlv_…` for a webhook delivery. A key that waits already is not
   * added again.
   */
  key: string;
  /** What rows that share a lane have in common: the recipient's domain, the webhook's id. */
  lane: string;
}

/** Does one job. A rejection is logged; either way the job is over for the queue, and the sweep brings it again if it is due. */
export type JobHandler = (job: Job) => Promise<void>;

/** The queue port. Two adapters: in the process, and BullMQ on Redis; one contract test holds both. */
export interface Queue {
  /** Adds jobs for any worker; resolves when they are handed over. Leaves out those over its capacity: the sweep adds them again. */
  add(name: QueueName, jobs: readonly Job[]): Promise<void>;
  /** Starts handing jobs of that name to `handler`, at most `concurrency` at a time. Once a name. */
  work(name: QueueName, handler: JobHandler, concurrency: number): void;
  /** Throws where the queue cannot be reached. */
  check(): Promise<void>;
  /** Stops handing out jobs, waits for those in hand, at most `graceMs`, and lets go of connections. */
  close(graceMs: number): Promise<void>;
}

/** What a Redis says of itself. */
export interface RedisFacts {
  version: string;
  /** `maxmemory-policy`. */
  policy: string;
  appendOnly: boolean;
  /** Whether it follows another one, and takes no writes itself. */
  isReplica: boolean;
  /** How much of its `maxmemory` is used: 1 is full; 0 where it has no limit. */
  fullness: number;
  /** Its clock, milliseconds. */
  now: number;
}
