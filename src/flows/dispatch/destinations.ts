import type { Clock } from "../../core/clock.ts";
import type { PassageKind } from "../send/outcome.ts";
import { type Destination, isResting, newDestination, type Place } from "./destination.ts";

/** Resting destinations remembered without mail of theirs; the oldest is forgotten first. */
export const MAX_REMEMBERED = 10_000;

/** The destinations that have mail or rest, each under its key once: two of one key would have twice its limits. */
export class Destinations {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Destination>();
  /** Those that are kept for their rest alone. */
  readonly #remembered = new Set<Destination>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The destination of that key, a new one where there is none. */
  of(key: string, kind: PassageKind): Destination {
    const destination = this.#byKey.get(key) ?? newDestination(key, kind);
    this.#byKey.set(key, destination);
    this.#remembered.delete(destination);
    return destination;
  }

  /** The destination of a place. What a line without mail leads to may have been let go of, and have come up anew. */
  at(place: Place): Destination {
    const { key } = place.destination;
    const destination = this.#byKey.get(key) ?? place.destination;
    this.#byKey.set(key, destination);
    this.#remembered.delete(destination);
    place.destination = destination;
    return destination;
  }

  /** Lets go of a destination without mail, once it rests no longer. */
  forget(destination: Destination): void {
    if (destination.turns.size + destination.inHand > 0) return;
    if (isResting(destination, this.#clock.now())) this.#remembered.add(destination);
    else this.#drop(destination);
    const [oldest] = this.#remembered;
    if (this.#remembered.size > MAX_REMEMBERED && oldest !== undefined) this.#drop(oldest);
  }

  #drop(destination: Destination): void {
    this.#remembered.delete(destination);
    if (this.#byKey.get(destination.key) === destination) this.#byKey.delete(destination.key);
  }
}
