import {
  type Job as BullJob,
  Queue as BullQueue,
  type Worker as BullWorker,
  WaitingError,
  Worker,
} from "bullmq";
import type { Redis } from "ioredis";
import { sleep, settlesWithin } from "../core/time/clock.ts";
import { DEFAULT_PREFIX, type Job, type JobHandler, type Queue, type QueueName } from "./port.ts";
import { chooseDatabase } from "./redis-facts.ts";
import { type ConnectionState, openProducer, untilNoRetry, workerConnection } from "./redis.ts";
import {
  type QueueDeps,
  reason,
  type LimitedLog,
  createLimitedLog,
  createOverflowLog,
  type OverflowLog,
} from "./limited-log.ts";

/** Jobs sent to Redis in one pipeline. More would delay its other clients. */
export const ADD_BATCH = 1_000;
/** Longest time for an `add` and a `check`, milliseconds. */
export const REDIS_ANSWER_MS = 5_000;
/** Maximum number of jobs in flight to Redis. Jobs beyond that are dropped, and the sweep adds them again. */
export const MAX_PENDING_JOBS = 20_000;

/** Seconds that an idle worker waits in one blocking read. */
const IDLE_READ_SECONDS = 2;
/**
 * Time for which a running job belongs to its worker, and time between two searches for jobs whose worker died,
 * milliseconds. After three of them at most, another worker has the job. Until then its key is taken, and a new hint
 * has no effect. The time is short, because a job only runs for as long as it takes to hand it over.
 */
const LOCK_MS = 5_000;
/**
 * BullMQ's messages about a running job whose lock has expired: the event loop was blocked for about as long, or
 * Redis was flushed. Such a job may run again, up to two lock times later. Its row is claimed, so no work is done
 * twice. If another worker took the job, the lock is now that worker's.
 */
const LOCK_GONE =
  /^(?:(?:Missing (?:lock|key)|Lock mismatch|could not renew lock) for job |Job \S+ is not in the active state)/;
const LOCK_GONE_MESSAGE = "a job outlived its lock, it may run again";
/** Time to record finished jobs and disconnect from Redis when the queue closes, milliseconds. */
const PARTING_MS = 3_000;
/** Time in which Redis must answer while the queue closes, milliseconds. If it does not, it counts as gone. */
const FAREWELL_MS = 1_000;
/** Entries in BullMQ's own event stream, which we do not read. */
const EVENT_LINES = 100;

interface Hint {
  key: string;
  lane: string;
}

interface State {
  deps: QueueDeps;
  url: string;
  prefix: string;
  connections: ConnectionState;
  trouble: LimitedLog;
  overflow: OverflowLog;
  producer: Redis;
  queues: Record<QueueName, BullQueue<Hint>>;
  workers: Map<QueueName, BullWorker<Hint>>;
  pendingJobs: number;
  running: number;
  /** Wakes `close` when the last running job is done. */
  onIdle: (() => void) | null;
}

/**
 * Returns a job for BullMQ. Its deduplication keeps one waiting job per key. If the key's job is running, it adds one
 * more after that. A `jobId` made of the key would not. BullMQ silently ignores a second job with the same id, so a
 * hint during the run would wait for the sweep.
 */
function bullJob({ key, lane }: Job) {
  return { name: "hint", data: { key, lane }, opts: { deduplication: { id: key, keepLastIfActive: true } } };
}

function openQueueOf(name: QueueName, prefix: string, producer: Redis): BullQueue<Hint> {
  const queue = new BullQueue<Hint>(name, {
    connection: producer,
    prefix,
    skipVersionCheck: true,
    skipWaitingForReady: true,
    streams: { events: { maxLen: EVENT_LINES } },
    // A finished job is removed, because the database records what became of the row.
    defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
  });
  // The connection has reported this error already. Without a listener it would be thrown.
  queue.on("error", () => undefined);
  return queue;
}

async function add(state: State, name: QueueName, jobs: readonly Job[]): Promise<void> {
  for (let from = 0; from < jobs.length; from += ADD_BATCH) {
    const batch = jobs.slice(from, from + ADD_BATCH);
    if (state.pendingJobs + batch.length > MAX_PENDING_JOBS) {
      state.overflow.add(name, jobs.length - from);
      return;
    }
    state.pendingJobs += batch.length;
    const adding = state.queues[name].addBulk(batch.map(bullJob)).finally(() => {
      state.pendingJobs -= batch.length;
    });
    if (!(await settlesWithin(state.deps.clock, REDIS_ANSWER_MS, adding)))
      throw new Error("redis did not answer");
  }
}

/** Runs one job. If the queue is closing, puts the job back for another worker. */
async function run(state: State, handler: JobHandler, job: BullJob<Hint>, token?: string): Promise<void> {
  if (state.connections.ended) {
    await job.moveToWait(token);
    throw new WaitingError();
  }
  state.running += 1;
  try {
    await handler({ key: job.data.key, lane: job.data.lane });
  } catch (error) {
    state.trouble("job failed", { key: job.data.key, error: reason(error) });
  } finally {
    state.running -= 1;
    if (state.running === 0) state.onIdle?.();
  }
}

