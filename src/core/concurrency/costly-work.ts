import { Admission, type AdmissionLimits } from "./admission.ts";
import { AppError } from "../errors.ts";

/** Kinds of work that one small request starts and that takes a while, with the limits of each. */
export const COSTLY_WORK = {
  /** DKIM keys are made on the thread pool that signs mail. One at a time leaves the other threads to it. */
  keys: { total: 1, perOwner: 1, maxWaiting: 200 },
  /** A check of a domain asks the DNS dozens of questions, and one of links as many servers. */
  lookups: { total: 32, perOwner: 4, maxWaiting: 1000 },
  /** Messages that are made or read without being sent. */
  content: { total: 32, perOwner: 8, maxWaiting: 2000 },
  /** Files that are read while they arrive. None waits, because its connection would be closed before its turn. */
  uploads: { total: 8, perOwner: 2, maxWaiting: 0 },
} as const satisfies Readonly<Record<string, AdmissionLimits>>;

export type CostlyWork = keyof typeof COSTLY_WORK;

/** Seconds after which a refused client may try again. */
const RETRY_AFTER_SECONDS = 2;

/** Runs a request's task when its owner may do work of that kind, fairly between projects. Work that is not costly runs at once. */
export type RunCostly = <Value>(
  work: CostlyWork | undefined,
  owner: string,
  task: () => Promise<Value>,
) => Promise<Value>;

/**
 * Creates the limits of costly work, which all requests of a process share. If too many of a project's requests wait already,
 * the next one is refused with 429.
 */
export function limitCostlyWork(): RunCostly {
  const kinds = Object.entries(COSTLY_WORK) as [CostlyWork, AdmissionLimits][];
  const admissions = new Map(kinds.map(([work, limits]) => [work, new Admission(limits)]));
  return (work, owner, task) => {
    const admission = work === undefined ? undefined : admissions.get(work);
    if (admission === undefined) return task();
    const running = admission.run({ owner, weight: 1 }, task);
    if (running !== null) return running;
    throw new AppError("rate_limited", "Too many requests of this kind wait already. Send fewer at a time.", {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  };
}
