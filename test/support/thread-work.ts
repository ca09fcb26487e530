import { CpuPool } from "../../src/wiring/cpu/pool.ts";

/** The tasks that worker threads of this process read and render. */
export interface ThreadWork {
  /** Number of tasks that run or wait. While it is above 0, time passes on another thread, by the system's clock. */
  readonly running: number;
  /** Stops counting. */
  restore(): void;
}

/** Counts the tasks of every pool of worker threads. */
export function threadWork(): ThreadWork {
  const pools = CpuPool.prototype as CpuPool<unknown, unknown>;
  const { run } = pools;
  let running = 0;
  pools.run = function (this: CpuPool<unknown, unknown>, ...task) {
    running++;
    return run.apply(this, task).finally(() => running--);
  };
  return {
    get running() {
      return running;
    },
    restore() {
      pools.run = run;
    },
  };
}
