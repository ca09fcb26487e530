import type { Clock } from "../core/clock.ts";
import { turn } from "../core/turn.ts";

/** Milliseconds that every body has: as many as a few lost packets, or a client that makes it as it sends it, may take. */
export const BODY_BASE_MS = 30_000;
/**
 * Octets a second that a body has to bring beyond that, on the whole: an eighth of a megabit, at which 40 MiB take 43
 * minutes. Whoever would fill the memory for bodies has to keep sending at that rate in all of them (slowloris). What brings
 * less for as long as a connection may rest Bun cuts without a word, so a lower rate would help nobody.
 */
export const BODY_LEAST_RATE = 16 * 1024;

/** Milliseconds that a body may take of which so many octets have come, or have been declared. */
export function bodyTimeMs(octets: number): number {
  return BODY_BASE_MS + (octets / BODY_LEAST_RATE) * 1000;
}

/** The time of one body, running. */
export interface BodyTime {
  /** Gives it the time that so many octets more may take. */
  add(octets: number): void;
  /** It has come, or need not. */
  end(): void;
}

/**
 * Gives a body its time, and calls `late` once where it is over before the body has ended. It is counted by timers: a clock that is
 * put forward takes nothing of it, nor does a process that stood still, which then reads what has come meanwhile first.
 */
export function startBodyTime(clock: Clock, late: () => void): BodyTime {
  let octets = 0;
  let passedMs = 0;
  let ended = false;
  let cancel = (): void => undefined;
  const wait = (): void => {
    const leftMs = Math.ceil(bodyTimeMs(octets) - passedMs);
    cancel = clock.after(leftMs, () => void look(leftMs));
  };
  const look = async (waitedMs: number): Promise<void> => {
    passedMs += waitedMs;
    if (bodyTimeMs(octets) <= passedMs) await untilRead();
    if (ended) return;
    if (bodyTimeMs(octets) > passedMs) return wait();
    late();
  };
  wait();
  return {
    add(more) {
      octets += more;
    },
    end() {
      ended = true;
      cancel();
    },
  };
}

/** Lets the event loop read what lies in the sockets: timers come before them. */
async function untilRead(): Promise<void> {
  await turn();
  await turn();
}
