import { readFileSync, writeFileSync } from "node:fs";

/** What proc(5) wants to be told so that the highest resident memory counts from now on. */
const FORGET_PEAK = "5";

/** Has the kernel forget the highest resident memory of a process so far. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, FORGET_PEAK);
}

/** The highest resident memory of a process, bytes. */
export function peakMemory(pid: number): number {
  return statusBytes(pid, "VmHWM");
}

/** Resident memory of a process now, bytes. */
export function residentMemory(pid: number): number {
  return statusBytes(pid, "VmRSS");
}

function statusBytes(pid: number, name: string): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]) * 1024;
}
