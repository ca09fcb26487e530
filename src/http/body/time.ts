import type { Clock } from "../../core/time/clock.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";

/** Milliseconds that every body has. Lost packets, or a client that produces the body while it sends, may take as long. */
export const BODY_BASE_MS = 30_000;
/**
 * Bytes a second that a body must bring on average after that: an eighth of a megabit, at which 40 MiB take 43 minutes. A
 * client that wants to fill the memory must keep sending all bodies at this rate (slowloris). A lower rate would not help
 * slow clients, because Bun closes a connection that is idle for `IDLE_TIMEOUT_SECONDS`.
 */
export const MIN_BODY_RATE = 16 * 1024;

/** Returns the milliseconds that a body may take if that many bytes of it have arrived or were declared. */
export function bodyTimeMs(octets: number): number {
  return BODY_BASE_MS + (octets / MIN_BODY_RATE) * 1000;
}

export interface BodyTime {
  /** Adds the time for more bytes. */
  add(octets: number): void;
  end(): void;
}

/**
 * Starts the timer of a body. If its time is over before `end`, calls `late` once. Timers count the time, so a clock that is
 * put forward does not shorten it. After the process was frozen, bytes that wait in the socket are read first.
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

/** Lets the event loop read the sockets, which come after timers. */
async function untilRead(): Promise<void> {
  await yieldToEventLoop();
  await yieldToEventLoop();
}
