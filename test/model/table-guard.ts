import type { Db } from "../../src/store/engine/client.ts";

/** Columns and tables that a refused or repeated request may change: they tell of requests, not of what they did. */
const NOT_EFFECTS: readonly string[] = [
  ...["idempotency", "instances", "sqlite_sequence"],
  // That a key was used counts as a change of it. All other changes are seen in their own tables.
  "configuration_version",
];
const NOT_EFFECT_COLUMNS: readonly string[] = ["last_used_at"];

/** Watches the only door of writes, `Db.write`. */
export interface TableGuard {
  /** The database as the service is handed it. */
  db: Db;
  /** Runs `work`, and says which tables it has changed. */
  changes(work: () => Promise<void>): Promise<string[]>;
}

/** The tables are read where something is written at all: most requests that must change nothing write nothing. */
export function tableGuard(bare: Db): TableGuard {
  let before: Promise<Map<string, string>> | null = null;
  let watching = false;
  const db: Db = {
    all: (sql, args) => bare.all(sql, args),
    first: (sql, args) => bare.first(sql, args),
    recall: (query, args) => bare.recall(query, args),
    heard: () => bare.heard(),
    catchUp: () => bare.catchUp(),
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
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'message_terms%' ORDER BY name",
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
