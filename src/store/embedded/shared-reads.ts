import type Database from "libsql";

/** Tells a connection's shared read transaction when to begin and end. */
export interface SharedReads {
  /** Called before each read. */
  beforeRead(): void;
  /** Ends the read transaction, if one is open. Called before the connection is used for anything but a read. */
  end(): void;
}

/**
 * Lets the reads of one tick of the event loop share a transaction, from the second read on. Outside a transaction
 * SQLite locks and unlocks the file for each read, which costs as much as a small read does.
 *
 * Reads in one transaction see the database as of one moment. So a write of this process ends it first, and so does
 * `Db.refreshReads`.
 */
export function shareReads(database: Database.Database): SharedReads {
  // Deferred: it takes no lock before the first read.
  const begin = database.prepare("BEGIN DEFERRED");
  // Nothing was written. A COMMIT would be refused if a statement was not read to its end.
  const rollback = database.prepare("ROLLBACK");
  let reads = 0;
  let isOpen = false;
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    // SQLite ends a transaction by itself if the file fails.
    if (database.inTransaction) rollback.run();
  };
  return {
    beforeRead() {
      reads++;
      if (reads === 1)
        setImmediate(() => {
          reads = 0;
          end();
        });
      if (reads < 2 || isOpen) return;
      begin.run();
      isOpen = true;
    },
    end,
  };
}
