import { openBullQueue } from "./bullmq.ts";
import { openMemoryQueue } from "./memory.ts";
import type { Queue } from "./port.ts";
import type { QueueDeps } from "./trouble.ts";

/** On a Redis, or in the process where none is named. */
export interface Place {
  redisUrl: string | null;
  /** Start of every key in Redis. */
  prefix?: string;
}

/** Where the queue lives. */
export interface QueuePlace extends Place {
  /** Whether this process works at what is in it. */
  works: boolean;
}

/** Opens the queue; never fails, an unreachable Redis shows in `check`. */
export function openQueue(deps: QueueDeps, { redisUrl, works, prefix }: QueuePlace): Queue {
  if (redisUrl !== null) return openBullQueue(deps, redisUrl, prefix);
  return works ? openMemoryQueue(deps) : openUnheardQueue();
}

/** Keeps no jobs: nobody works in this process, and no other hears of its own. Workers find the rows in the database. */
function openUnheardQueue(): Queue {
  return {
    add: () => Promise.resolve(),
    work: (name) => {
      throw new Error(`nobody was to work at the queue ${name} in this process`);
    },
    check: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
