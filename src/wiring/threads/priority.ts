import { pbkdf2 } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, setPriority } from "node:os";
import { promisify } from "node:util";
import { log } from "../../log.ts";

/** How far the pool's threads stand behind all others, as a nice value: a tenth of a processor where they share one. */
export const POOL_NICE = 10;
/** Bun's pool has a thread for each processor, and this many at least. */
const MIN_THREADS = 2;
/** Work enough that no thread does the next one's, some milliseconds. */
const ROUNDS = 5000;
const TASKS = "/proc/self/task";

/**
 * Has the threads of Bun's pool, which sign mail, give way to the event loop, which alone has work for them. As equals they
 * take turns with it on few processors, and it falls behind: then they have nothing to do.
 *
 * Linux gives each thread a priority of its own (setpriority(2), "C library/kernel differences"); elsewhere nothing is done, nor
 * on one processor, where they would hardly get any of it.
 */
export async function poolBehindEventLoop(): Promise<void> {
  const processors = availableParallelism();
  if (process.platform !== "linux" || processors < 2) return;
  // The pool starts its threads as they are needed.
  const threads = Math.max(MIN_THREADS, processors);
  await Promise.all(Array.from({ length: threads }, () => promisify(pbkdf2)("", "", ROUNDS, 32, "sha256")));
  try {
    for (const id of poolThreads()) setPriority(id, POOL_NICE);
  } catch (error) {
    log("app").debug("the pool's threads stay as they are", { error: String(error) });
  }
}

/** The system's numbers of the pool's threads. */
function poolThreads(): number[] {
  return readdirSync(TASKS)
    .filter((id) => readFileSync(`${TASKS}/${id}/comm`, "latin1").startsWith("Bun Pool"))
    .map(Number);
}
