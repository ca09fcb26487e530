/** Reads the database of a dead service from a copy, so that the original is neither recovered nor checkpointed. */
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Ground } from "./service.ts";

const FILES = ["", "-wal"];

/** Opens a copy of the service's files, passes it on and deletes it. */
function withCopy<Result>(ground: Ground, read: (db: Database) => Result): Result {
  const copy = join(ground.home, "autopsy.db");
  const remove = (): void => {
    for (const end of [...FILES, "-shm"]) rmSync(`${copy}${end}`, { force: true });
  };
  remove();
  for (const end of FILES) {
    const file = `${ground.file}${end}`;
    if (existsSync(file)) copyFileSync(file, `${copy}${end}`);
  }
  const db = new Database(copy);
  try {
    return read(db);
  } finally {
    db.close();
    remove();
  }
}

/** Reads the database of a running service from another process. */
export function withLive<Result>(ground: Ground, read: (db: Database) => Result): Result {
  const db = new Database(ground.file, { readonly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** Returns the recipients whose delivery had begun and had no result when the service died. */
export function inFlightOf(ground: Ground): string[] {
  // A database server outlives the service, so its file is in use.
  const read = ground.database.sqld === null ? withCopy : withLive;
  return read(ground, (db) =>
    db
      .query<{ email: string }, []>("SELECT email FROM recipients WHERE status = 'sending'")
      .all()
      .map(({ email }) => email),
  );
}

/** Returns SQLite's findings about the copy's integrity and foreign keys; empty if all is well. */
export function damageOf(ground: Ground): string[] {
  return withCopy(ground, (db) => {
    const said = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
    const broken = db.query("PRAGMA foreign_key_check").all();
    return [
      ...said.map((row) => row.integrity_check).filter((text) => text !== "ok"),
      ...broken.map((row) => JSON.stringify(row)),
    ];
  });
}
