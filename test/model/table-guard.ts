import type { Db } from "../../src/store/engine/client.ts";

/** Columns and tables that a refused or repeated request may change, because they record the request itself. */
const NOT_EFFECTS: readonly string[] = [
  "idempotency",
  "instances",
  "sqlite_sequence",
  // The last use of a key counts as a change of it. All other changes appear in their own tables.
  "configuration_version",
];
const NOT_EFFECT_COLUMNS: readonly string[] = ["last_used_at"];

/** Watches the only way to write, `Db.write`. */
export interface TableGuard {
  /** The database that the service gets. */
  db: Db;
  /** Runs `work`, and returns the tables it has changed. */
  changes(work: () => Promise<void>): Promise<string[]>;
}

/** Compares tables only if something is written, because most requests that must change nothing write nothing. */
export function tableGuard(bare: Db): TableGuard {
  let before: Promise<Map<string, string>> | null = null;
  let watching = false;
  const db: Db = {
    all: (sql, args) => bare.all(sql, args),
    first: (sql, args) => bare.first(sql, args),
    readConfig: (query, args) => bare.readConfig(query, args),
    refreshReads: () => bare.refreshReads(),
    syncWithPrimary: () => bare.syncWithPrimary(),
    migrate: (statements) => bare.migrate(statements),
    close: () => bare.close(),
    async write(statements) {
      if (watching) {
        before ??= tables(bare);
        await before;
      }
      return bare.write(statements);
    },
  };
  return {
    db,
    async changes(work) {
      before = null;
      watching = true;
      await work().finally(() => {
        watching = false;
      });
      // Assigned in `write`, which the compiler does not follow.
      const was: Map<string, string> | null = await (before as Promise<Map<string, string>> | null);
      if (was === null) return [];
      const is = await tables(bare);
      return [...is.keys()].filter((name) => is.get(name) !== was.get(name));
    },
  };
}

/** All rows of all tables, by table. */
async function tables(db: Db): Promise<Map<string, string>> {
  const names = await db.all<{ name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'message_terms%' AND name NOT LIKE 'message_words%' ORDER BY name",
  );
  const dump = new Map<string, string>();
  for (const { name } of names) {
    if (NOT_EFFECTS.includes(name)) continue;
    const rows = await db.all<Record<string, unknown>>(`SELECT * FROM ${name}`);
    const shown = rows.map((row) =>
      JSON.stringify(row, (key, value) => (NOT_EFFECT_COLUMNS.includes(key) ? null : value)),
    );
    dump.set(name, shown.join("\n"));
  }
  return dump;
}
