import type Database from "libsql";
import PromiseDatabase from "libsql/promise";

// The package has a form whose calls block and one whose calls run on its threads. Each method of the second uses
// nothing but the native connection, which both forms have, so it works on a connection of the first.

/** Runs a statement without rows on a thread of libSQL's. Until it has ended, a call on the connection blocks. */
export async function execOffLoop(database: Database.Database, sql: string): Promise<void> {
  await PromiseDatabase.prototype.exec.call(database, sql);
}

/** Syncs a replica with its primary on threads of libSQL's. */
export async function syncOffLoop(database: Database.Database): Promise<unknown> {
  return await PromiseDatabase.prototype.sync.call(database);
}
