import { changesRow, type Db, type Guard, type Statement } from "../engine/client.ts";

/** Facts about the whole installation, each stored as a string. */
export type Fact =
  /** Version of the program that started last. */
  | "version"
  /** Time of the last complete backup that BACKUP_EVERY made, milliseconds. */
  | "backup"
  /** Time at which a process began the latest one, milliseconds. */
  | "backup_begun"
  /** Time at which a process asked the block lists about our addresses, milliseconds. */
  | "lists_asked"
  /** Their answers then, as JSON. */
  | "lists_found"
  /** Time of the restore whose held mail was not released, milliseconds. */
  | "held"
  /** Id of the master key that seals. */
  | "master_key"
  /** Ids of the master keys before and after the pending rotation, with a space; empty if there is none. */
  | "master_key_rotation"
  /** Keys of earlier master keys whose links and tokens still work, sealed. */
  | "kept_keys";

/** Returns what the installation remembers; null if nothing was recorded. */
export async function readFact(db: Db, fact: Fact): Promise<string | null> {
  const row = await db.first<{ value: string }>("SELECT value FROM installation WHERE name = ?", [fact]);
  return row?.value ?? null;
}

/** Returns all that the installation remembers. */
export async function readFacts(db: Db): Promise<Partial<Record<Fact, string>>> {
  const rows = await db.all<{ name: string; value: string }>("SELECT name, value FROM installation", []);
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/** Holds while a fact has a value. */
export function factGuard(fact: Fact, value: string): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM installation WHERE name = ? AND value = ?)",
    args: [fact, value],
  };
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
