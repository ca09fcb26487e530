import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Db, openDb } from "../../src/store/client.ts";
import { migrate } from "../../src/store/migrate.ts";

/** A real libSQL file in a folder of its own, with the schema in it. */
export interface TestDatabase {
  db: Db;
  folder: string;
  url: string;
  /** Closes the file and deletes the folder. */
  remove(): Promise<void>;
}

export async function testDatabase(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-test-"));
  const url = `file:${join(folder, "postrider.db")}`;
  const db = await openDb(systemClock, { url, authToken: null, syncUrl: null });
  await migrate(db, 1_700_000_000_000);
  return {
    db,
    folder,
    url,
    async remove() {
      await db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
