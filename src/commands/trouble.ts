import { lookup } from "node:dns/promises";
import type { Config } from "../config.ts";
import { hostPort } from "../core/host-port.ts";

/** The number by which SQLite says that it cannot open a file: libSQL puts it behind the path. */
const CANNOT_OPEN = /Unable to open connection to local database (.*): 14\b/s;

/** What a system call could not do, where it names the path. */
const CALLS: Readonly<Record<string, (path: string) => string>> = {
  mkdir: (path) => `the folder ${path} cannot be made`,
  open: (path) => `${path} cannot be opened`,
  stat: (path) => `whether there is ${path} cannot be told`,
  read: (path) => `${path} cannot be read`,
};

const HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE: ": another program has that port",
  EACCES: ": ports below 1024 need a right of their own",
  EADDRNOTAVAIL: ": this machine has no such address",
};

/** Of a file that may not be looked at: it is the service's, and mode 600. */
const OTHERS = ": are we the user of the service, or root?";

/**
 * Which of the names to listen at this machine cannot look up, behind a failure to listen: Bun says of such a name what it
 * last said of something else, EADDRINUSE for one. Null where it can look them up, where they are addresses, and behind any
 * other failure.
 */
export async function unknownHost(error: unknown, { host, smtpHost, roles }: Config): Promise<string | null> {
  if (!isListening(error)) return null;
  for (const name of roles.has("smtp") ? [host, smtpHost] : [host])
    try {
      await lookup(name);
    } catch {
      return name;
    }
  return null;
}

/**
 * Throws what has gone wrong at a start in words that lead to its cause, where ours are better than those of the parts.
 * @param http where the API should listen: its error, unlike those of the other listeners, names no address
 * @param unknown as `unknownHost` gives it
 */
export function explained(
  error: unknown,
  http?: { host: string; port: number },
  unknown: string | null = null,
): never {
  const words =
    unknown !== null
      ? `cannot listen at ${unknown}: this machine cannot look up that name`
      : wordsFor(error, http);
  throw words === null ? error : new Error(words, { cause: error });
}

/** Whether it is the failure to listen; of a name that is none Bun tells no code. */
function isListening(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("syscall" in error && error.syscall === "listen") || error.message.startsWith("Failed to listen");
}

function wordsFor(error: unknown, http?: { host: string; port: number }): string | null {
  const database = CANNOT_OPEN.exec(String(error))?.[1];
  if (database !== undefined)
    return `the database ${database} cannot be opened: is its folder there, and are both ours to read and write?`;
  if (!(error instanceof Error) || !("code" in error)) return null;
  const code = String(error.code);
  if (code.startsWith("SQLITE_READONLY"))
    return "the database cannot be written: do its file and folder belong to the user of the service?";
  if (code.startsWith("SQLITE_NOTADB"))
    return "the database's file holds something else: is it the one that DATA_DIR or DATABASE_URL should name?";
  if (code.startsWith("SQLITE_CORRUPT"))
    return `the database is damaged (${code}): keep its files as they are, and go back to a backup, or have sqlite3's .recover read what it can of a copy; where it is a backup that was just put back, remove the -wal and -shm beside it, which are of the file before it`;
  if (code.startsWith("SQLITE_CANTOPEN"))
    return "the database cannot be opened: do its file, the -wal and -shm beside it, and the folder belong to the user of the service?";
  if (!("syscall" in error)) return null;
  if (error.syscall === "listen") {
    const at = "port" in error && "address" in error ? { host: error.address, port: error.port } : http;
    return at === undefined
      ? null
      : `cannot listen at ${hostPort(String(at.host), at.port)} (${code})${HINTS[code] ?? ""}`;
  }
  const failed = CALLS[String(error.syscall)];
  if (failed === undefined || !("path" in error)) return null;
  return `${failed(String(error.path))} (${code})${code === "EACCES" ? OTHERS : ""}`;
}
