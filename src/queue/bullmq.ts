import { type Job as BullJob, Queue as BullQueue, Worker as BullWorker, WaitingError } from "bullmq";
import type { Redis } from "ioredis";
import { sleep } from "../core/clock.ts";
import { type LeftOutLog, leftOutLog } from "./left-out.ts";
import type { Job, JobHandler, Queue, QueueName } from "./port.ts";
import { chooseDatabase } from "./redis-facts.ts";
import { type Lifeline, openProducer, untilNoRetry, workerConnection } from "./redis.ts";
import { type QueueDeps, reason, type Trouble, troubleLog } from "./trouble.ts";
import { settlesWithin } from "./within.ts";

/** What every key of ours in Redis starts with. Two installations on one Redis need two of them, or two database numbers. */
export const DEFAULT_PREFIX = "postrider";
/** Jobs handed to Redis in one pipeline: more would hold up its other clients. */
export const ADD_BATCH = 1_000;
/** Time an `add` and a `check` may take, milliseconds. */
export const REDIS_ANSWER_MS = 5_000;
/** Jobs on their way to Redis at a time; those over it are left out, and the sweep adds them again. */
export const MAX_PENDING_JOBS = 20_000;

/** Seconds an idle worker waits in one blocking read. */
const IDLE_READ_SECONDS = 2;
/**
 * Time for which a job in hand is its worker's alone, and how often those are looked for whose worker died, milliseconds:
 * after three of them at most another has it. Until then its key is taken, and no hint helps. Jobs are in hand for as long as
 * handing over takes, so the time is short.
 */
const LOCK_MS = 5_000;
/**
 * What BullMQ says of a job whose lock has ended while it was in hand: the event loop stood still for about as long as a lock
 * lives, or Redis was flushed. Such a job may be handed out once more, up to two lock times later; that its row is claimed
 * keeps it from being worked on twice. Where another worker has it by then, the lock is that one's, or the job waits again.
 */
const LOCK_GONE =
  /^(?:(?:Missing (?:lock|key)|Lock mismatch|could not renew lock) for job |Job \S+ is not in the active state)/;
const LOCK_GONE_MESSAGE = "a job outlived its lock, it may be handed out again";
/** Wait before Redis is asked for a job again behind one that it has refused, or a connection that was lost, milliseconds. */
const RETRY_MS = 1_000;
/** Time a close takes after the jobs in hand are done: to record them and to part from Redis, milliseconds. */
const PARTING_MS = 3_000;
/** Time Redis has to answer before a close takes it for gone, milliseconds. */
const FAREWELL_MS = 1_000;
/** Lines that BullMQ keeps of its own event stream, which nobody reads. */
const EVENT_LINES = 100;

interface Hint {
  key: string;
  lane: string;
}

interface State {
  deps: QueueDeps;
  url: string;
  prefix: string;
  lifeline: Lifeline;
  trouble: Trouble;
  leftOut: LeftOutLog;
  producer: Redis;
  queues: Record<QueueName, BullQueue<Hint>>;
  workers: Map<QueueName, BullWorker<Hint>>;
  pendingJobs: number;
  inHand: number;
  /** Wakes `close` when the last job in hand is done. */
  onIdle: (() => void) | null;
}

/**
 * One job as BullMQ takes it. Its deduplication holds a key that waits to one job and, where the key's job is
 * in hand, adds it once more after that. A `jobId` made of the key could not: while a job of that id exists, a
 * second one is silently ignored, and what came in during the run would wait for the sweep.
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
    // A finished job leaves nothing behind: the database tells what became of the row.
    defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
  });
  // It only repeats what the connection has told already; without a listener it would be thrown.
  queue.on("error", () => undefined);
  return queue;
}

async function add(state: State, name: QueueName, jobs: readonly Job[]): Promise<void> {
  for (let from = 0; from < jobs.length; from += ADD_BATCH) {
    const batch = jobs.slice(from, from + ADD_BATCH);
    if (state.pendingJobs + batch.length > MAX_PENDING_JOBS) {
      state.leftOut.add(name, jobs.length - from);
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

/** Runs one job. One that arrives while the queue closes goes back for another worker. */
async function run(state: State, handler: JobHandler, job: BullJob<Hint>, token?: string): Promise<void> {
  if (state.lifeline.ended) {
    await job.moveToWait(token);
    throw new WaitingError();
  }
  state.inHand += 1;
  try {
    await handler({ key: job.data.key, lane: job.data.lane });
  } catch (error) {
    state.trouble("job failed", { key: job.data.key, error: reason(error) });
  } finally {
    state.inHand -= 1;
    if (state.inHand === 0) state.onIdle?.();
  }
}

