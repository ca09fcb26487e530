import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { type CommitMeter, type Db, openDb } from "../store/engine/client.ts";
import { VALUES_PER_TURN } from "../store/engine/engine.ts";
import type { WriterOptions } from "../store/engine/write-thread.ts";
import { untilFree } from "../store/engine/until-free.ts";
import { openWorker } from "./threads/thread.ts";

/**
 * Values from which on a transaction goes to the thread in a process that only takes requests: some five sends. It hardly reads,
 * and what it does is bound by this thread; half of that is writing.
 */
const HANDED_OVER_BY_API = 400;

/** The thread that makes large transactions for a process of these roles. */
export function writerFor({ roles }: Pick<Config, "roles">): WriterOptions {
  const onlyApi = roles.has("api") && roles.size === 1;
  return {
    open: () => openWorker("write-worker.ts"),
    valuesHere: onlyApi ? HANDED_OVER_BY_API : VALUES_PER_TURN,
  };
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
