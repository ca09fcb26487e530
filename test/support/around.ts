import type { Db } from "../../src/store/engine/client.ts";

/** The functions of a database client, some of which a test replaces. */
export function around(db: Db): Db {
  return {
    all: (sql, args) => db.all(sql, args),
    first: (sql, args) => db.first(sql, args),
    readConfig: (query, args) => db.readConfig(query, args),
    refreshReads: () => db.refreshReads(),
    syncWithPrimary: () => db.syncWithPrimary(),
    write: (statements) => db.write(statements),
    migrate: (statements) => db.migrate(statements),
    close: () => db.close(),
  };
}
