import { type LeftOutLog, leftOutLog } from "./left-out.ts";
import type { Job, JobHandler, Queue, QueueName } from "./port.ts";
import { type QueueDeps, reason, type Trouble, troubleLog } from "./trouble.ts";
import { settlesWithin } from "./within.ts";

/** Jobs that wait in one queue; those over it are left out, and the sweep adds them again. */
export const MAX_WAITING_JOBS = 200_000;

/** A handler and the jobs it has in hand. */
interface Worker {
  handler: JobHandler;
  concurrency: number;
  /** Key of each job in hand, and the lane it was added again with meanwhile; null where it was not. */
  inHand: Map<string, string | null>;
}

/**
 * The jobs of one name. `waiting` is the queue and its index at once: a Map keeps the order of insertion,
 * and two strings a job cost half of what an object a job would. `cursor` stays open between takes,
 * since a fresh iterator would walk again over the places of the jobs taken before.
 */
interface Line {
  waiting: Map<string, string>;
  cursor: Iterator<[string, string]> | null;
  worker: Worker | null;
  scheduled: boolean;
}

interface State {
  lines: Record<QueueName, Line>;
  capacity: number;
  closed: boolean;
  trouble: Trouble;
  leftOut: LeftOutLog;
  /** Wakes `close` when the last job in hand is done. */
  onIdle: (() => void) | null;
}

function emptyLine(): Line {
  return { waiting: new Map(), cursor: null, worker: null, scheduled: false };
}

/** Takes the job that has waited longest; null where none waits. */
function take(line: Line): Job | null {
  if (line.waiting.size === 0) return null;
  line.cursor ??= line.waiting.entries();
  const next = line.cursor.next();
  if (next.done === true) {
    // The cursor had reached the end before these jobs came; an ended iterator stays ended.
    line.cursor = null;
    return take(line);
  }
  const [key, lane] = next.value;
  line.waiting.delete(key);
  return { key, lane };
}

/** Starts jobs on a later turn of the event loop, so that no burst of jobs starves the sockets. */
function schedule(state: State, line: Line): void {
  if (line.scheduled || state.closed || line.worker === null || line.waiting.size === 0) return;
  line.scheduled = true;
  setImmediate(() => {
    line.scheduled = false;
    start(state, line);
  });
}

/** Starts jobs up to the worker's concurrency. */
function start(state: State, line: Line): void {
  const worker = line.worker;
  if (worker === null) return;
  while (!state.closed && worker.inHand.size < worker.concurrency) {
    const job = take(line);
    if (job === null) return;
    worker.inHand.set(job.key, null);
    void run(state, line, worker, job);
  }
}

async function run(state: State, line: Line, worker: Worker, job: Job): Promise<void> {
  try {
    await worker.handler(job);
  } catch (error) {
    state.trouble("job failed", { key: job.key, error: reason(error) });
  }
  const again = worker.inHand.get(job.key) ?? null;
  worker.inHand.delete(job.key);
  if (again !== null) line.waiting.set(job.key, again);
  schedule(state, line);
  if (busy(state) === 0) state.onIdle?.();
}

function busy(state: State): number {
  return Object.values(state.lines).reduce((sum, { worker }) => sum + (worker?.inHand.size ?? 0), 0);
}

/** How many of the jobs there was no room for. */
function addAll(state: State, line: Line, jobs: readonly Job[]): number {
  let leftOut = 0;
  for (const job of jobs) {
    // What the job in hand read may be older than what made somebody add it: it runs once more after.
    if (line.worker?.inHand.has(job.key)) line.worker.inHand.set(job.key, job.lane);
    else if (line.waiting.has(job.key)) continue;
    else if (line.waiting.size >= state.capacity) leftOut += 1;
    else line.waiting.set(job.key, job.lane);
  }
  return leftOut;
}

async function close(deps: QueueDeps, state: State, graceMs: number): Promise<void> {
  state.closed = true;
  state.leftOut.close();
  for (const line of Object.values(state.lines)) line.waiting.clear();
  if (busy(state) === 0) return;
  const idle = new Promise<void>((resolve) => {
    state.onIdle = resolve;
  });
  await settlesWithin(deps.clock, graceMs, idle);
}

/**
 * The queue in the process: first in, first out, gone with the process, which the sweep of the next start makes good.
 * @param capacity jobs that wait in one queue at most
 */
export function openMemoryQueue(deps: QueueDeps, capacity = MAX_WAITING_JOBS): Queue {
  const state: State = {
    lines: { transmit: emptyLine(), retry: emptyLine(), push: emptyLine() },
    capacity,
    closed: false,
    trouble: troubleLog(deps),
    // Whoever reads it has nothing to put right: no mail is lost, it only waits its turn.
    leftOut: leftOutLog(deps.clock, (what) =>
      deps.log.info("the queue is full, the sweep brings the rest", what),
    ),
    onIdle: null,
  };
  let closing: Promise<void> | null = null;
  return {
    async add(name, jobs) {
      if (state.closed) return;
      const line = state.lines[name];
      const leftOut = addAll(state, line, jobs);
      if (leftOut > 0) state.leftOut.add(name, leftOut);
      schedule(state, line);
    },
    work(name, handler, concurrency) {
      const line = state.lines[name];
      if (line.worker !== null) throw new Error(`the queue ${name} has its worker already`);
      line.worker = { handler, concurrency, inHand: new Map() };
      schedule(state, line);
    },
    check: () => Promise.resolve(),
    close: (graceMs) => {
      closing ??= close(deps, state, graceMs);
      return closing;
    },
  };
}
