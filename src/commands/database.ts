import { statSync } from "node:fs";
import type { Config } from "../config.ts";
import { configureLog } from "../log.ts";
import { databasePath, type Db } from "../store/engine/client.ts";
import { isUpToDate } from "../store/engine/migrate.ts";
import { untilFree } from "../store/engine/until-free.ts";
import { openDatabase } from "../wiring/database.ts";
import type { Context } from "./command.ts";
import { explained } from "./trouble.ts";

const OUTDATED = "start the service, or run postrider migrate";

/** The file of a database that is a file of its own; null for a server, and for a replica of one. */
export function databaseFile(config: Config): string | null {
  return config.databaseSyncUrl === null ? databasePath(config.databaseUrl) : null;
}

/** Whether a file is there. Throws where that cannot be told: in a folder that is another user's it may well be. */
export function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return explained(error);
  }
}

/** Opens the database, runs `task` on it and closes it. The schema may be of any age. */
export async function withAnyDatabase<Value>(
  { config, clock }: Context,
  task: (db: Db) => Promise<Value>,
): Promise<Value> {
  await configureLog(config.logLevel, config.logFormat);
  const db = await openDatabase(config, clock).catch((error: unknown) => explained(error));
  try {
    return await task(db).catch((error: unknown) => explained(error));
  } finally {
    await db.close();
  }
}

/** The same on a database that is there and of this program's schema, neither older nor newer; makes none. Throws where it is not. */
export async function withDatabase<Value>(
  context: Context,
  task: (db: Db) => Promise<Value>,
): Promise<Value> {
  const file = databaseFile(context.config);
  if (file !== null && !isThere(file))
    throw new Error(`the database is not up to date, there is none at ${file}: ${OUTDATED}`);
  return withAnyDatabase(context, async (db) => {
    if (!(await untilFree(context.clock, () => isUpToDate(db))))
      throw new Error(`the database is not up to date: ${OUTDATED}`);
    return task(db);
  });
}
