import { realpathSync, statSync } from "node:fs";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "./engine.ts";

/** How often it is looked, milliseconds: what was answered shortly before a file went has gone with it anyway. */
export const PLACE_LOOK_MS = 100;
/** What SQLite calls it. It looks by itself only where there is no write-ahead log. */
const MOVED = "SQLITE_READONLY_DBMOVED";

/** Watches that a database's files are those that were opened. */
export interface Place {
  /** Throws `EngineError` where they are not, and what has just been written lies in no file that has a name. */
  check(): void;
  /** The same behind a commit, by which there is a log. */
  committed(): void;
}

/**
 * A file that is deleted, moved or replaced while it is open is written all the same, and is gone when the process ends: all
 * that was answered since would be lost, and nothing would show it (https://sqlite.org/howtocorrupt.html §2.4).
 * @param path of a database that has just been opened
 */
export function watchPlace(clock: Clock, path: string): Place {
  // SQLite puts the log beside the file that a link leads to.
  const log = `${realpathSync(path)}-wal`;
  const file = inodeOf(path);
  let logFile: Inode;
  let lookedAt: number | null = null;

  function look(): void {
    const now = clock.now();
    // Either way: a clock that was put back must not keep it from looking until it has come round again.
    if (lookedAt !== null && Math.abs(now - lookedAt) < PLACE_LOOK_MS) return;
    if (isAnother(file, path)) throw gone(path);
    if (isAnother(logFile, log)) throw gone(log);
    // Not where it is gone: everybody who asks is to be told.
    lookedAt = now;
  }

  return {
    check: look,
    committed() {
      logFile ??= inodeOf(log);
      look();
    },
  };
}

/** Null: there is no such file. Undefined: that cannot be told now, as where a folder may no longer be entered. */
type Inode = number | null | undefined;

function inodeOf(path: string): Inode {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
  } catch {
    return undefined;
  }
}

function isAnother(known: Inode, path: string): boolean {
  if (typeof known !== "number") return false;
  const found = inodeOf(path);
  return found !== undefined && found !== known;
}

function gone(path: string): EngineError {
  const message = `${path} was deleted, moved or replaced while it was open: put the database back, and restart`;
  return new EngineError(new Error(message), MOVED, null, { fault: "lost" });
}
