import { lookup } from "node:dns/promises";
import type { Config } from "../../config.ts";
import { SettingsError } from "../../core/errors.ts";
import { hostPort } from "../../core/networks.ts";
import { type Place, placesOf } from "../../wiring/process/free-ports.ts";

/** SQLite's error number for a file that it cannot open. libSQL puts it after the path. */
const CANNOT_OPEN = /Unable to open connection to local database (.*): 14\b/s;

/** The text of each failed system call, made from its path. */
const CALLS: Readonly<Record<string, (path: string) => string>> = {
  mkdir: (path) => `the folder ${path} cannot be created`,
  open: (path) => `${path} cannot be opened`,
  stat: (path) => `it is not known whether ${path} exists`,
  read: (path) => `${path} cannot be read`,
};

/** Advice for each error of the system when we listen. `port` names the setting of the port. */
const HINTS: Readonly<Record<string, (port: string) => string>> = {
  EADDRINUSE: (port) => `: another program uses that port. Stop it, or set ${port} to a free one.`,
  EACCES: (port) =>
    `: ports below 1024 need the capability CAP_NET_BIND_SERVICE. Add it, or set ${port} to a higher one.`,
  EADDRNOTAVAIL: () => ": this machine has no such address",
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
  for (const { host } of placesOf(config))
    try {
      await lookup(host);
    } catch {
      return host;
    }
  return null;
}

/**
 * Throws an error of the start, in our words if they explain the cause better.
 * @param config names the settings of an address or port at which the service cannot listen
 * @param unknown the result of `unknownHost`
 * @throws SettingsError if the service cannot listen
 */
export function explained(error: unknown, config?: Config, unknown: string | null = null): never {
  if (config !== undefined && isListening(error))
    throw new SettingsError(listenWords(error, placesOf(config), unknown), { cause: error });
  const words = wordsFor(error);
  throw words === null ? error : new Error(words, { cause: error });
}

/** A failure to listen, as the system reports it. */
interface ListenError extends Error {
  code?: string;
  /** `bind` for UDP, else `listen`. */
  syscall?: string;
  address?: string;
  port?: number;
}

/** Returns whether the error is a failure to listen. If a name is unknown, Bun gives no code. */
function isListening(error: unknown): error is ListenError {
  if (!(error instanceof Error)) return false;
  return (
    ("syscall" in error && (error.syscall === "listen" || error.syscall === "bind")) ||
    error.message.startsWith("Failed to listen")
  );
}

/** The error of an HTTP server has its port in the message alone. */
const HTTP_PORT = /Is port (\d+) in use/;

/** Returns which settings cannot be used, and why. */
function listenWords(error: ListenError, all: readonly Place[], unknown: string | null): string {
  if (unknown !== null) {
    const settings = namesOf(all.filter(({ host }) => host === unknown).map((place) => place.settings.host));
    return `${settings}: cannot listen at ${unknown}: this machine cannot look up that name`;
  }
  const { code = "" } = error;
  const port = error.port ?? Number(HTTP_PORT.exec(error.message)?.[1]);
  const places = all.filter((place) =>
    error.syscall === "bind" ? place.settings.port === "DNS_PORT" : place.port === port,
  );
  const at = places.find(({ host }) => host === error.address) ?? places[0];
  const host = error.address ?? at?.host ?? "";
  const kind = code === "EADDRNOTAVAIL" ? "host" : "port";
  const settings = namesOf(
    (kind === "host" && at !== undefined ? [at] : places).map((place) => place.settings[kind]),
  );
  const hint = HINTS[code]?.(settings) ?? "";
  return `${settings}: cannot listen at ${hostPort(host, at?.port ?? port)} (${code})${hint}`;
}

function namesOf(settings: readonly (string | null)[]): string {
  return [...new Set(settings.filter((name) => name !== null))].join(" and ");
}

function wordsFor(error: unknown): string | null {
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
  const failed = CALLS[String(error.syscall)];
  if (failed === undefined || !("path" in error)) return null;
  return `${failed(String(error.path))} (${code})${code === "EACCES" ? OTHERS : ""}`;
}
