import { AppError } from "../../core/errors.ts";
import { type OneByOne, oneByOne } from "../../core/one-by-one.ts";
import { createGate, type Gate } from "../../core/gate.ts";

/** Octets beyond which a mail that is taken into memory whole, to hand something of it out, waits for its turn. */
export const LARGE_OCTETS = 1024 * 1024;
/** Such mails in memory at a time, one a project. */
export const LARGE_AT_A_TIME = 4;
/** Projects whose turn is waited for; one more is turned away. */
const MAX_PROJECTS_WAITING = 1000;

/** The turns of a process's large mails: a hundred asked for at once would take gigabytes. */
export interface LargeMails {
  byProject: OneByOne;
  gate: Gate;
}

/** Those of a process that begins. */
export function largeMails(): LargeMails {
  return { byProject: oneByOne(), gate: createGate(LARGE_AT_A_TIME, MAX_PROJECTS_WAITING) };
}

/**
 * Does a job that has a mail of so many octets in memory, in its turn where that is large.
 * @throws AppError 503 where too many wait
 */
export function withRoomFor<Result>(
  { byProject, gate }: LargeMails,
  senderId: string,
  octets: number,
  job: () => Promise<Result>,
): Promise<Result> {
  if (octets <= LARGE_OCTETS) return job();
  return byProject(senderId, async () => {
    const done = await gate.run(async () => ({ result: await job() }));
    if (done === null) throw tooMuchMail();
    return done.result;
  });
}

/** 503: the mail is there, and cannot be read just now. */
export function tooMuchMail(): AppError {
  return new AppError("service_unavailable", "Too much mail is being read, try again later.", {
    retryAfter: 1,
  });
}
