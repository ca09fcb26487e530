import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { type CommitMeter, type Db, openDb } from "../store/engine/client.ts";
import type { OpenWriter } from "../store/engine/write-thread.ts";
import { untilFree } from "../store/engine/until-free.ts";

/**
 * Opens the database of the settings; of processes that start together on one file each waits until it is free.
 * @param serving what the service adds: the thread that makes large transactions, and a meter of commits
 */
export function openDatabase(
  config: Config,
  clock: Clock,
  { openWriter, meter }: { openWriter?: OpenWriter; meter?: CommitMeter } = {},
): Promise<Db> {
  const { databaseUrl: url, databaseAuthToken: authToken, databaseSyncUrl: syncUrl } = config;
  return untilFree(clock, () => openDb(clock, { url, authToken, syncUrl, openWriter }, meter));
}
