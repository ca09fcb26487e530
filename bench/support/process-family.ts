import { readdirSync, readFileSync } from "node:fs";

/** Returns the process and all processes that it has started. */
export function familyOf(pid: number): number[] {
  const children = readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
    .filter((other) => statOf(other)?.[1] === String(pid));
  return [pid, ...children.flatMap(familyOf)];
}

/**
 * Returns the fields of proc(5) after the name, which can contain spaces: state, parent, …; null if the process has
 * ended.
 */
export function statOf(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** Returns microseconds of processor time, with that of ended children. Linux counts in hundredths of a second. */
export function processorOf(pids: readonly number[]): number {
  const times = pids.map((pid) =>
    (statOf(pid) ?? []).slice(11, 15).reduce((sum, field) => sum + Number(field), 0),
  );
  return times.reduce((sum, time) => sum + time, 0) * 10_000;
}
