import Database from "libsql";

/** How long the copy waits for a lock that another process holds on the file, milliseconds. */
const BUSY_TIMEOUT_MS = 15_000;

/**
 * Copies a database file as it stands at one moment into an empty file, while others go on writing: what VACUUM INTO
 * reads is one transaction, and in WAL mode readers and writers do not wait for each other. It has a connection of its
 * own and holds the calling thread until it is done: it is for a process that does nothing else. The copy is not yet
 * on disk for certain: SQLite does not sync it.
 */
export function copyDatabase(path: string, emptyFile: string): void {
  const database = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    database.prepare("VACUUM INTO ?").run(emptyFile);
  } finally {
    database.close();
  }
}
