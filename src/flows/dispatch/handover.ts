import type { Clock } from "../../core/time/clock.ts";
import {
  type Destination,
  isResting,
  notTriedReport,
  recordAnswer,
  recordReport,
  type Rest,
  restWithLane,
} from "./destination.ts";
import { judge } from "./judge.ts";
import type { Delivery, InFlight } from "./in-flight-limits.ts";
import {
  type DeliveryReport,
  type DeliveryRoute,
  isBeforeContent,
  type Shipment,
} from "../deliver/outcome.ts";

/** Hands one message over, for its transmit job. */
export interface Handover {
  /** Returns the outcome of this attempt if it is known without the message, else null. */
  knownOutcome(): DeliveryReport | null;
  deliver(shipment: Shipment): Promise<DeliveryReport>;
}

export interface HandoverDeps {
  clock: Clock;
  inFlight: InFlight;
  /** Time for which a destination rests after it could not be reached, milliseconds. */
  restMs: number;
  /** Returns whether the message may take another way now. */
  hasOtherWay: () => boolean;
}

/**
 * One recipient's message from its claim to the peer's answer. Counts it in flight and records what the peer answered.
 */
export class RecipientHandover implements Handover {
  readonly #deps: HandoverDeps;
  readonly #route: DeliveryRoute;
  readonly #destination: Destination;
  readonly #changed: () => void;
  /** The rest during which the job started. The job then ends without a try, even if the rest ends first. */
  readonly #startedIn: Rest | null;
  #preparing = true;
  /** Whether the message was given to a connection. */
  sent = false;

  /** @param changed called when there may be room again, or the destination rests */
  constructor(deps: HandoverDeps, route: DeliveryRoute, destination: Destination, changed: () => void) {
    this.#deps = deps;
    this.#route = route;
    this.#destination = destination;
    this.#changed = changed;
    this.#startedIn = isResting(destination, deps.clock.elapsed()) ? destination.rest : null;
    deps.inFlight.startPreparing();
  }

  knownOutcome(): DeliveryReport | null {
    const { clock } = this.#deps;
    const isAtRest = isResting(this.#destination, clock.elapsed());
    const rest = this.#startedIn ?? (isAtRest ? this.#destination.rest : null);
    if (rest !== null)
      return this.#withOtherWay(this.#stamped(notTriedReport(rest, this.#destination.lane, clock)));
    const known = this.#route.knownOutcome?.() ?? null;
    return known === null ? null : this.#stamped(known);
  }

  async deliver(shipment: Shipment): Promise<DeliveryReport> {
    const { clock, inFlight } = this.#deps;
    this.end();
    // The destination may have started to rest while this message was composed, or its lane be full.
    restWithLane(this.#destination, clock.elapsed());
    const known = this.knownOutcome();
    if (known !== null) return known;
    this.sent = true;
    const controller = new AbortController();
    const [startedAt, startedAtTime] = [clock.elapsed(), clock.now()];
    const abort = () => controller.abort();
    const delivery: Delivery = { octets: shipment.raw.length, since: startedAt, abort };
    inFlight.startDelivery(delivery);
    const ended = this.#destination.lane?.begin();
    try {
      const delivering = this.#route.deliver(shipment, controller.signal);
      this.#changed();
      const answer = await delivering;
      // Its lane counts the answer from now on. Both together would close a new address one message early.
      ended?.();
      const report = this.#record(answer, { startedAt, now: clock.elapsed() }, startedAtTime);
      inFlight.endDelivery(delivery);
      this.#changed();
      return report;
    } finally {
      ended?.();
      inFlight.endDelivery(delivery);
    }
  }

  /** Records an answer. Returns it with what the lane makes of it. */
  #record(
    answer: DeliveryReport,
    times: { startedAt: number; now: number },
    startedAt: number,
  ): DeliveryReport {
    const destination = this.#destination;
    const { lane } = destination;
    const { report, isSign } =
      lane === null ? { report: answer, isSign: false } : judge(lane, answer, startedAt);
    if (isSign) recordAnswer(destination, times.now);
    else recordReport(destination, report, times, this.#deps.restMs);
    restWithLane(destination, times.now);
    const mayLeave = isBeforeContent(report) && isResting(destination, times.now);
    const stamped = this.#stamped(report);
    return mayLeave ? this.#withOtherWay(stamped) : stamped;
  }

  #stamped(report: DeliveryReport): DeliveryReport {
    return this.#route.stamp === undefined ? report : { ...report, ...this.#route.stamp };
  }

  #withOtherWay(report: DeliveryReport): DeliveryReport {
    return this.#deps.hasOtherWay() ? { ...report, hasOtherWay: true } : report;
  }

  /** Ends the preparation, unless it has ended. */
  end(): void {
    if (!this.#preparing) return;
    this.#preparing = false;
    this.#deps.inFlight.endPreparing();
  }
}
