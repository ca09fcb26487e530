import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { type MigrationState, migrate, migrationStates } from "../store/engine/migrate.ts";
import { MIGRATIONS } from "../store/engine/migrations.ts";
import { type Context, defineCommand } from "./support/command.ts";
import { retryWhileBusy } from "../store/engine/retry-while-busy.ts";
import { databaseFile } from "../wiring/store/database.ts";
import { isThere, withAnyDatabase } from "./support/database.ts";
import { EX_OK } from "./support/exit.ts";
import { field } from "./support/output.ts";

/** Mode of a folder that we make. Other users of the machine must not read the messages. */
const OWNER_ONLY = 0o700;

/** Applies the missing schema steps, as the service does when it starts. */
export const migrateNow = defineCommand({
  name: "migrate",
  flags: {},
  about: `Applies the database migrations that are missing. If there is no database, creates it. The service does the
same when it starts, so you need this only to do it earlier.`,
  example: "postrider migrate",
  async run(_input, context) {
    const { clock, config, out } = context;
    const file = databaseFile(config);
    if (file !== null) mkdirSync(dirname(file), { recursive: true, mode: OWNER_ONLY });
    const applied = await withAnyDatabase(context, (db) =>
      retryWhileBusy(clock, () => migrate(db, clock.now(), MIGRATIONS, clock)),
    );
    out.record({ applied }, applied.length === 0 ? "up to date" : `applied: ${applied.join(", ")}`);
    return EX_OK;
  },
});

/** Lists the schema steps. */
export const migrateStatus = defineCommand({
  name: "migrate status",
  flags: {},
  about: `Lists the database migrations of this program, and when each was applied.`,
  example: "postrider migrate status",
  async run(_input, context) {
    const states = await statesOf(context);
    const rows = states.map(({ version, name, appliedAt }) => ({
      version,
      name,
      appliedAt: appliedAt === null ? null : new Date(appliedAt).toISOString(),
    }));
    const applied = {
      heading: "applied",
      text: (row: Readonly<Record<string, unknown>>) => String(row.appliedAt ?? "pending"),
    };
    context.out.rows(rows, [field("version"), field("name"), applied]);
    return EX_OK;
  },
});

/** If there is no database, all steps are pending. Opening a missing database would create it. */
async function statesOf(context: Context): Promise<readonly MigrationState[]> {
  const file = databaseFile(context.config);
  if (file !== null && !isThere(file))
    return MIGRATIONS.map(({ version, name }) => ({ version, name, appliedAt: null }));
  return withAnyDatabase(context, (db) => retryWhileBusy(context.clock, () => migrationStates(db)));
}
