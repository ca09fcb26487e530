import { pbkdf2 } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, setPriority } from "node:os";
import { promisify } from "node:util";
import { log } from "../../log.ts";

/** Nice value of the pool's threads. If they share a processor with others, they get a tenth of it. */
export const POOL_NICE = 10;
/** Bun's pool has a thread for each processor, and at least this many. */
const MIN_THREADS = 2;
/** Rounds that take some milliseconds, so that each thread gets one task. */
const ROUNDS = 5000;
const TASKS = "/proc/self/task";

/**
 * Lowers the priority of Bun's pool threads, which sign messages, below that of the event loop. On few processors they would
 * otherwise slow down the event loop, which gives them their work.
 *
 * Only Linux has a priority per thread (setpriority(2), "C library/kernel differences"). With one processor nothing is done,
 * because the pool would hardly run.
 */
export async function lowerPoolPriority(): Promise<void> {
  const processors = availableParallelism();
  if (process.platform !== "linux" || processors < 2) return;
  // The pool starts its threads on demand, so give each some work.
  const threads = Math.max(MIN_THREADS, processors);
  await Promise.all(Array.from({ length: threads }, () => promisify(pbkdf2)("", "", ROUNDS, 32, "sha256")));
  try {
    for (const id of poolCpus()) setPriority(id, POOL_NICE);
  } catch (error) {
    log("app").debug("the pool's threads stay as they are", { error: String(error) });
  }
}

/** Returns the system's ids of the pool's threads. */
function poolCpus(): number[] {
  return readdirSync(TASKS)
    .filter((id) => readFileSync(`${TASKS}/${id}/comm`, "latin1").startsWith("Bun Pool"))
    .map(Number);
}
