import { signal } from "@preact/signals";
import { listen } from "../api/live.ts";
import type { LiveEvent } from "../api/types.ts";
import { throttle } from "../browser/clock.ts";

/** Maximum events kept; the oldest are dropped. */
const MAX_EVENTS = 1_000;
/** Events that arrive within this time are shown together, so that a burst does not keep the page busy. */
const BATCH_MS = 100;

/** The newest events of the project, newest first. */
export const tail = signal<readonly LiveEvent[]>([]);

/** Begins to keep events. Returns a function that ends it and forgets them. */
export function startTail(): () => void {
  let batch: LiveEvent[] = [];
  const show = throttle(
    () => BATCH_MS,
    () => {
      const events = new Map([...tail.peek(), ...batch].map((event) => [event.id, event]));
      // A stream that begins with recent events brings some that are known, and some that are older than those.
      tail.value = [...events.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, MAX_EVENTS);
      batch = [];
    },
  );
  const stop = listen((event) => {
    if (event === null) return;
    batch.push(event);
    if (batch.length > MAX_EVENTS) batch.shift();
    show();
  });
  return () => {
    stop();
    show.cancel();
    tail.value = [];
  };
}
