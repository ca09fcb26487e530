import type { Db, Statement } from "../engine/client.ts";

/** Facts about the whole installation, each stored as a string. */
export type Fact =
  /** Version of the program that started last. */
  "version";

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
