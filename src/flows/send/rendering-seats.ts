import type { Clock } from "../../core/clock.ts";
import { Fifo } from "../../core/fifo.ts";

/**
 * Mails of a project whose template is rendered that are worked on at a time. The thread that renders does a project's one after
 * another, so it has the next ones at hand; the rest waits outside, with nothing in memory but its key.
 */
export const SEATS_OF_PROJECT = 16;
/** The same of all projects: what is left of the desk is for mail that waits for no rendering. */
export const SEATS = 32;
/** Mails that wait outside at most. A project's have half of what is left, so others find room. */
export const MAX_OUTSIDE = 20_000;
/** Time between two looks for seats that nobody who was called has taken, milliseconds. */
export const LOOK_MS = 1_000;

interface Row {
  held: number;
  /** Called since the last look, and not come yet. */
  called: number;
  readonly outside: Fifo<() => void>;
}

/**
 * Seats for mails whose templates are to be rendered, each of which may take seconds. Without them one project's would take all
 * places at the desk (`dispatch/room`), and everybody's mail wait for it.
 */
export class RenderingSeats {
  readonly #clock: Clock;
  readonly #rows = new Map<string, Row>();
  #held = 0;
  #called = 0;
  #outside = 0;
  #looking = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A seat, as what gives it back, once or several times. Null: there is none for the project now. */
  take(senderId: string): (() => void) | null {
    const row = this.#rowOf(senderId);
    if (this.#held >= SEATS || row.held >= SEATS_OF_PROJECT) return null;
    row.held++;
    this.#held++;
    if (row.called > 0) {
      row.called--;
      this.#called--;
    }
    let given = false;
    return () => {
      if (given) return;
      given = true;
      row.held--;
      this.#held--;
      this.#forget(senderId, row);
      this.#call();
    };
  }

  /**
   * Resolves when there may be a seat, which another may have taken by then. Null where too many wait: whoever asks lets the
   * mail be, and the sweep brings it again.
   */
  free(senderId: string): Promise<void> | null {
    const row = this.#rowOf(senderId);
    if (row.outside.size >= (MAX_OUTSIDE - this.#outside) / 2) return null;
    this.#outside++;
    this.#lookLater();
    return new Promise((resolve) => row.outside.add(resolve));
  }

  #rowOf(senderId: string): Row {
    const row = this.#rows.get(senderId) ?? { held: 0, called: 0, outside: new Fifo<() => void>() };
    this.#rows.set(senderId, row);
    return row;
  }

  #forget(senderId: string, row: Row): void {
    if (row.held + row.outside.size === 0) this.#rows.delete(senderId);
  }

  /** Calls as many in as there are seats for, first those of the projects that have the fewest. */
  #call(): void {
    const rows = [...this.#rows.values()].filter(({ outside }) => outside.size > 0);
    for (const row of rows.sort((a, b) => a.held - b.held))
      while (this.#held + this.#called < SEATS && row.held + row.called < SEATS_OF_PROJECT) {
        const comeIn = row.outside.take();
        if (comeIn === undefined) break;
        row.called++;
        this.#called++;
        this.#outside--;
        comeIn();
      }
  }

  /** Who was called may not come: its mail was canceled, or waits for its destination. Its call must not hold up the others. */
  #lookLater(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.#clock.after(LOOK_MS, () => {
      this.#looking = false;
      for (const [senderId, row] of this.#rows) {
        row.called = 0;
        this.#forget(senderId, row);
      }
      this.#called = 0;
      this.#call();
      if (this.#outside > 0) this.#lookLater();
    });
  }
}
