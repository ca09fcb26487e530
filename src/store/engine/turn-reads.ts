import type Database from "libsql";

/** The reads of a connection, as they come and as something else is to be done with it. */
export interface TurnReads {
  /** Before each read. */
  enter(): void;
  /** Before anything else is done with the connection. */
  leave(): void;
}

/**
 * Has reads that come in one turn of the event loop share a transaction, from the second one on: for each of its own,
 * SQLite locks and unlocks the file, which costs as much as a small read does. They see the database as it is at one moment
 * then; a write of this process ends that before it begins, and so does what comes over a socket (`Db.heard`).
 */
export function turnReads(database: Database.Database): TurnReads {
  // Deferred: it locks nothing until something is read.
  const begin = database.prepare("BEGIN DEFERRED");
  // It has written nothing; and a commit is refused while a statement is not read to its end.
  const end = database.prepare("ROLLBACK");
  let reads = 0;
  let open = false;
  const leave = (): void => {
    if (!open) return;
    open = false;
    // SQLite ends a transaction by itself where the file fails it.
    if (database.inTransaction) end.run();
  };
  return {
    enter() {
      reads++;
      if (reads === 1)
        setImmediate(() => {
          reads = 0;
          leave();
        });
      if (reads < 2 || open) return;
      begin.run();
      open = true;
    },
    leave,
  };
}
