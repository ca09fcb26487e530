/** What the database says: of a dead service from a copy, so that nothing is recovered or checkpointed in its place. */
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Ground } from "./service.ts";

const FILES = ["", "-wal"];

/** Opens a copy of the service's files, hands it over and deletes it. */
function withCopy<Result>(ground: Ground, read: (db: Database) => Result): Result {
  const copy = join(ground.home, "autopsy.db");
  const remove = (): void => {
    for (const end of [...FILES, "-shm"]) rmSync(`${copy}${end}`, { force: true });
  };
  remove();
  for (const end of FILES) {
    const file = join(ground.service.folder, `postrider.db${end}`);
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

/** Reads the database of a service that runs, as another process beside it. */
export function withLive<Result>(ground: Ground, read: (db: Database) => Result): Result {
  const db = new Database(join(ground.service.folder, "postrider.db"), { readonly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** Recipients whose delivery had begun and had no result yet when the service died. */
export function inFlightOf(ground: Ground): string[] {
  return withCopy(ground, (db) =>
    db
      .query<{ email: string }, []>("SELECT email FROM recipients WHERE status = 'sending'")
      .all()
      .map(({ email }) => email),
  );
}

/** What SQLite says of the copy's integrity and its foreign keys: empty where all is well. */
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
