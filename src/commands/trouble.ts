import { lookup } from "node:dns/promises";
import type { Config } from "../config.ts";
import { hostPort } from "../core/networks.ts";

/** SQLite's error number for a file that it cannot open. libSQL puts it after the path. */
const CANNOT_OPEN = /Unable to open connection to local database (.*): 14\b/s;

/** The text of each failed system call, made from its path. */
const CALLS: Readonly<Record<string, (path: string) => string>> = {
  mkdir: (path) => `the folder ${path} cannot be created`,
  open: (path) => `${path} cannot be opened`,
  stat: (path) => `it is not known whether ${path} exists`,
  read: (path) => `${path} cannot be read`,
};

const HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    ": another program uses that port. Stop it, or set another port (PORT, SMTP_PORT, SUBMISSION_PORT, …).",
  EACCES: ": ports below 1024 need a special permission",
  EADDRNOTAVAIL: ": this machine has no such address",
};

/** Advice for a file that may not be read. It belongs to the user of the service and has mode 600. */
const OTHERS = ". Run this as the user of the service or as root.";

/**
 * Returns the listen address that this machine cannot look up, after a failure to listen. For such a name Bun reports
 * the code of an earlier error, such as EADDRINUSE. Returns null if all names can be looked up or are addresses, and
 * after any other failure.
 */
export async function unknownHost(error: unknown, config: Config): Promise<string | null> {
  if (!isListening(error)) return null;
  const { host, smtpHost, submissionHost, roles } = config;
  for (const name of roles.has("smtp") ? [host, smtpHost, submissionHost] : [host])
    try {
      await lookup(name);
    } catch {
      return name;
    }
  return null;
}

/**
 * Throws an error of the start, in our own words if they explain the cause better.
 * @param http where the API should listen; its error, unlike those of other listeners, names no address
 * @param unknown the result of `unknownHost`
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

/** Returns whether the error is a failure to listen. If a name is unknown, Bun gives no code. */
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
    return `the database is damaged (${code}): keep its files as they are, and go back to a backup, or have sqlite3's .recover read what it can of a copy; where it is a backup that was just put back, remove its -wal and -shm files, which are of the file before it`;
  if (code.startsWith("SQLITE_CANTOPEN"))
    return "the database cannot be opened: do its file, its -wal and -shm files, and the folder belong to the user of the service?";
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
