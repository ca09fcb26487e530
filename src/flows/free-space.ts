import { atMostEvery, type Clock } from "../core/time/clock.ts";
import { AppError } from "../core/errors.ts";
import { log } from "../log.ts";

/** Free and total bytes of the database's disk. */
export interface DiskSpace {
  free: number;
  total: number;
}

/** Knows if the disk has room for new messages and content. */
export interface FreeSpace {
  /** Returns true if too little is free or the disk cannot be read. Reads the disk at most once a second. */
  low(): boolean;
  /** Reads the disk; null if it is not watched. Throws if that fails. */
  read: (() => DiskSpace) | null;
}

/** Share of the disk below which it is low, regardless of MIN_FREE_BYTES. */
export const LOW_SHARE = 0.05;
/** Time for which a reading of the disk is cached, milliseconds. */
export const SPACE_FRESH_MS = 1000;
/** Retry-After of requests that are refused because of the disk, seconds. */
export const LOW_DISK_RETRY_SECONDS = 60;

/** Used if the database is on a server, or the disk is not watched. */
export const ALWAYS_ROOM: FreeSpace = { low: () => false, read: null };

/** Returns true if less than `minFree` bytes or a twentieth of the disk is free. */
export function isLow({ free, total }: DiskSpace, minFree: number): boolean {
  return minFree > 0 && (free < minFree || free < total * LOW_SHARE);
}

/**
 * Watches the disk of the database, and logs when it becomes low and when it has room again.
 * @param read reads the disk; throws if that fails
 * @param minFree bytes; 0 turns the watch off
 */
export function watchSpace(clock: Clock, read: () => DiskSpace, minFree: number): FreeSpace {
  if (minFree === 0) return ALWAYS_ROOM;
  let low = false;
  const isStale = atMostEvery(clock, SPACE_FRESH_MS);
  return {
    read,
    low() {
      if (!isStale()) return low;
      const before = low;
      low = look(read, minFree);
      if (low && !before) log("disk").warn("the disk is low: new mail and content are refused", { minFree });
      if (!low && before) log("disk").info("the disk has room again");
      return low;
    },
  };
}

function look(read: () => DiskSpace, minFree: number): boolean {
  try {
    return isLow(read(), minFree);
  } catch (error) {
    log("disk").error("the free space of the disk cannot be read", { error: String(error) });
    return true;
  }
}

/** Returns the 503 for requests that would store content on a low disk. */
export function lowDisk(): AppError {
  return new AppError("service_unavailable", "The disk is low: nothing new can be stored now.", {
    retryAfterSeconds: LOW_DISK_RETRY_SECONDS,
  });
}
