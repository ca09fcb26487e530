import { Fifo } from "../../core/collections.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";

/**
 * Octets of JSON that one step of a long job handles: about a millisecond. Smaller bodies are handled at once.
 */
export const STEP_OCTETS = 128 * 1024;

/** Long work in steps. It yields after about `STEP_OCTETS` octets. */
export type Steps<Result> = Generator<void, Result, void>;

/** Does long work step by step, with a tick of the event loop before each step. */
export type RunSteps = <Result>(work: Steps<Result>) => Promise<Result>;

/**
 * Creates a runner for one event loop. One turn of the loop runs one step, and concurrent works take turns. So the loop
 * never waits for more than one step, however many large bodies there are.
 */
export function createStepRunner(): RunSteps {
  const waiting = new Fifo<() => void>();
  let running = false;
  const beginEach = async (): Promise<void> => {
    running = true;
    for (let begin = waiting.take(); begin !== undefined; begin = waiting.take()) {
      await yieldToEventLoop();
      begin();
    }
    running = false;
  };
  const myTurn = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.add(resolve);
      if (!running) void beginEach();
    });
  return async (work) => {
    for (;;) {
      await myTurn();
      const step = work.next();
      if (step.done === true) return step.value;
    }
  };
}

/** Runs all steps at once, for work that is known to be short. */
export function runAtOnce<Result>(work: Steps<Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
