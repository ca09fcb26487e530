import { Fifo } from "../../core/fifo.ts";

/** What a task has while it is worked on. */
export interface Place {
  /** Waits for what comes from outside. Unless it is there at once, others are worked on meanwhile. */
  during<Answer>(answer: Promise<Answer>): Promise<Answer>;
  /** The task has ended. */
  leave(): void;
}

/**
 * Has tasks of one thread worked on one after another, in the order in which they came. Where all of them are worked on
 * together they all end together, and whoever waits for them has nothing to do until then.
 *
 * A task that waits for something outside steps aside, and then comes before those that have not begun.
 */
export class OneAtWork {
  #taken = false;
  readonly #back = new Fifo<() => void>();
  readonly #waiting = new Fifo<() => void>();

  /** The place for a task, once it is its turn. */
  async take(): Promise<Place> {
    await this.#enter(this.#waiting);
    return this.#place();
  }

  #enter(row: Fifo<() => void>): Promise<void> {
    if (this.#taken) return new Promise((resolve) => row.add(resolve));
    this.#taken = true;
    return Promise.resolve();
  }

  #pass(): void {
    const next = this.#back.take() ?? this.#waiting.take();
    if (next === undefined) this.#taken = false;
    else next();
  }

  #place(): Place {
    let held = true;
    let over = false;
    let answers = 0;
    /**
     * One way back for all that the task does side by side: whoever came for a second time would wait for the place that it
     * has itself, and everybody else with it.
     */
    let returning: Promise<void> | null = null;
    const stepAside = (): void => {
      if (!held) return;
      held = false;
      this.#pass();
    };
    const comeBack = async (): Promise<void> => {
      await this.#enter(this.#back);
      returning = null;
      // It may have ended since, or wait for something else.
      if (over || answers > 0) this.#pass();
      else held = true;
    };
    return {
      async during(answer) {
        answers++;
        // What is there at once, from a cache, comes before that.
        const aside = setImmediate(stepAside);
        try {
          return await answer;
        } finally {
          clearImmediate(aside);
          answers--;
          if (!held && !over && answers === 0) {
            returning ??= comeBack();
            await returning;
          }
        }
      },
      leave() {
        over = true;
        stepAside();
      },
    };
  }
}
