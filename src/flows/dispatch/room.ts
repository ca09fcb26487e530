import { HANG_MS } from "../send/outcome.ts";
import { LARGE_MAIL_OCTETS } from "../send/seats.ts";

/** What may be in hand at a time over all destinations. */
export interface RoomLimits {
  /** Mails being claimed, composed and signed: work of this machine, which no peer can hold up. */
  desk: number;
  /** Mails handed to connections, whose peers may let them wait. */
  underWay: number;
  /** Octets of those. */
  bytes: number;
}

/** A mail that a peer has to answer. */
export interface Departed {
  bytes: number;
  since: number;
  /** Its end was asked for already, and may take a while. */
  ending?: boolean;
  /** Ends the wait for the peer: the mail is tried again later. */
  cut(): void;
}

/** A peer that takes less is held to hang: 256 KiB a second. */
const LEAST_OCTETS_PER_MS = 262;

/** How fast the size that is expected of the next mail comes down after a big one, as a share kept for each mail. */
const EXPECTED_KEPT = 0.95;

/**
 * Counts what is in hand. The octets of a mail are known once it is composed; until then it counts with the size of
 * the biggest of late, so that a row of big mails does not fill the memory before the first one is weighed. What is known to be
 * large has taken its octets before (`send/seats`), which are a part of all, so that it does not take those of others.
 */
export class Room {
  readonly #limits: RoomLimits;
  readonly #departed = new Set<Departed>();
  #desk = 0;
  #bytes = 0;
  #expected = 0;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /** Whether one more mail may be taken up. One alone always may, however big it is. */
  isFree(): boolean {
    const { desk, underWay, bytes } = this.#limits;
    if (this.#desk >= desk) return false;
    if (this.#desk + this.#departed.size === 0) return true;
    return (
      this.#desk + this.#departed.size < underWay && this.#bytes + (this.#desk + 1) * this.#expected <= bytes
    );
  }

  sitDown(): void {
    this.#desk++;
  }

  standUp(): void {
    this.#desk--;
  }

  depart(mail: Departed): void {
    this.#departed.add(mail);
    this.#bytes += mail.bytes;
    this.#expected = Math.max(Math.min(mail.bytes, LARGE_MAIL_OCTETS), this.#expected * EXPECTED_KEPT);
  }

  arrive(mail: Departed): void {
    if (this.#departed.delete(mail)) this.#bytes -= mail.bytes;
  }

  /**
   * Where peers hold all the room, ends the waits that last longest, as far as needed: those of HANG_MS and more, and of
   * the time that a mail of its size takes a peer that is not too slow.
   * @param lacking octets that large mails are to give back to another one
   */
  clear(now: number, lacking = 0): void {
    const { desk, underWay, bytes } = this.#limits;
    if (this.#desk >= desk && lacking === 0) return;
    let count = this.#desk + this.#departed.size;
    let held = this.#bytes + (this.#desk + 1) * this.#expected;
    let missing = lacking;
    for (const mail of this.#departed) {
      const isFull = this.#desk < desk && (count >= underWay || held > bytes);
      if (!isFull && missing <= 0) return;
      const isLarge = mail.bytes > LARGE_MAIL_OCTETS;
      if (!isFull && !isLarge) continue;
      // Where the clock was put back its wait begins anew, rather than to last until the clock has come round again.
      mail.since = Math.min(mail.since, now);
      if (now - mail.since < HANG_MS + mail.bytes / LEAST_OCTETS_PER_MS) continue;
      // A peer that has a mail whole is given time to say so: until then its place is not free.
      if (mail.ending) continue;
      mail.ending = true;
      count--;
      held -= mail.bytes;
      if (isLarge) missing -= mail.bytes;
      mail.cut();
    }
  }
}
