import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FailedMigration } from "../../flows/notices/facts.ts";
import type { Clock } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import type { Db } from "../../store/engine/client.ts";
import { migrate, SchemaRefusal } from "../../store/engine/migrate.ts";
import { MIGRATIONS } from "../../store/engine/migrations.ts";
import { retryWhileBusy } from "../../store/engine/retry-while-busy.ts";
import { noteUpgrade } from "./database.ts";
import { VERSION } from "../../version.ts";

/** The file in DATA_DIR that a start leaves whose migration failed. The version that is started after it tells people. */
const NAME = "migration-failed.json";
/** Maximum characters that are kept of the error. */
const MAX_ERROR_CHARS = 300;

interface Left extends FailedMigration {
  /** Newest schema step of the version that failed. */
  step: number;
}

/**
 * Brings the schema up to date at a start. If that fails, leaves a file that says so. If it succeeds, removes the file that a
 * version with the same steps or fewer has left.
 */
export async function migrateAtStart(dataDir: string, db: Db, clock: Clock): Promise<void> {
  const step = Math.max(...MIGRATIONS.map(({ version }) => version));
  const path = join(dataDir, NAME);
  try {
    const applied = await retryWhileBusy(clock, () => migrate(db, clock.now(), MIGRATIONS, clock));
    const left = readLeft(dataDir);
    if (left !== null && left.step <= step) rmSync(path, { force: true });
    await noteUpgrade(db, applied);
  } catch (error) {
    // The database is a newer version's: nothing was tried.
    if (!(error instanceof SchemaRefusal)) leave(path, { version: VERSION, error: String(error), step });
    throw error;
  }
}

function leave(path: string, left: Left): void {
  try {
    const content = JSON.stringify({ ...left, error: left.error.slice(0, MAX_ERROR_CHARS) });
    writeFileSync(path, content, { mode: 0o600 });
  } catch (error) {
    log("app").error("the failed migration could not be noted", { error: String(error) });
  }
}

/** Returns what the last start left whose migration failed; null if there is nothing. */
export function failedMigration(dataDir: string): FailedMigration | null {
  return readLeft(dataDir);
}

function readLeft(dataDir: string): Left | null {
  try {
    const { version, error, step } = JSON.parse(readFileSync(join(dataDir, NAME), "utf8"));
    return typeof version === "string" && typeof error === "string" && typeof step === "number"
      ? { version, error, step }
      : null;
  } catch {
    return null;
  }
}
