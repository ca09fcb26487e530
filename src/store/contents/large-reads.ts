import type { Admission, AdmissionLimits } from "../../core/concurrency/admission.ts";
import { AppError } from "../../core/errors.ts";
import type { Contents } from "./content-read.ts";
import { type MemoryBudget, waitingBudget } from "./memory-budget.ts";

/** Bytes above which a stored message waits for admission before it is read into memory whole. */
export const LARGE_OCTETS = 1024 * 1024;

/** Large messages that are read at once: a hundred of them would take gigabytes. */
export const LARGE_READS: AdmissionLimits = { total: 4, perOwner: 1, maxWaiting: 2000 };

/** The places that contents are read from, and the admission of large ones. */
export interface LargeContents extends Contents {
  memory: { largeReads: Admission };
}

/**
 * Runs a job that holds a stored message of that many bytes in memory. If the message is large, the job waits for
 * admission first.
 * @throws AppError 503 if too many jobs wait
 */
export async function readLarge<Result>(
  reads: Admission,
  senderId: string,
  octets: number,
  job: () => Promise<Result>,
): Promise<Result> {
  if (octets <= LARGE_OCTETS) return job();
  const running = reads.run({ owner: senderId, weight: 1 }, job);
  if (running === null) throw tooManyReads();
  return running;
}

/** Returns the budget for reading a project's message to show it or to put it into a payload. */
export function largeReadBudget(reads: Admission, senderId: string): MemoryBudget {
  return waitingBudget((octets, read) => readLarge(reads, senderId, octets, read));
}

/** Returns the 503 for a message that is stored but cannot be read now. */
export function tooManyReads(): AppError {
  return new AppError("service_unavailable", "Too much mail is being read, try again later.", {
    retryAfterSeconds: 1,
  });
}
