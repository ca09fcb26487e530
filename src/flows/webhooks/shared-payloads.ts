import { Admission, type AdmissionLimits, type Release } from "../../core/concurrency/admission.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";

/** Limits of payloads with bodies, in bytes of JSON. */
export const PAYLOAD_LIMITS: AdmissionLimits = {
  total: 32 * 1024 * 1024,
  perOwner: 8 * 1024 * 1024,
  // More than running pushes, so none is refused.
  maxWaiting: 10_000,
};

/** Bytes above which a payload is large. Signing and writing it takes the event loop a good part of a millisecond. */
const LARGE_PAYLOAD_OCTETS = 64 * 1024;
/** Large payloads are handed out one per tick of the event loop, in fair order between projects. */
const HANDOUT_LIMITS: AdmissionLimits = { total: 1, perOwner: 1, maxWaiting: 10_000 };

/**
 * Payloads made at once, each of another project. Reading, clipping and encoding one takes the event loop some
 * milliseconds. While one waits for the object store, another is made.
 */
const MAKING_LIMITS: AdmissionLimits = { total: 2, perOwner: 1, maxWaiting: 10_000 };

/** The data of an event's payload as JSON. */
export interface Payload {
  /** Returns the data that a webhook may read: with the content of its message, or without. */
  octets(withContent: boolean): Uint8Array;
}

export interface MadePayload extends Payload {
  /** Bytes that it holds. */
  size: number;
}

/** A payload for one push. Its memory is shared with other pushes of the event. */
export interface SharedPayload extends Payload {
  /**
   * Resolves in a tick of the event loop that no other large payload has. Called last before the payload is signed:
   * otherwise pushes that waited for one commit would all sign in one tick. Null if the payload is small.
   */
  turn: (() => Promise<void>) | null;
  /** Is called once, when the push has ended. */
  release: () => void;
}

/** A payload to make, unless another push of the event has made it. */
export interface PayloadOrder {
  eventId: string;
  senderId: string;
  /** Bytes that it may take while it is made. */
  most: number;
  /** Makes it. Resolves to null if its message or event is gone. */
  make: () => Promise<MadePayload | null>;
}

interface Entry {
  eventId: string;
  made: Promise<MadePayload | null>;
  users: number;
  /** Gives its bytes back. */
  release: Release;
}

/**
 * Payloads that are made once per event and shared by all running pushes of it. Their size is limited in total and
 * per project. If there is no room for a payload, its push waits. A payload without a push is dropped.
 */
export class SharedPayloads {
  readonly #admission: Admission;
  readonly #turns = new Admission(HANDOUT_LIMITS);
  readonly #making = new Admission(MAKING_LIMITS);
  readonly #entries = new Map<string, Entry>();

  constructor(limits: AdmissionLimits = PAYLOAD_LIMITS) {
    this.#admission = new Admission(limits);
  }

  /** Bytes held now. */
  get held(): number {
    return this.#admission.held;
  }

  /** Returns the event's payload, made by this call or by another one. Returns null if its message or event is gone. */
  async take(order: PayloadOrder): Promise<SharedPayload | null> {
    const entry = this.#entries.get(order.eventId) ?? this.#newEntry(order);
    entry.users++;
    try {
      const made = await entry.made;
      if (made !== null) {
        const turn = made.size > LARGE_PAYLOAD_OCTETS ? () => this.#turnOf(order.senderId) : null;
        return { octets: made.octets, turn, release: () => this.#leave(entry) };
      }
    } catch (error) {
      this.#leave(entry);
      throw error;
    }
    this.#leave(entry);
    return null;
  }

  /** Waits for a tick of the event loop in which no other large payload is handed out. */
  async #turnOf(owner: string): Promise<void> {
    const release = await this.#turns.enter({ owner, weight: 1 });
    if (release !== null) void yieldToEventLoop().then(() => release());
  }

  #newEntry(order: PayloadOrder): Entry {
    const { promise, resolve } = Promise.withResolvers<MadePayload | null>();
    const entry: Entry = { eventId: order.eventId, made: promise, users: 0, release: () => undefined };
    this.#entries.set(order.eventId, entry);
    resolve(this.#make(entry, order));
    return entry;
  }

  async #make(entry: Entry, { senderId, most, make }: PayloadOrder): Promise<MadePayload | null> {
    const admitted = this.#admission.enter({ owner: senderId, weight: most });
    if (admitted === null) throw new Error("too many payloads wait for room");
    entry.release = await admitted;
    const made = await this.#inTurn(senderId, make);
    entry.release(made?.size ?? 0);
    return made;
  }

  /** Makes a payload when its project's turn comes. The event loop serves other work before the next one is made. */
  async #inTurn(owner: string, make: PayloadOrder["make"]): Promise<MadePayload | null> {
    const release = await this.#making.enter({ owner, weight: 1 });
    if (release === null) throw new Error("too many payloads wait for their turn");
    try {
      return await make();
    } finally {
      void yieldToEventLoop().then(() => release());
    }
  }

  #leave(entry: Entry): void {
    if (--entry.users > 0) return;
    this.#entries.delete(entry.eventId);
    entry.release();
  }
}