/**
 * A worker that waits after a Redis has refused it a job. BullMQ waits only where there is no connection, and asks one that takes no
 * writes again at once: thousands of times a second, for as long as that lasts.
 */
class PatientWorker extends BullWorker<Hint> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await this.delay(RETRY_MS);
      throw error;
    }
  }
}

function openWorker(state: State, name: QueueName, handler: JobHandler, concurrency: number) {
  const worker = new PatientWorker(name, (job, token) => run(state, handler, job, token), {
    connection: workerConnection(state.deps.clock, state.url, state.lifeline),
    prefix: state.prefix,
    concurrency,
    skipVersionCheck: true,
    drainDelay: IDLE_READ_SECONDS,
    lockDuration: LOCK_MS,
    stalledInterval: LOCK_MS,
    runRetryDelay: RETRY_MS,
  });
  // Without a listener an `error` event would end the process.
  worker.on("error", (error) => {
    const kind = LOCK_GONE.test(reason(error)) ? LOCK_GONE_MESSAGE : "redis trouble";
    state.trouble(kind, { error: reason(error) });
  });
  // A handler's failure is told where it runs, so this is a job that has outlived its lock twice. Its row is due as before.
  worker.on("failed", (job, error) => {
    state.trouble("a job is given up, the sweep brings its row", {
      key: job?.data.key,
      error: reason(error),
    });
  });
  return worker;
}

/** Whether Redis answers now. A connection's own word lags behind a server that has just died. */
async function reachable(state: State): Promise<boolean> {
  try {
    return await settlesWithin(state.deps.clock, FAREWELL_MS, state.producer.ping());
  } catch {
    return false;
  }
}

/**
 * Parts from Redis. A worker whose Redis is away or whose jobs still run is cut off; its jobs go to others when
 * their locks end. Else it takes its leave, for which BullMQ waits for the end of a connection that is waiting to
 * be made again, forever: every such wait is over before it is asked.
 */
async function part(state: State): Promise<void> {
  const { clock } = state.deps;
  const force = state.inHand > 0 || !(await reachable(state));
  const waiting = untilNoRetry(state.lifeline, clock.now());
  if (!force && waiting > 0) await sleep(clock, waiting);
  const parting = [...state.workers.values()].map((worker) => worker.close(force));
  await settlesWithin(clock, PARTING_MS, Promise.allSettled(parting));
  state.producer.disconnect();
  await Promise.allSettled(Object.values(state.queues).map((queue) => queue.close()));
}

async function close(state: State, graceMs: number): Promise<void> {
  state.lifeline.ended = true;
  state.leftOut.close();
  const pausing = [...state.workers.values()].map((worker) => worker.pause(true));
  await Promise.allSettled(pausing);
  if (state.inHand > 0) {
    const idle = new Promise<void>((resolve) => {
      state.onIdle = resolve;
    });
    await settlesWithin(state.deps.clock, graceMs, idle);
  }
  await part(state);
}

async function check(state: State): Promise<void> {
  const answered = await settlesWithin(state.deps.clock, REDIS_ANSWER_MS, chooseDatabase(state.producer));
  if (!answered) throw new Error("redis did not answer");
}

/**
 * The queue on Redis, shared by all processes that name the same one. Nothing in it is needed: a flushed, restarted
 * or unreachable Redis loses hints, and the sweep adds them again. While it is away, `add` rejects within
 * REDIS_ANSWER_MS and workers wait; both go on by themselves when it is back.
 * @param url `redis://` or `rediss://`
 */
export function openBullQueue(deps: QueueDeps, url: string, prefix = DEFAULT_PREFIX): Queue {
  const trouble = troubleLog(deps);
  const lifeline: Lifeline = { ended: false, lostAt: 0 };
  const producer = openProducer(deps.clock, url, lifeline, trouble);
  const state: State = {
    deps,
    url,
    prefix,
    lifeline,
    trouble,
    leftOut: leftOutLog(deps.clock, (what) =>
      deps.log.warn("redis is slow, the sweep brings the rest", what),
    ),
    producer,
    queues: {
      transmit: openQueueOf("transmit", prefix, producer),
      retry: openQueueOf("retry", prefix, producer),
      push: openQueueOf("push", prefix, producer),
    },
    workers: new Map(),
    pendingJobs: 0,
    inHand: 0,
    onIdle: null,
  };
  let closing: Promise<void> | null = null;
  return {
    add: (name, jobs) => add(state, name, jobs),
    work(name, handler, concurrency) {
      if (state.workers.has(name)) throw new Error(`the queue ${name} has its worker already`);
      state.workers.set(name, openWorker(state, name, handler, concurrency));
    },
    check: () => check(state),
    close: (graceMs) => {
      closing ??= close(state, graceMs);
      return closing;
    },
  };
}
