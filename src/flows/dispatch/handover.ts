import type { Clock } from "../../core/clock.ts";
import { type Destination, isResting, judge, putOff, type Rest } from "./destination.ts";
import type { Departed, Room } from "./room.ts";
import type { DeliveryReport, Passage, Shipment } from "../send/outcome.ts";

/** How one mail is handed over, for its transmit. */
export interface Handover {
  /** What comes of this try where that is known without the mail; null where it must be handed over. */
  foregone(): DeliveryReport | null;
  deliver(shipment: Shipment): Promise<DeliveryReport>;
}

export interface HandoverDeps {
  clock: Clock;
  room: Room;
  /** Time that a destination rests after it could not be reached, milliseconds. */
  restMs: number;
}

/** One mail between desk and peer: keeps the counts of the room right, and what is known of the destination. */
export class OneHandover implements Handover {
  readonly #deps: HandoverDeps;
  readonly #passage: Passage;
  readonly #destination: Destination;
  readonly #changed: (rests: boolean) => void;
  /** The rest in which it was begun: it has the place of a mail that is put off, and no other. */
  readonly #begunIn: Rest | null;
  #atDesk = true;
  /** Whether the mail was given to a connection. */
  sent = false;

  /** @param changed told when a place has become free, and whether the destination rests from now on */
  constructor(
    deps: HandoverDeps,
    passage: Passage,
    destination: Destination,
    changed: (rests: boolean) => void,
  ) {
    this.#deps = deps;
    this.#passage = passage;
    this.#destination = destination;
    this.#changed = changed;
    this.#begunIn = isResting(destination, deps.clock.now()) ? destination.rest : null;
    deps.room.sitDown();
  }

  foregone(): DeliveryReport | null {
    const now = this.#deps.clock.now();
    const rest = this.#begunIn ?? (isResting(this.#destination, now) ? this.#destination.rest : null);
    if (rest !== null) return putOff(rest, now);
    return this.#passage.foregone?.() ?? null;
  }

  async deliver(shipment: Shipment): Promise<DeliveryReport> {
    const { clock, room, restMs } = this.#deps;
    this.end();
    // It may have come to rest while this mail was composed.
    const known = this.foregone();
    if (known !== null) return known;
    this.sent = true;
    const controller = new AbortController();
    const startedAt = clock.now();
    const cut = () => controller.abort();
    const departed: Departed = { bytes: shipment.raw.length, since: startedAt, cut };
    room.depart(departed);
    try {
      const delivering = this.#passage.deliver(shipment, controller.signal);
      this.#changed(false);
      const report = await delivering;
      const rests = judge(this.#destination, report, { startedAt, now: clock.now() }, restMs);
      room.arrive(departed);
      this.#changed(rests);
      return report;
    } finally {
      room.arrive(departed);
    }
  }

  /** Leaves the desk, if it still sits there. */
  end(): void {
    if (!this.#atDesk) return;
    this.#atDesk = false;
    this.#deps.room.standUp();
  }
}
