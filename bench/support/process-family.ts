import { readdirSync, readFileSync } from "node:fs";

/** The process and those that it has started. */
export function familyOf(pid: number): number[] {
  const children = readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
    .filter((other) => statOf(other)?.[1] === String(pid));
  return [pid, ...children.flatMap(familyOf)];
}

/** Fields of proc(5) behind the name, which may have spaces: state, parent, …; null where the process has ended. */
export function statOf(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** Microseconds of processor time, with that of children which have ended: Linux counts in hundredths of a second. */
export function processorOf(pids: readonly number[]): number {
  const times = pids.map((pid) =>
    (statOf(pid) ?? []).slice(11, 15).reduce((sum, field) => sum + Number(field), 0),
  );
  return times.reduce((sum, time) => sum + time, 0) * 10_000;
}
