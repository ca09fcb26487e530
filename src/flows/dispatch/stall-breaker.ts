import type { Clock } from "../../core/time/clock.ts";
import type { JobAdmission } from "../deliver/admission.ts";
import type { InFlight } from "./in-flight-limits.ts";

/** Time between two checks for stalled deliveries, milliseconds. */
const CHECK_MS = 1_000;

export interface StallBreakerDeps {
  clock: Clock;
  inFlight: InFlight;
  /** Admits large messages. If left out, only `inFlight` limits them. */
  largeMessageAdmission?: Pick<JobAdmission, "lacking"> | undefined;
  /** Called a while after each check, because there may be room. */
  onChecked: () => void;
}

/** Aborts stalled deliveries if messages wait because the limits are reached. Checks at most once per CHECK_MS. */
export class StallBreaker {
  readonly #deps: StallBreakerDeps;
  #checking = false;

  constructor(deps: StallBreakerDeps) {
    this.#deps = deps;
  }

  /** Checks now, unless the last check is too recent. */
  check(): void {
    if (this.#checking) return;
    this.#checking = true;
    const { clock, inFlight, onChecked } = this.#deps;
    inFlight.abortStalled(clock.elapsed(), this.#lacking());
    clock.after(CHECK_MS, () => {
      this.#checking = false;
      onChecked();
      this.checkLarge();
    });
  }

  /** Checks if a large message waits for octets that other large messages hold. */
  checkLarge(): void {
    if (this.#lacking() > 0) this.check();
  }

  #lacking(): number {
    return this.#deps.largeMessageAdmission?.lacking ?? 0;
  }
}
