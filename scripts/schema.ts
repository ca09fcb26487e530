import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { type Db, openDb } from "../src/store/engine/client.ts";
import { migrate } from "../src/store/engine/migrate.ts";

/** The schema of a database as text: what db/schema.sql holds. The tables that FTS5 makes for itself are left out. */
export async function schemaText(db: Db): Promise<string> {
  const rows = await db.all<{ sql: string }>(
    `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
        AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
      ORDER BY tbl_name, type DESC, name`,
  );
  const statements = rows.map((row) => `${row.sql};\n`).join("\n");
  return `-- Generated from db/migrations by \`bun scripts/schema.ts\`. Do not edit.\n\n${statements}`;
}

/** The schema that a new database is given, made in a folder that goes with it. */
export async function newSchemaText(make: (db: Db) => Promise<unknown>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-schema-"));
  try {
    const url = `file:${join(folder, "schema.db")}`;
    const db = await openDb(systemClock, { url, authToken: null, syncUrl: null });
    try {
      await make(db);
      return await schemaText(db);
    } finally {
      await db.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main)
  writeFileSync(join(import.meta.dir, "../db/schema.sql"), await newSchemaText((db) => migrate(db, 0)));
