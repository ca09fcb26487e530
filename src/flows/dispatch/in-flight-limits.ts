import { HANG_MS } from "../deliver/outcome.ts";
import { LARGE_MESSAGE_OCTETS } from "../deliver/admission.ts";

/** Limits over all destinations. */
export interface InFlightLimits {
  /** Messages being claimed, composed and signed. This is work of this machine, so no peer can delay it. */
  preparing: number;
  /** Messages in all, prepared or handed to connections. Peers may delay the latter. */
  delivering: number;
  /** Octets of messages handed to connections. */
  octets: number;
}

/** A message that a peer must answer. */
export interface Delivery {
  octets: number;
  since: number;
  /** True if it was aborted. Its end may still take a while. */
  aborting?: boolean;
  /** Ends the wait for the peer. The message is tried again later. */
  abort(): void;
}

/** A peer that takes less than 256 KiB a second is held to hang. */
const LEAST_OCTETS_PER_MS = 262;

/** Share of the expected size that is kept per message, so that it shrinks after a big one. */
const EXPECTED_KEPT = 0.95;

/**
 * Counts messages in flight and their octets. The size of a message is known once it is composed. Until then it counts
 * with the size of the biggest recent one, so that many big messages started together do not fill the memory. A large
 * message was admitted with its octets before (`send/admission`), so it is not expected to take the octets of small
 * ones.
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  readonly #deliveries = new Set<Delivery>();
  #preparing = 0;
  #octets = 0;
  #expected = 0;

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** Returns whether one more message may be started. If none is in flight, a message of any size may. */
  hasRoom(): boolean {
    const { preparing, delivering, octets } = this.#limits;
    if (this.#preparing >= preparing) return false;
    const count = this.#preparing + this.#deliveries.size;
    return count === 0 || (count < delivering && this.#octets + this.#expectedWithOneMore() <= octets);
  }

  startPreparing(): void {
    this.#preparing++;
  }

  endPreparing(): void {
    this.#preparing--;
  }

  startDelivery(delivery: Delivery): void {
    this.#deliveries.add(delivery);
    this.#octets += delivery.octets;
    const size = Math.min(delivery.octets, LARGE_MESSAGE_OCTETS);
    this.#expected = Math.max(size, this.#expected * EXPECTED_KEPT);
  }

  endDelivery(delivery: Delivery): void {
    if (this.#deliveries.delete(delivery)) this.#octets -= delivery.octets;
  }

  /**
   * Aborts the oldest stalled deliveries if a limit is reached, and no more of them than needed. A delivery has stalled
   * after HANG_MS and the time that its octets take at the least rate.
   * @param lacking octets that large messages must give back to another large one
   */
  abortStalled(now: number, lacking = 0): void {
    const { preparing, delivering, octets } = this.#limits;
    const mayPrepare = this.#preparing < preparing;
    let count = this.#preparing + this.#deliveries.size;
    let held = this.#octets + this.#expectedWithOneMore();
    let missing = lacking;
    for (const delivery of this.#deliveries) {
      const isFull = mayPrepare && (count >= delivering || held > octets);
      if (!isFull && missing <= 0) return;
      const isLarge = delivery.octets > LARGE_MESSAGE_OCTETS;
      if (!isFull && !isLarge) continue;
      if (now - delivery.since < HANG_MS + delivery.octets / LEAST_OCTETS_PER_MS) continue;
      // A peer that has the whole message gets time to accept it. Until then the message stays in flight.
      if (delivery.aborting) continue;
      delivery.aborting = true;
      count--;
      held -= delivery.octets;
      if (isLarge) missing -= delivery.octets;
      delivery.abort();
    }
  }

  /** Octets that the messages in preparation and one more are expected to have. */
  #expectedWithOneMore(): number {
    return (this.#preparing + 1) * this.#expected;
  }
}
