import { closeSync, openSync } from "node:fs";
import { type Clock, atMostEvery } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { MAX_IDLE } from "../../smtp/client/pool.ts";
import { maxFds } from "./process-sample.ts";

/** Interval of the checks, milliseconds. */
const LOOK_MS = 1000;
/** Share of handles in use from which on idle connections are closed. */
const SCARCE_SHARE = 0.9;
/** Share of the process's file handles for idle connections to MX hosts. */
const IDLE_SHARE = 0.2;
/** Minimum time between two log lines, milliseconds. */
const TELL_PAUSE_MS = 60_000;
/** A file that always exists. */
const ANY_FILE = "/dev/null";
/** Errors when the process or the system has no file handle left. */
const NONE_LEFT: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/** Returns the most idle connections to MX hosts. */
export function maxIdleConnections(): number {
  return Math.min(MAX_IDLE, Math.floor((maxFds() ?? Infinity) * IDLE_SHARE));
}

/**
 * Logs if no file handles are left. The runtime does not report it, and new connections, even to `/readyz` and `/metrics`,
 * wait unanswered. Returns a function that stops the watch.
 * @param onScarce called at each check that finds few handles left; it closes idle connections
 */
export function watchFileHandles(clock: Clock, onScarce: () => void): () => void {
  // Read now, because reading takes a handle.
  const limit = maxFds();
  const isToBeTold = atMostEvery(clock, TELL_PAUSE_MS);
  let cancel = (): void => undefined;
  const look = (): void => {
    cancel = clock.after(LOOK_MS, look);
    const { error, handle } = probe();
    // The system gives the lowest free number, so at least as many handles are in use.
    if (error !== null || handle >= SCARCE_SHARE * (limit ?? Infinity)) onScarce();
    if (error !== null && isToBeTold())
      log("app").error("no file handles are left, connections are not taken", { error, limit });
  };
  look();
  return () => cancel();
}

/** Opens and closes a file. Returns its handle, and the error if no handle is left. */
function probe(): { error: string | null; handle: number } {
  try {
    const handle = openSync(ANY_FILE, "r");
    closeSync(handle);
    return { error: null, handle };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return { error: NONE_LEFT.has(code) ? code : null, handle: 0 };
  }
}
