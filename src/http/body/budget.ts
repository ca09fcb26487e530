import { Admission, type Release } from "../../core/concurrency/admission.ts";
import { AppError } from "../../core/errors.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Answer } from "../routing/answer.ts";

/** Maximum bytes of request bodies in memory at once, unfinished ones included. */
export const MAX_BODY_OCTETS = 512 * 1024 * 1024;
/**
 * Maximum bytes for one project, or for one account's own routes, so that its slow requests leave room for other
 * projects.
 */
export const MAX_BODY_OCTETS_PER_OWNER = 256 * 1024 * 1024;

/** Limits of memory that requests or answers share. A single one always fits. */
export interface BudgetLimits {
  /** Bytes at once. */
  total: number;
  /** Bytes at once for one project, or for one account's own routes. */
  perOwner: number;
  /** Message of the 503 if no room is left. */
  refusal: string;
}

export const REQUEST_BODY_LIMITS: BudgetLimits = {
  total: MAX_BODY_OCTETS,
  perOwner: MAX_BODY_OCTETS_PER_OWNER,
  refusal: "Too many large requests are in progress. Try again.",
};

/** Bytes that one body or answer holds. */
export interface Reservation {
  /** Reserves bytes in addition. Throws 503 if there is no room for them. */
  take(octets: number): void;
  /** Gives back all bytes. */
  leave(): void;
}

/** Begins an empty reservation for an owner: a project's or an account's id. */
export type BeginReservation = (owner: string) => Reservation;

/**
 * Bounds the bytes that reservations hold together. Without it a client with a key could send hundreds of the largest
 * bodies at once and finish none; each stays in memory until it has arrived whole.
 */
export function createBudget({ total, perOwner, refusal }: BudgetLimits): BeginReservation {
  // No claim waits here, so one that was just given back can always be admitted again.
  const admission = new Admission({ total, perOwner, maxWaiting: 0 });
  return (owner) => {
    let held = 0;
    let release: Release | null = null;
    const hold = (octets: number): boolean => {
      release = admission.tryEnter({ owner, weight: octets });
      return release !== null;
    };
    return {
      take(octets) {
        release?.();
        if (hold(held + octets)) held += octets;
        else {
          hold(held);
          throw new AppError("service_unavailable", refusal, { retryAfterSeconds: 1 });
        }
      },
      leave() {
        release?.();
        held = 0;
      },
    };
  };
}

/** Bytes from which a body is large. Parsing it takes several times its size in memory. */
export const LARGE_BODY_OCTETS = 1024 * 1024;
/** Maximum bytes of large bodies processed at once. A larger body is processed alone. */
export const MAX_LARGE_BODY_OCTETS = 32 * 1024 * 1024;
/**
 * Maximum number of large bodies that may wait. One project's bodies may take half of the places: as many as its
 * budget of bytes has room for.
 */
export const MAX_BODIES_WAITING = MAX_BODY_OCTETS / LARGE_BODY_OCTETS;

/**
 * Runs the work on a body of that many bytes when its owner's turn comes. Work on a small body starts at once.
 */
export type RunForBody = <Result>(
  owner: string,
  octets: number,
  work: () => Promise<Result>,
) => Promise<Result>;

/**
 * Limits the work on large bodies. Owners take turns, because work such as rendering may take seconds and one project's
 * bodies must not all come before those of another. A body that waits is unparsed bytes only.
 */
export function createLargeBodyLimit(): RunForBody {
  const admission = new Admission({
    total: MAX_LARGE_BODY_OCTETS,
    perOwner: MAX_LARGE_BODY_OCTETS,
    maxWaiting: MAX_BODIES_WAITING,
  });
  return async (owner, octets, work) => {
    if (octets < LARGE_BODY_OCTETS) return work();
    const running = admission.run({ owner, weight: octets }, async () => {
      // The work before it ended in this tick of the event loop.
      await yieldToEventLoop();
      return work();
    });
    if (running !== null) return running;
    throw new AppError("service_unavailable", "Too many large requests wait. Try again.", {
      retryAfterSeconds: 1,
    });
  };
}

/**
 * Gives other requests a tick of the event loop before and after a handler, which takes tens of milliseconds for a
 * large body.
 */
export async function yieldAround(handle: () => Answer | Promise<Answer>): Promise<Answer> {
  await yieldToEventLoop();
  const answer = await handle();
  await yieldToEventLoop();
  return answer;
}
