import { Admission } from "../../core/concurrency/admission.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { AppError } from "../../core/errors.ts";
import type { Answer } from "../routing/answer.ts";
import { MAX_BODY_OCTETS } from "./budget.ts";

/** Bytes from which a body is large. Parsing it takes several times its size in memory. */
export const LARGE_BODY_OCTETS = 1024 * 1024;
/** Maximum bytes of large bodies processed at once. A larger body is processed alone. */
export const MAX_LARGE_BODY_OCTETS = 32 * 1024 * 1024;
/**
 * Maximum number of large bodies that may wait. One project's bodies may take half of the places: as many as its
 * budget of bytes has room for.
 */
export const MAX_BODIES_WAITING = MAX_BODY_OCTETS / LARGE_BODY_OCTETS;

/**
 * Runs the work on a body of that many bytes when its owner's turn comes. Work on a small body starts at once.
 */
export type RunForBody = <Result>(
  owner: string,
  octets: number,
  work: () => Promise<Result>,
) => Promise<Result>;

/**
 * Limits the work on large bodies. Owners take turns, because work such as rendering may take seconds and one project's
 * bodies must not all come before those of another. A body that waits is unparsed bytes only.
 */
export function createLargeBodyLimit(): RunForBody {
  const admission = new Admission({
    total: MAX_LARGE_BODY_OCTETS,
    perOwner: MAX_LARGE_BODY_OCTETS,
    maxWaiting: MAX_BODIES_WAITING,
  });
  return async (owner, octets, work) => {
    if (octets < LARGE_BODY_OCTETS) return work();
    const running = admission.run({ owner, weight: octets }, async () => {
      // The work before it ended in this tick of the event loop.
      await yieldToEventLoop();
      return work();
    });
    if (running !== null) return running;
    throw new AppError("service_unavailable", "Too many large requests wait. Try again.", {
      retryAfterSeconds: 1,
    });
  };
}

/**
 * Gives other requests a tick of the event loop before and after a handler, which takes tens of milliseconds for a
 * large body.
 */
export async function yieldAround(handle: () => Answer | Promise<Answer>): Promise<Answer> {
  await yieldToEventLoop();
  const answer = await handle();
  await yieldToEventLoop();
  return answer;
}
