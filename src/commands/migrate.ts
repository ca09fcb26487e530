import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { MIGRATIONS, type MigrationState, migrate, migrationStates } from "../store/engine/migrate.ts";
import { type Context, defineCommand } from "./command.ts";
import { untilFree } from "../store/engine/until-free.ts";
import { databaseFile, isThere, withAnyDatabase } from "./database.ts";
import { EX_OK } from "./exit.ts";
import { field } from "./output.ts";

/** Mode of a folder that we make: what mails say is not for everybody on the machine. */
const OWNER_ONLY = 0o700;

/** Applies the schema steps that are missing; the service does the same when it starts. */
export const migrateNow = defineCommand({
  name: "migrate",
  flags: {},
  about: `Applies the schema steps that the database lacks, and makes it where there is none. A start of the service does the
same: this is for those who want it done before.`,
  example: "postrider migrate",
  async run(_input, context) {
    const { clock, config, out } = context;
    const file = databaseFile(config);
    if (file !== null) mkdirSync(dirname(file), { recursive: true, mode: OWNER_ONLY });
    const applied = await withAnyDatabase(context, (db) => untilFree(clock, () => migrate(db, clock.now())));
    out.record({ applied }, applied.length === 0 ? "up to date" : `applied: ${applied.join(", ")}`);
    return EX_OK;
  },
});

/** Lists the schema steps. */
export const migrateStatus = defineCommand({
  name: "migrate status",
  flags: {},
  about: "Lists the schema steps that this program knows, and when each was applied.",
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

/** Where there is no database every step is still to come: opening one that is not there would make it. */
async function statesOf(context: Context): Promise<readonly MigrationState[]> {
  const file = databaseFile(context.config);
  if (file !== null && !isThere(file))
    return MIGRATIONS.map(({ version, name }) => ({ version, name, appliedAt: null }));
  return withAnyDatabase(context, (db) => untilFree(context.clock, () => migrationStates(db)));
}
