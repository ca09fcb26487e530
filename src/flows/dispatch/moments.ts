import type { Clock } from "../../core/time/clock.ts";
import type { Destination } from "./destination.ts";
import type { Pace } from "./pacer.ts";

/** Hands out the moments at which messages for MX hosts may start. The operator's own smarthost needs none. */
export class Moments {
  readonly #clock: Clock;
  readonly #pace: Pace | null;
  readonly #granted: (destination: Destination) => void;

  /** @param granted called when a destination that had to wait has its moment */
  constructor(clock: Clock, pace: Pace | null, granted: (destination: Destination) => void) {
    this.#clock = clock;
    this.#pace = pace;
    this.#granted = granted;
  }

  /** Returns whether the destination's rate allows a message now. If not, waits for its next moment. */
  has(destination: Destination): boolean {
    const { lane } = destination;
    if (this.#pace === null || lane === null) return true;
    if (destination.pacing) return false;
    if (lane.opensInMs > 0) {
      destination.pacing = true;
      this.#grantAfter(destination, lane.opensInMs);
      return false;
    }
    if (destination.moment || lane.ratePerMinute === null) return true;
    const wait = this.#pace(destination.key, lane.ratePerMinute);
    if (wait === 0) {
      destination.moment = true;
      return true;
    }
    destination.pacing = true;
    if (typeof wait === "number") this.#grantAfter(destination, wait);
    else wait.then((ms) => this.#grantAfter(destination, ms));
    return false;
  }

  #grantAfter(destination: Destination, ms: number): void {
    this.#clock.after(ms, () => {
      destination.pacing = false;
      // The lane may have closed in the meantime.
      destination.moment = destination.lane?.opensInMs === 0;
      this.#granted(destination);
    });
  }
}
