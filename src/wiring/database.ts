import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { type CommitMeter, type Db, openDb } from "../store/engine/client.ts";
import { VALUES_PER_TURN } from "../store/engine/engine.ts";
import type { WriterOptions } from "../store/engine/write-thread.ts";
import { untilFree } from "../store/engine/until-free.ts";
import { openWorker } from "./threads/thread.ts";

/**
 * The thread that makes large transactions for a process of these roles. One that only takes requests hardly reads between
 * its writes, and its event loop is what bounds it: there the thread makes them all.
 */
export function writerFor({ roles }: Pick<Config, "roles">): WriterOptions {
  const onlyApi = roles.has("api") && roles.size === 1;
  return { open: () => openWorker("write-worker.ts"), valuesHere: onlyApi ? 0 : VALUES_PER_TURN };
}

/**
 * Opens the database of the settings; of processes that start together on one file each waits until it is free.
 * @param serving what the service adds: the thread that makes large transactions, and a meter of commits
 */
export function openDatabase(
  config: Config,
  clock: Clock,
  { writer, meter }: { writer?: WriterOptions; meter?: CommitMeter } = {},
): Promise<Db> {
  const { databaseUrl: url, databaseAuthToken: authToken, databaseSyncUrl: syncUrl } = config;
  return untilFree(clock, () => openDb(clock, { url, authToken, syncUrl, writer }, meter));
}
