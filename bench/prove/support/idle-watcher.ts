/** A thread that finds the moments in which all other threads of the process wait, by the kernel's account of them. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

declare const self: Worker;

const TASKS = "/proc/self/task";
/** Pause between two looks, milliseconds. What one thread hands to another, or to a socket, has woken it by then. */
const LOOK_MS = 0.2;

/** Returns how often each thread has run; null if one runs, wants a processor, or waits for the disk. */
function runs(own: string): string | null {
  const counts: string[] = [];
  for (const thread of readdirSync(TASKS)) {
    if (thread === own) continue;
    const stat = fileOf(thread, "stat");
    // The name of a thread may hold any character, so its state comes after the last parenthesis.
    if (stat.charAt(stat.lastIndexOf(")") + 2) !== "S") return null;
    counts.push(`${thread} ${fileOf(thread, "schedstat").split(" ").at(-1)}`);
  }
  return counts.join();
}

/** Returns a file of a thread; nothing if it has just ended. */
function fileOf(thread: string, name: string): string {
  try {
    return readFileSync(`${TASKS}/${thread}/${name}`, "latin1");
  } catch {
    return "";
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
}

self.onmessage = ({ data: wanted }: MessageEvent<Int32Array>) => {
  const own = readlinkSync("/proc/thread-self").split("/").at(-1) ?? "";
  for (;;) {
    Atomics.wait(wanted, 0, 0);
    Atomics.store(wanted, 0, 0);
    let before: string | null = null;
    for (;;) {
      const now = runs(own);
      if (now !== null && now === before) break;
      before = now;
      pause();
    }
    self.postMessage(null);
  }
};
