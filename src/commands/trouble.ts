/** The number by which SQLite says that it cannot open a file: libSQL puts it behind the path. */
const CANNOT_OPEN = /Unable to open connection to local database (.*): 14\b/s;

/** Throws what has gone wrong at a start in words that lead to its cause, where ours are better than those of the parts. */
export function explained(error: unknown): never {
  const path = CANNOT_OPEN.exec(String(error))?.[1];
  if (path !== undefined)
    throw new Error(`the database ${path} cannot be opened: is its folder there, and ours to write?`, {
      cause: error,
    });
  if (error instanceof Error && "port" in error && "address" in error && "code" in error)
    throw new Error(
      `cannot listen at ${error.address}:${error.port} (${error.code})${HINTS[String(error.code)] ?? ""}`,
      {
        cause: error,
      },
    );
  throw error;
}

const HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE: ": another program has that port",
  EACCES: ": ports below 1024 need a right of their own",
  EADDRNOTAVAIL: ": this machine has no such address",
};
