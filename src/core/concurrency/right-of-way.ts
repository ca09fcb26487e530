import { Fifo } from "../collections.ts";
import type { Clock } from "../time/clock.ts";
import { yieldToEventLoop } from "./event-loop.ts";

/**
 * Longest time that bulk work waits for urgent work between two of its steps, milliseconds. A step takes one or two, so bulk mail gets
 * a fourth of a process that is never free of urgent work.
 */
export const MAX_WAIT_MS = 5;

/** Work that takes turns with other work. */
export interface Work {
  /** Resolves when the next step may begin. */
  begin(): Promise<void>;
  /** Called when the work waits for a peer, or is over. */
  end(): void;
}

/**
 * Lets the steps of bulk mail wait while the process takes or sends another message. Work on one event loop cannot be interrupted. So
 * a receipt waits for the one step that has begun, and not for those of all messages of a broadcast.
 */
export class RightOfWay {
  readonly #clock: Clock;
  readonly #waiting = new Fifo<() => void>();
  #urgent = 0;
  #isReleasing = false;
  #goOn: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs the work of one message in turns. It begins with one. */
  async run<Value>(isBulk: boolean, task: (work: Work) => Promise<Value>): Promise<Value> {
    const work = isBulk ? { begin: () => this.turn(), end: () => undefined } : this.#urgentWork();
    await work.begin();
    try {
      return await task(work);
    } finally {
      work.end();
    }
  }

  /** Runs urgent work, such as a request that sends a message. */
  first<Value>(task: () => Promise<Value>): Promise<Value> {
    return this.run(false, task);
  }

  /** Resolves when bulk work may take its next step. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      void this.#release();
    });
  }

  #urgentWork(): Work {
    let isCounted = false;
    return {
      begin: async () => {
        if (!isCounted) this.#urgent++;
        isCounted = true;
      },
      end: () => {
        if (isCounted) this.#ended();
        isCounted = false;
      },
    };
  }

  #ended(): void {
    this.#urgent--;
    if (this.#urgent === 0) this.#goOn();
  }

  /** Lets those that wait go on, one in each tick of the event loop. */
  async #release(): Promise<void> {
    if (this.#isReleasing) return;
    this.#isReleasing = true;
    while (this.#waiting.size > 0) {
      if (this.#urgent > 0) await this.#quiet();
      this.#waiting.take()?.();
      await yieldToEventLoop();
    }
    this.#isReleasing = false;
  }

  #quiet(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(MAX_WAIT_MS, resolve);
      this.#goOn = () => {
        cancel();
        resolve();
      };
    });
  }
}
