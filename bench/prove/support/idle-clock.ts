import { systemClock } from "../../../src/clock.ts";
import type { Clock } from "../../../src/core/time/clock.ts";

/** Pause between two looks at the process, milliseconds. */
const LOOK_MS = 1;
/** Processor time between two looks below which the process is idle, microseconds. */
const IDLE_US = 500;
/** Looks in a row that find it idle before the clock jumps. */
const IDLE_LOOKS = 2;
/** Longest jump, milliseconds. */
const LONGEST_JUMP_MS = 250;

/** A clock that jumps to the next timer while this process is idle. */
export interface IdleClock extends Clock {
  stop(): void;
}

interface Timer {
  /** In `elapsed` of this clock. */
  at: number;
  /** Null once it was cancelled. */
  fire: (() => void) | null;
}

/**
 * Opens a clock for a rig whose parts all run in this process. While the process works, it goes as the system's clock
 * does, so that the speed of the machine is no limit; else it jumps from timer to timer.
 */
export function idleClock(): IdleClock {
  const start = systemClock.now();
  let ours = 0;
  let idleLooks = 0;
  let real = systemClock.elapsed();
  let cpu = process.cpuUsage();
  const timers: Timer[] = [];
  const look = (): void => {
    const { user, system } = process.cpuUsage(cpu);
    const passed = systemClock.elapsed() - real;
    cpu = process.cpuUsage();
    real = systemClock.elapsed();
    idleLooks = user + system < IDLE_US ? idleLooks + 1 : 0;
    const until = ours + (idleLooks >= IDLE_LOOKS ? LONGEST_JUMP_MS : passed);
    while ((timers[0]?.fire ?? true) === null) pop(timers);
    ours = Math.max(ours, Math.min(until, timers[0]?.at ?? until));
    while (timers[0] !== undefined && timers[0].at <= ours) pop(timers)?.fire?.();
  };
  const looking = setInterval(look, LOOK_MS);
  return {
    now: () => Math.floor(start + ours),
    elapsed: () => ours,
    after(delayMs, fire) {
      const timer: Timer = { at: ours + Math.max(0, delayMs), fire };
      push(timers, timer);
      return () => {
        timer.fire = null;
      };
    },
    stop: () => clearInterval(looking),
  };
}

/** Adds a timer to a binary heap, whose first one is the next. */
function push(heap: Timer[], timer: Timer): void {
  let place = heap.push(timer) - 1;
  while (place > 0) {
    const parent = (place - 1) >> 1;
    if (at(heap, parent) <= timer.at) return;
    swap(heap, place, parent);
    place = parent;
  }
}

/** Takes the next timer from the heap. */
function pop(heap: Timer[]): Timer | undefined {
  if (heap.length > 1) swap(heap, 0, heap.length - 1);
  const first = heap.pop();
  for (let place = 0; ; ) {
    const left = 2 * place + 1;
    const least = at(heap, left + 1) < at(heap, left) ? left + 1 : left;
    if (at(heap, least) >= at(heap, place)) return first;
    swap(heap, place, least);
    place = least;
  }
}

function at(heap: readonly Timer[], place: number): number {
  return heap[place]?.at ?? Number.POSITIVE_INFINITY;
}

function swap(heap: Timer[], one: number, other: number): void {
  const [a, b] = [heap[one], heap[other]];
  if (a === undefined || b === undefined) return;
  heap[one] = b;
  heap[other] = a;
}
