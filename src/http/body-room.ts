import { AppError } from "../core/errors.ts";

/** Octets of request bodies in memory at a time, those that are still coming included. A body alone always fits. */
export const MAX_OCTETS_HELD = 512 * 1024 * 1024;
/** The same of one project, or of an account's own routes: another's slow requests must leave room for ours. */
export const MAX_OCTETS_OF_OWNER = 256 * 1024 * 1024;

/** What bodies may hold together. One alone always fits. */
export interface RoomLimits {
  /** Octets at a time. */
  all: number;
  /** Octets at a time of one project, or of an account's own routes. */
  ofOwner: number;
  /** What is said to the next one. */
  refusal: string;
}

const REQUESTS: RoomLimits = {
  all: MAX_OCTETS_HELD,
  ofOwner: MAX_OCTETS_OF_OWNER,
  refusal: "Too many large requests are under way. Try again.",
};

/** Where one request's body lies. */
export interface BodyPlace {
  /** Makes room for so many octets more. Throws 503 where there is none: the client may come again. */
  take(octets: number): void;
  /** Gives all of it back. */
  leave(): void;
}

/**
 * Bounds what the bodies of all requests hold in memory: a client with a key could send hundreds of the largest at a
 * time, none of them to its end, and each is kept until it has come whole.
 */
export class BodyRoom {
  readonly #limits: RoomLimits;
  readonly #ofOwners = new Map<string, number>();
  #held = 0;

  constructor(limits = REQUESTS) {
    this.#limits = limits;
  }

  /** A place for one body of the owner's: a project's id, or an account's. */
  enter(owner: string): BodyPlace {
    let own = 0;
    return {
      take: (octets) => {
        this.#refuseOver(owner, own, octets);
        own += octets;
        this.#add(owner, octets);
      },
      leave: () => {
        this.#add(owner, -own);
        own = 0;
      },
    };
  }

  #refuseOver(owner: string, own: number, octets: number): void {
    const ofOwner = this.#ofOwners.get(owner) ?? 0;
    const fits = this.#held === own || this.#held + octets <= this.#limits.all;
    const fitsOwner = ofOwner === own || ofOwner + octets <= this.#limits.ofOwner;
    if (fits && fitsOwner) return;
    throw new AppError("service_unavailable", this.#limits.refusal, {
      retryAfter: 1,
    });
  }

  #add(owner: string, octets: number): void {
    this.#held += octets;
    const left = (this.#ofOwners.get(owner) ?? 0) + octets;
    if (left === 0) this.#ofOwners.delete(owner);
    else this.#ofOwners.set(owner, left);
  }
}
