import { changesRow, type Db, type Statement } from "../engine/client.ts";

/** Facts about the whole installation, each stored as a string. */
export type Fact =
  /** Version of the program that started last. */
  | "version"
  /** Time of the last complete backup that BACKUP_EVERY made, milliseconds. */
  | "backup"
  /** Time at which a process began the latest one, milliseconds. */
  | "backup_begun"
  /** Time of the restore whose held mail was not released, milliseconds. */
  | "held";

/** Returns what the installation remembers; null if nothing was recorded. */
export async function readFact(db: Db, fact: Fact): Promise<string | null> {
  const row = await db.first<{ value: string }>("SELECT value FROM installation WHERE name = ?", [fact]);
  return row?.value ?? null;
}

/** Returns the statement that records it, and replaces what was recorded before. */
export function recordFact(fact: Fact, value: string): Statement {
  return {
    sql: `INSERT INTO installation (name, value) VALUES (?1, ?2)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value`,
    args: [fact, value],
  };
}

/** Changes a fact from the value that was read. Returns false if another process has changed it since. */
export function claimFact(db: Db, fact: Fact, from: string | null, to: string): Promise<boolean> {
  return from === null
    ? changesRow(db, "INSERT OR IGNORE INTO installation (name, value) VALUES (?, ?)", [fact, to])
    : changesRow(db, "UPDATE installation SET value = ? WHERE name = ? AND value = ?", [to, fact, from]);
}