function openWorker(state: State, name: QueueName, handler: JobHandler, concurrency: number) {
  const worker = new BackoffWorker<Hint>(name, (job, token) => run(state, handler, job, token), {
    connection: workerConnection(state.deps.clock, state.url, state.connections),
    prefix: state.prefix,
    concurrency,
    skipVersionCheck: true,
    drainDelay: IDLE_READ_SECONDS,
    lockDuration: LOCK_MS,
    stalledInterval: LOCK_MS,
    runRetryDelay: RETRY_MS,
  });
  // Without a listener, an `error` event would end the process.
  worker.on("error", (error) => {
    const kind = LOCK_GONE.test(reason(error)) ? LOCK_GONE_MESSAGE : "redis trouble";
    state.trouble(kind, { error: reason(error) });
  });
  // Failures of handlers are logged where they run, so this job has outlived its lock twice. Its row is still due.
  worker.on("failed", (job, error) => {
    state.trouble("a job is dropped, the sweep adds it again", {
      key: job?.data.key,
      error: reason(error),
    });
  });
  return worker;
}

/** Returns whether Redis answers now. The status of a connection lags if the server has just died. */
async function reachable(state: State): Promise<boolean> {
  try {
    return await settlesWithin(state.deps.clock, FAREWELL_MS, state.producer.ping());
  } catch {
    return false;
  }
}

/**
 * Disconnects from Redis. If Redis is away or jobs still run, closes the workers by force, and other workers get the
 * jobs when the locks end. Otherwise closes them in order. BullMQ would wait forever for a connection that waits to
 * reconnect, so that wait is over first.
 */
async function disconnect(state: State): Promise<void> {
  const { clock } = state.deps;
  const force = state.running > 0 || !(await reachable(state));
  const waiting = untilNoRetry(state.connections, clock.elapsed());
  if (!force && waiting > 0) await sleep(clock, waiting);
  const parting = [...state.workers.values()].map((worker) => worker.close(force));
  await settlesWithin(clock, PARTING_MS, Promise.allSettled(parting));
  state.producer.disconnect();
  await Promise.allSettled(Object.values(state.queues).map((queue) => queue.close()));
}

async function close(state: State, graceMs: number): Promise<void> {
  state.connections.ended = true;
  state.overflow.close();
  const pausing = [...state.workers.values()].map((worker) => worker.pause(true));
  await Promise.allSettled(pausing);
  if (state.running > 0) {
    const idle = new Promise<void>((resolve) => {
      state.onIdle = resolve;
    });
    await settlesWithin(state.deps.clock, graceMs, idle);
  }
  await disconnect(state);
}

async function check(state: State): Promise<void> {
  const answered = await settlesWithin(state.deps.clock, REDIS_ANSWER_MS, chooseDatabase(state.producer));
  if (!answered) throw new Error("redis did not answer");
}

/**
 * Opens the queue on Redis, which all processes with the same URL share. If Redis is flushed, restarted or
 * unreachable, hints are lost, and the sweep adds them again. While Redis is away, `add` rejects within
 * REDIS_ANSWER_MS and workers wait. Both continue when it is back.
 * @param url `redis://` or `rediss://`
 */
export function openBullQueue(deps: QueueDeps, url: string, prefix = DEFAULT_PREFIX): Queue {
  const trouble = createLimitedLog(deps);
  const connections: ConnectionState = { ended: false, lostAt: -Infinity };
  const producer = openProducer(deps.clock, url, connections, trouble);
  const state: State = {
    deps,
    url,
    prefix,
    connections,
    trouble,
    overflow: createOverflowLog(deps.clock, (what) =>
      deps.log.warn("redis is slow, jobs are left to the sweep", what),
    ),
    producer,
    queues: {
      transmit: openQueueOf("transmit", prefix, producer),
      retry: openQueueOf("retry", prefix, producer),
      push: openQueueOf("push", prefix, producer),
    },
    workers: new Map(),
    pendingJobs: 0,
    running: 0,
    onIdle: null,
  };
  let closing: Promise<void> | null = null;
  return {
    add: (name, jobs) => add(state, name, jobs),
    work(name, handler, concurrency) {
      if (state.workers.has(name)) throw new Error(`the queue ${name} already has a worker`);
      state.workers.set(name, openWorker(state, name, handler, concurrency));
    },
    check: () => check(state),
    close: (graceMs) => {
      closing ??= close(state, graceMs);
      return closing;
    },
  };
}

/** Wait before the next request for a job if Redis refused one or the connection was lost, milliseconds. */
export const RETRY_MS = 1_000;

/**
 * A worker that waits if Redis refused it a job. BullMQ waits only if the connection is lost. If Redis takes no
 * writes, BullMQ would ask again at once, thousands of times a second.
 */
export class BackoffWorker<Data> extends Worker<Data> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await this.delay(RETRY_MS);
      throw error;
    }
  }
}
