import type { Config } from "../../config.ts";
import type { Clock } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { type CommitMeter, databasePath, type Db, openDb } from "../../store/engine/client.ts";
import { VALUES_PER_TURN } from "../../store/sql/engine.ts";
import type { WriterOptions } from "../../store/embedded/writer.ts";
import { retryWhileBusy } from "../../store/engine/retry-while-busy.ts";
import { readFact, recordFact } from "../../store/installation/facts.ts";
import { VERSION } from "../../version.ts";
import { takesSends, type TakingSettings } from "../process/takes-sends.ts";
import { openWorker } from "../cpu/cpu.ts";

/**
 * Returns the options of the writer for a process. If it takes sends and delivers none, the thread makes all
 * transactions, because the event loop limits such a process.
 */
export function writerFor(config: TakingSettings): WriterOptions {
  const onlyTakes = takesSends(config) && !config.roles.has("worker");
  return { open: () => openWorker("write-worker.ts"), maxValuesHere: onlyTakes ? 0 : VALUES_PER_TURN };
}

/** Returns the file of an embedded database. Returns null for a server or a replica. */
export function databaseFile(config: Config): string | null {
  return config.databaseSyncUrl === null ? databasePath(config.databaseUrl) : null;
}

/**
 * Opens the database. If another process is opening the same file, waits until it is free.
 * @param serving the writer and the meter of commits, which only the service uses
 */
export function openDatabase(
  config: Config,
  clock: Clock,
  { writer, meter }: { writer?: WriterOptions; meter?: CommitMeter } = {},
): Promise<Db> {
  const { databaseUrl: url, databaseAuthToken: authToken, databaseSyncUrl: syncUrl } = config;
  return retryWhileBusy(clock, () => openDb(clock, { url, authToken, syncUrl, writer }, meter));
}

/** Remembers this program's version, and logs the first start after another version. */
export async function noteUpgrade(db: Db, migrations: readonly number[]): Promise<void> {
  const before = await readFact(db, "version");
  if (before === VERSION && migrations.length === 0) return;
  await db.write([recordFact("version", VERSION)]);
  if (before !== null) log("app").info(`upgraded from ${before} to ${VERSION}`, { migrations });
}
