import { readdirSync, readFileSync } from "node:fs";
import type { ProcessSample } from "../../metrics.ts";

/** Measures the process. Values that only Linux provides are null elsewhere. */
export function processSample(): ProcessSample {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    cpuUserSeconds: user / 1e6,
    cpuSystemSeconds: system / 1e6,
    residentBytes: rss,
    heapBytes: heapUsed,
    startedAt: Math.round(performance.timeOrigin / 1000),
    openFds: orNull(() => readdirSync("/proc/self/fd").length),
    maxFds: maxFds(),
  };
}

/** Returns the most files and sockets that this process may open; null if unknown. */
export function maxFds(): number | null {
  const limits = orNull(() => readFileSync("/proc/self/limits", "latin1"));
  const limit = /^Max open files +(\d+)/m.exec(limits ?? "")?.[1];
  return limit === undefined ? null : Number(limit);
}

function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}
