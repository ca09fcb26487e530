import { readFileSync, writeFileSync } from "node:fs";

/** Written to clear_refs (proc(5)), this restarts the count of the highest resident memory. */
const FORGET_PEAK = "5";

/** Resets the highest resident memory that the kernel has counted for a process. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, FORGET_PEAK);
}

/** Returns the highest resident memory of a process, bytes. */
export function peakMemory(pid: number): number {
  return statusBytes(pid, "VmHWM");
}

/** Returns the resident memory of a process now, bytes. */
export function residentMemory(pid: number): number {
  return statusBytes(pid, "VmRSS");
}

function statusBytes(pid: number, name: string): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]) * 1024;
}
