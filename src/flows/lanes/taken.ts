import { MINUTE_MS, SECOND_MS } from "../../core/time/units.ts";

/** Counts what was taken in the last minute, by the second. */
export class Taken {
  /** Seconds with messages, oldest first: at most those of a minute and the present one. */
  #seconds: { at: number; count: number }[] = [];

  add(now: number): void {
    const at = now - (now % SECOND_MS);
    const last = this.#seconds.at(-1);
    if (last?.at === at) last.count++;
    else {
      this.#drop(now);
      this.#seconds.push({ at, count: 1 });
    }
  }

  /** Returns how many there were, and since when; `now` if there was none. */
  lately(now: number): { count: number; since: number } {
    this.#drop(now);
    const count = this.#seconds.reduce((sum, second) => sum + second.count, 0);
    return { count, since: this.#seconds[0]?.at ?? now };
  }

  /** Drops what is older than a minute, and what is in the future because the clock was set back. */
  #drop(now: number): void {
    const isRecent = ({ at }: { at: number }) => at > now - MINUTE_MS - SECOND_MS && at <= now;
    if (this.#seconds.length > 0 && !this.#seconds.every(isRecent))
      this.#seconds = this.#seconds.filter(isRecent);
  }
}
