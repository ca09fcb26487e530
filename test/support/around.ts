import type { Db } from "../../src/store/engine/client.ts";

/** A database door as it is, to put another function in. */
export function around(db: Db): Db {
  return {
    all: (sql, args) => db.all(sql, args),
    first: (sql, args) => db.first(sql, args),
    recall: (query, args) => db.recall(query, args),
    heard: () => db.heard(),
    catchUp: () => db.catchUp(),
    write: (statements) => db.write(statements),
    migrate: (statements) => db.migrate(statements),
    close: () => db.close(),
  };
}
