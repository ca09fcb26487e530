import { Admission, type Release } from "../../core/concurrency/admission.ts";
import { AppError } from "../../core/errors.ts";

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
