import type { Clock } from "../../core/clock.ts";
import type { Destination } from "./destination.ts";
import type { Pace } from "./pacer.ts";

/** Hands out the moments at which mail for somebody else's hosts may begin; the operator's own need none. */
export class Moments {
  readonly #clock: Clock;
  readonly #pace: Pace | null;
  readonly #granted: (destination: Destination) => void;

  /** @param granted told when a destination that had to wait has its moment */
  constructor(clock: Clock, pace: Pace | null, granted: (destination: Destination) => void) {
    this.#clock = clock;
    this.#pace = pace;
    this.#granted = granted;
  }

  /** Whether the destination's rate allows a mail now; where not, its next moment is waited for. */
  has(destination: Destination): boolean {
    if (this.#pace === null || destination.kind !== "hosts" || destination.moment) return true;
    if (destination.pacing) return false;
    const wait = this.#pace(destination.key);
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
      destination.moment = true;
      this.#granted(destination);
    });
  }
}
