import { systemClock } from "../../../src/clock.ts";
import type { Clock } from "../../../src/core/time/clock.ts";

/** Pause before the next look if there is no timer, milliseconds. */
const NO_TIMER_MS = 1;

/** A clock that moves only while this process waits for it. */
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
 * Opens a clock for a rig whose parts all run in this process. It stands still while any thread of the process works, waits for
 * the disk or wants a processor, and then jumps to the next timer. So neither the speed of the machine nor its load changes
 * a figure of the run. A clock that read the processor time instead took a starved process for an idle one.
 */
export function idleClock(): IdleClock {
  const start = systemClock.now();
  let ours = 0;
  const timers: Timer[] = [];
  const wanted = new Int32Array(new SharedArrayBuffer(4));
  const watcher = new Worker(new URL("./idle-watcher.ts", import.meta.url).href);
  const watch = (): void => {
    Atomics.store(wanted, 0, 1);
    Atomics.notify(wanted, 0);
  };
  // The watcher says that all other threads have been waiting since it began to look.
  watcher.onmessage = () => {
    while ((timers[0]?.fire ?? true) === null) pop(timers);
    const [next] = timers;
    if (next === undefined) {
      setTimeout(watch, NO_TIMER_MS);
      return;
    }
    ours = Math.max(ours, next.at);
    while (timers[0] !== undefined && timers[0].at <= ours) pop(timers)?.fire?.();
    watch();
  };
  watcher.postMessage(wanted);
  watch();
  return {
    now: () => Math.floor(start + ours),
    elapsed: () => Math.floor(ours),
    after(delayMs, fire) {
      const timer: Timer = { at: ours + Math.max(0, delayMs), fire };
      push(timers, timer);
      return () => {
        timer.fire = null;
      };
    },
    stop: () => watcher.terminate(),
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
