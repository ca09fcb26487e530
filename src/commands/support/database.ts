import { statSync } from "node:fs";
import { type Actor, actingAs } from "../../core/actor.ts";
import { configureLog } from "../../log.ts";
import type { Db } from "../../store/engine/client.ts";
import { migrationStates } from "../../store/engine/migrate.ts";
import { retryWhileBusy } from "../../store/engine/retry-while-busy.ts";
import { databaseFile, openDatabase } from "../../wiring/store/database.ts";
import type { Context } from "./command.ts";
import { explained } from "./trouble.ts";

const OUTDATED = "start the service, or run postrider migrate";

/** A command has no key: the operator who runs it has the database. */
const COMMAND_LINE: Actor = { type: "cli", id: null, name: null, ip: null, requestId: null };

/**
 * Returns whether a file exists. Throws if that is not known, for example because the folder belongs to another user.
 */
export function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return explained(error);
  }
}

/** Opens the database, runs `task` on it and closes it. The schema may be older or newer. */
export async function withAnyDatabase<Value>(
  { config, clock }: Context,
  task: (db: Db) => Promise<Value>,
): Promise<Value> {
  await configureLog(config.logLevel, config.logFormat);
  const db = await openDatabase(config, clock).catch((error: unknown) => explained(error));
  try {
    return await actingAs(COMMAND_LINE, () => task(db)).catch((error: unknown) => explained(error));
  } finally {
    await db.close();
  }
}

/**
 * Runs `task` on an existing database with the schema of this program. Throws if the database is missing, older or
 * newer.
 */
export async function withDatabase<Value>(
  context: Context,
  task: (db: Db) => Promise<Value>,
): Promise<Value> {
  const file = databaseFile(context.config);
  if (file !== null && !isThere(file))
    throw new Error(`the database is not up to date, there is none at ${file}: ${OUTDATED}`);
  return withAnyDatabase(context, async (db) => {
    const states = await retryWhileBusy(context.clock, () => migrationStates(db));
    if (states.some(({ appliedAt }) => appliedAt === null))
      throw new Error(`the database is not up to date: ${OUTDATED}`);
    return task(db);
  });
}
