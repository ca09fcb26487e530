import { readdirSync, readFileSync } from "node:fs";
import type { ProcessSample } from "../metrics.ts";

/** The process as the system sees it; what only Linux tells is null elsewhere. */
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

/** Files and sockets that this process may have open; null where the system does not say. */
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
