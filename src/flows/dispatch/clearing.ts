import type { Clock } from "../../core/clock.ts";
import type { Seats } from "../send/seats.ts";
import type { Room } from "./room.ts";

/** Time between two looks for mail that hangs, where all room is taken, milliseconds. */
const CLEAR_MS = 1_000;

export interface ClearingDeps {
  clock: Clock;
  room: Room;
  /** What large mails take their octets from; left out: there is no bound but that of the room. */
  largeMailSeats?: Pick<Seats, "lacking"> | undefined;
  /** Called a while after each look: there may be room. */
  looked: () => void;
}

/** Where peers hold all the room, or all that large mails have, looks once a while whether some of them hang. */
export class Clearing {
  readonly #deps: ClearingDeps;
  #underWay = false;

  constructor(deps: ClearingDeps) {
    this.#deps = deps;
  }

  /** Looks now, or after the look before this one. */
  look(): void {
    if (this.#underWay) return;
    this.#underWay = true;
    const { clock, room, looked } = this.#deps;
    room.clear(clock.now(), this.#lacking());
    clock.after(CLEAR_MS, () => {
      this.#underWay = false;
      looked();
      this.lookForLarge();
    });
  }

  /** Looks where a large mail waits for octets that others have. */
  lookForLarge(): void {
    if (this.#lacking() > 0) this.look();
  }

  #lacking(): number {
    return this.#deps.largeMailSeats?.lacking ?? 0;
  }
}
