/** The command did what it was asked. */
export const EX_OK = 0;
/** The question was understood and the answer is no: not ready, not delivered, no such key. */
export const EX_NO = 1;
/** sysexits.h EX_USAGE: the command was called wrongly. */
export const EX_USAGE = 64;
/** sysexits.h EX_UNAVAILABLE: the service or its database cannot be reached, or did not finish in time. */
export const EX_UNAVAILABLE = 69;
/** sysexits.h EX_SOFTWARE: something of ours failed. */
export const EX_SOFTWARE = 70;
/** sysexits.h EX_CONFIG: a setting is wrong. */
export const EX_CONFIG = 78;

/** What each exit code means, as the help shows it. */
export const EXIT_CODES: readonly (readonly [number, string])[] = [
  [EX_OK, "done"],
  [EX_NO, "the answer is no: not ready, not delivered, refused, no such key"],
  [EX_USAGE, "wrong usage"],
  [EX_UNAVAILABLE, "the service or its database cannot be reached, or not in time"],
  [EX_SOFTWARE, "failed"],
  [EX_CONFIG, "wrong settings"],
];

/** Ends a command with a message on standard error and the exit code given. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.name = "CommandError";
    this.exitCode = exitCode;
  }
}

/** Called wrongly. */
export function usage(message: string): CommandError {
  return new CommandError(EX_USAGE, message);
}

/** Understood, and refused. */
export function refused(message: string): CommandError {
  return new CommandError(EX_NO, message);
}

/** Out of reach; another try later may do. */
export function unavailable(message: string): CommandError {
  return new CommandError(EX_UNAVAILABLE, message);
}
