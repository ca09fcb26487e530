import { realpathSync, statSync } from "node:fs";
import type { Clock } from "../../core/time/clock.ts";
import { EngineError } from "../sql/errors.ts";

/** Shortest time between two checks, milliseconds. A write shortly before a file was removed is lost anyway. */
export const FILE_CHECK_INTERVAL_MS = 100;
/** SQLite's code for it. SQLite itself checks this only without a write-ahead log. */
const MOVED = "SQLITE_READONLY_DBMOVED";

/** Checks that the database's files are still those that were opened. */
export interface FileIdentity {
  /** Throws `EngineError` if they are not: the last writes went to files that no longer have a name. */
  check(): void;
  /** Does the same after a commit, when the write-ahead log exists. */
  checkAfterCommit(): void;
}

/**
 * Watches the files of an open database. If a file is deleted, moved or replaced, the process would go on writing to the old
 * one, and lose everything when it ends (https://sqlite.org/howtocorrupt.html §2.4).
 * @param path of a database that was just opened
 */
export function watchFileIdentity(clock: Clock, path: string): FileIdentity {
  // If the path is a link, SQLite puts the log next to the file that it leads to.
  const log = `${realpathSync(path)}-wal`;
  const file = inodeOf(path);
  let logFile: Inode;
  let checkedAt = Number.NEGATIVE_INFINITY;

  function check(): void {
    const now = clock.elapsed();
    if (now - checkedAt < FILE_CHECK_INTERVAL_MS) return;
    if (isReplaced(file, path)) throw replaced(path);
    if (isReplaced(logFile, log)) throw replaced(log);
    // Not set before a throw: every later caller must get the error, too.
    checkedAt = now;
  }

  return {
    check,
    checkAfterCommit() {
      logFile ??= inodeOf(log);
      check();
    },
  };
}

/** The number of a file; null if there is no such file; undefined if it cannot be read, for example for lack of permission. */
type Inode = number | null | undefined;

function inodeOf(path: string): Inode {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
  } catch {
    return undefined;
  }
}

function isReplaced(known: Inode, path: string): boolean {
  if (typeof known !== "number") return false;
  const found = inodeOf(path);
  return found !== undefined && found !== known;
}

function replaced(path: string): EngineError {
  const message = `${path} was deleted, moved or replaced while it was open: put the database back, and restart`;
  return new EngineError(new Error(message), MOVED, null, { fault: "lost" });
}
