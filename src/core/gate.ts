import { Fifo } from "./fifo.ts";

/** Lets a number of tasks run at a time; the others wait in the order they came. */
export interface Gate {
  /** The task's outcome; null where too many wait already. */
  run<Value>(task: () => Promise<Value>): Promise<Value | null>;
}

/** A gate that lets `limit` tasks through at a time and has room for `maxWaiting` more. */
export function createGate(limit: number, maxWaiting: number): Gate {
  let running = 0;
  const waiting = new Fifo<() => void>();
  const enter = (): Promise<void> => {
    if (running < limit) {
      running++;
      return Promise.resolve();
    }
    return new Promise((admit) => waiting.add(admit));
  };
  const leave = (): void => {
    const next = waiting.take();
    // The place goes straight to the next one, so that a newcomer cannot slip in between.
    if (next === undefined) running--;
    else next();
  };
  return {
    async run(task) {
      if (running >= limit && waiting.size >= maxWaiting) return null;
      await enter();
      try {
        return await task();
      } finally {
        leave();
      }
    },
  };
}
