/** The command succeeded. */
export const EX_OK = 0;
/** The command was understood, and the answer is no: not ready, not delivered, no such key. */
export const EX_NO = 1;
/** EX_USAGE of sysexits.h: the arguments are wrong. */
export const EX_USAGE = 64;
/** EX_UNAVAILABLE of sysexits.h: the service or its database cannot be reached, or did not finish in time. */
export const EX_UNAVAILABLE = 69;
/** EX_SOFTWARE of sysexits.h: an unexpected error of ours. */
export const EX_SOFTWARE = 70;
/** EX_CONFIG of sysexits.h: a setting is wrong. */
export const EX_CONFIG = 78;

/** Meaning of each exit code, as the help shows it. */
export const EXIT_CODES: readonly (readonly [number, string])[] = [
  [EX_OK, "success"],
  [EX_NO, "the answer is no: not ready, not delivered, refused, no such key"],
  [EX_USAGE, "wrong usage"],
  [EX_UNAVAILABLE, "the service or its database cannot be reached, or did not finish in time"],
  [EX_SOFTWARE, "unexpected error"],
  [EX_CONFIG, "wrong settings"],
];

/** Ends a command with an exit code and a message on standard error. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.name = "CommandError";
    this.exitCode = exitCode;
  }
}

/** Returns the error for wrong arguments. */
export function usage(message: string): CommandError {
  return new CommandError(EX_USAGE, message);
}

/** Returns the error for a request that was understood and refused. */
export function refused(message: string): CommandError {
  return new CommandError(EX_NO, message);
}

/** Returns the error for a service that is out of reach. A later try may succeed. */
export function unavailable(message: string): CommandError {
  return new CommandError(EX_UNAVAILABLE, message);
}
