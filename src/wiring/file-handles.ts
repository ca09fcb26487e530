import { closeSync, openSync } from "node:fs";
import { type Clock, seldom } from "../core/clock.ts";
import { log } from "../log.ts";
import { MAX_IDLE } from "../smtp/client/pool.ts";
import { maxFds } from "./process-sample.ts";

/** How often it is looked, milliseconds. */
const LOOK_MS = 1000;
/** Of all handles the share in use from which on those that only may be of use are given up. */
const SCARCE_SHARE = 0.9;
/** Share of the process's file handles that connections to other people's hosts may hold for later mail. */
const IDLE_SHARE = 0.2;
/** Time in which it is told once, milliseconds. */
const TELL_PAUSE_MS = 60_000;
/** Always there, and nothing is read of it. */
const ANY_FILE = "/dev/null";
/** No handle is left to this process, or to the whole system. */
const NONE_LEFT: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/** Connections to other people's hosts that are kept unused at most. */
export function maxIdleConnections(): number {
  return Math.min(MAX_IDLE, Math.floor((maxFds() ?? Infinity) * IDLE_SHARE));
}

/**
 * Tells in the log when no file handles are left. The runtime says nothing then: connections to the API and to the SMTP
 * listener, `/readyz` and `/metrics` among them, wait in the system unanswered. The returned function ends the watch.
 * @param onScarce called at each look at which few are left or none: it closes what it can
 */
export function watchFileHandles(clock: Clock, onScarce: () => void): () => void {
  // Asked for now: to read it takes a handle.
  const limit = maxFds();
  const isToBeTold = seldom(clock, TELL_PAUSE_MS);
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

/** The handle that a file is given, closed again, and the error by which none can be opened for want of handles. */
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
