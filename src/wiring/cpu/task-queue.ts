import { Fifo } from "../../core/collections.ts";

/** The turn of a task, which it holds while it runs. */
export interface TaskTurn {
  /** Waits for an answer from outside. Unless it is there at once, other tasks run in the meantime. */
  waitFor<Answer>(answer: Promise<Answer>): Promise<Answer>;
  /** Ends the turn, because the task has ended. */
  end(): void;
}

/**
 * Runs the tasks of a worker thread one after another, in their order. If all ran together, all would end together, and the main
 * thread would be idle until then.
 *
 * A task that waits for an answer lets others run. After that it comes before those that have not started.
 */
export class TaskQueue {
  #taken = false;
  readonly #back = new Fifo<() => void>();
  readonly #waiting = new Fifo<() => void>();

  /** Resolves with the turn of a task. */
  async take(): Promise<TaskTurn> {
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

  #place(): TaskTurn {
    let held = true;
    let over = false;
    let answers = 0;
    /**
     * One return for all parallel waits of the task. A second one would wait for the turn that the task itself holds, and
     * block all others.
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
      // The task may have ended since, or wait for another answer.
      if (over || answers > 0) this.#pass();
      else held = true;
    };
    return {
      async waitFor(answer) {
        answers++;
        // An answer from a cache arrives before this runs.
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
      end() {
        over = true;
        stepAside();
      },
    };
  }
}
