import type { Job, JobHandler, Queue, QueueName } from "./port.ts";
import {
  type QueueDeps,
  reason,
  type LimitedLog,
  createLimitedLog,
  createOverflowLog,
  type OverflowLog,
} from "./limited-log.ts";
import { settlesWithin } from "../core/time/clock.ts";

/**
 * Maximum number of jobs that wait in one queue. Jobs beyond that are dropped, and the sweep adds them again.
 */
export const MAX_WAITING_JOBS = 200_000;

/** A handler and its running jobs. */
interface Worker {
  handler: JobHandler;
  concurrency: number;
  /** Key of each running job, with its lane if the job was added again during the run, else null. */
  running: Map<string, string | null>;
}

/**
 * The jobs of one name. `waiting` is both queue and index, because a Map keeps the order of insertion. Two strings
 * per job take half the memory of an object. `cursor` stays open, because a new iterator would step over the
 * entries of all deleted jobs again.
 */
interface JobList {
  waiting: Map<string, string>;
  cursor: Iterator<[string, string]> | null;
  worker: Worker | null;
  scheduled: boolean;
}

interface State {
  lists: Record<QueueName, JobList>;
  capacity: number;
  closed: boolean;
  trouble: LimitedLog;
  overflow: OverflowLog;
  /** Wakes `close` when the last running job is done. */
  onIdle: (() => void) | null;
}

function emptyList(): JobList {
  return { waiting: new Map(), cursor: null, worker: null, scheduled: false };
}

/** Takes the oldest waiting job. Returns null if none waits. */
function take(list: JobList): Job | null {
  if (list.waiting.size === 0) return null;
  list.cursor ??= list.waiting.entries();
  const next = list.cursor.next();
  if (next.done === true) {
    // The cursor had ended before these jobs came, and an ended iterator stays ended.
    list.cursor = null;
    return take(list);
  }
  const [key, lane] = next.value;
  list.waiting.delete(key);
  return { key, lane };
}

/** Starts jobs in a later tick of the event loop, so that a burst of jobs does not delay sockets. */
function schedule(state: State, list: JobList): void {
  if (list.scheduled || state.closed || list.worker === null || list.waiting.size === 0) return;
  list.scheduled = true;
  setImmediate(() => {
    list.scheduled = false;
    start(state, list);
  });
}

/** Starts jobs up to the worker's concurrency. */
function start(state: State, list: JobList): void {
  const worker = list.worker;
  if (worker === null) return;
  while (!state.closed && worker.running.size < worker.concurrency) {
    const job = take(list);
    if (job === null) return;
    worker.running.set(job.key, null);
    void run(state, list, worker, job);
  }
}

async function run(state: State, list: JobList, worker: Worker, job: Job): Promise<void> {
  try {
    await worker.handler(job);
  } catch (error) {
    state.trouble("job failed", { key: job.key, error: reason(error) });
  }
  const again = worker.running.get(job.key) ?? null;
  worker.running.delete(job.key);
  if (again !== null) list.waiting.set(job.key, again);
  schedule(state, list);
  if (busy(state) === 0) state.onIdle?.();
}

function busy(state: State): number {
  return Object.values(state.lists).reduce((sum, { worker }) => sum + (worker?.running.size ?? 0), 0);
}

/** Adds the jobs, and returns how many did not fit. */
function addAll(state: State, list: JobList, jobs: readonly Job[]): number {
  let overflow = 0;
  for (const job of jobs) {
    // The running job may have read the row before it changed, so it runs once more afterwards.
    if (list.worker?.running.has(job.key)) list.worker.running.set(job.key, job.lane);
    else if (list.waiting.has(job.key)) continue;
    else if (list.waiting.size >= state.capacity) overflow += 1;
    else list.waiting.set(job.key, job.lane);
  }
  return overflow;
}

async function close(deps: QueueDeps, state: State, graceMs: number): Promise<void> {
  state.closed = true;
  state.overflow.close();
  for (const list of Object.values(state.lists)) list.waiting.clear();
  if (busy(state) === 0) return;
  const idle = new Promise<void>((resolve) => {
    state.onIdle = resolve;
  });
  await settlesWithin(deps.clock, graceMs, idle);
}

/**
 * Opens the queue in this process: first in, first out. It is lost when the process ends, and the sweep of the next
 * start fills it again.
 * @param capacity most jobs that wait in one queue
 */
export function openMemoryQueue(deps: QueueDeps, capacity = MAX_WAITING_JOBS): Queue {
  const state: State = {
    lists: { transmit: emptyList(), retry: emptyList(), push: emptyList() },
    capacity,
    closed: false,
    trouble: createLimitedLog(deps),
    // This is information, not a warning: no message is lost, it only waits for the sweep.
    overflow: createOverflowLog(deps.clock, (what) =>
      deps.log.info("the queue is full, jobs are left to the sweep", what),
    ),
    onIdle: null,
  };
  let closing: Promise<void> | null = null;
  return {
    async add(name, jobs) {
      if (state.closed) return;
      const list = state.lists[name];
      const overflow = addAll(state, list, jobs);
      if (overflow > 0) state.overflow.add(name, overflow);
      schedule(state, list);
    },
    work(name, handler, concurrency) {
      const list = state.lists[name];
      if (list.worker !== null) throw new Error(`the queue ${name} already has a worker`);
      list.worker = { handler, concurrency, running: new Map() };
      schedule(state, list);
    },
    check: () => Promise.resolve(),
    close: (graceMs) => {
      closing ??= close(deps, state, graceMs);
      return closing;
    },
  };
}
