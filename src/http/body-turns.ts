import { turn } from "../core/turn.ts";
import { Fifo } from "../core/fifo.ts";

/** Octets of a body from which on it waits for its turn: reading one takes several times its size. */
export const LARGE_BODY_OCTETS = 1024 * 1024;
/** Octets of large bodies in hand at a time; a larger one is in hand alone. */
export const MAX_OCTETS_IN_HAND = 32 * 1024 * 1024;

interface Waiting {
  octets: number;
  begin: () => void;
}

/**
 * Lets large bodies be worked on a few at a time, those of one owner first come, first served, and the owners in turn: a
 * work may take seconds, as rendering does, and one project's row of them must not be in front of all others. Those that
 * wait are bytes and no more.
 */
export class BodyTurns {
  /** What waits, by owner, in the order of their turns. An owner without any is not there. */
  readonly #waiting = new Map<string, Fifo<Waiting>>();
  /** The next of those waiting, taken out of the row and not begun. */
  #next: Waiting | undefined;
  #inHand = 0;
  #octets = 0;

  /** Does the work on a body of so many octets, in its owner's turn. A small one has it at once. */
  run<Result>(owner: string, octets: number, work: () => Promise<Result>): Promise<Result> {
    return octets < LARGE_BODY_OCTETS ? work() : this.#inTurn(owner, octets, work);
  }

  async #inTurn<Result>(owner: string, octets: number, work: () => Promise<Result>): Promise<Result> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const row = this.#waiting.get(owner) ?? new Fifo<Waiting>();
    row.add({ octets, begin: resolve });
    this.#waiting.set(owner, row);
    this.#begin();
    await promise;
    // Not in the turn of the event loop in which the one before ended.
    await turn();
    try {
      return await work();
    } finally {
      this.#inHand--;
      this.#octets -= octets;
      this.#begin();
    }
  }

  #begin(): void {
    for (;;) {
      this.#next ??= this.#take();
      if (this.#next === undefined || !this.#hasRoom(this.#next.octets)) return;
      this.#inHand++;
      this.#octets += this.#next.octets;
      this.#next.begin();
      this.#next = undefined;
    }
  }

  /** The first of the owner whose turn it is; the owner's next one comes behind those of all others. */
  #take(): Waiting | undefined {
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const [owner, row] = first;
    const taken = row.take();
    this.#waiting.delete(owner);
    if (row.size > 0) this.#waiting.set(owner, row);
    return taken;
  }

  #hasRoom(octets: number): boolean {
    return this.#inHand === 0 || this.#octets + octets <= MAX_OCTETS_IN_HAND;
  }
}
