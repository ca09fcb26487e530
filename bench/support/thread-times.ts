/** Processor time of a process by the work of its threads, from proc(5). */
import { readdirSync, readFileSync } from "node:fs";

/** Microseconds so far: the event loop, the threads that read messages, libSQL's, and those of Bun itself. */
export interface ThreadTimes {
  loop: number;
  read: number;
  commit: number;
  rest: number;
}

/** Names of threads, in which Linux keeps 15 characters. */
const READ = "Worker";
const COMMIT = /^tokio-/;

/** Returns the processor time of the service's threads. Threads that have ended are left out. */
export function threadTimes(pid: number): ThreadTimes {
  const times: ThreadTimes = { loop: 0, read: 0, commit: 0, rest: 0 };
  for (const id of readdirSync(`/proc/${pid}/task`)) {
    const read = (name: string): string => readFileSync(`/proc/${pid}/task/${id}/${name}`, "latin1");
    const name = read("comm").trim();
    const nanoseconds = Number(read("schedstat").split(" ")[0]);
    times[partOf(id === String(pid), name)] += nanoseconds / 1000;
  }
  return times;
}

function partOf(isFirst: boolean, name: string): keyof ThreadTimes {
  if (isFirst) return "loop";
  if (name === READ) return "read";
  return COMMIT.test(name) ? "commit" : "rest";
}

const TICK_MICROSECONDS = 10_000;

/** Returns the processor time of this process's children that have ended, microseconds. */
export function childrenTime(): number {
  const stat = readFileSync("/proc/self/stat", "latin1");
  // Fields 16 and 17 of proc(5), counted after the name, which can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * TICK_MICROSECONDS;
}
