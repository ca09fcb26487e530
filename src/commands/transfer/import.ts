import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Config } from "../../config.ts";
import { WRONG_KEY } from "../../flows/records/keys.ts";
import { seal, unseal, unsealOrNull } from "../../core/crypto/secretbox.ts";
import { SettingsError } from "../../core/errors.ts";
import type { Db } from "../../store/engine/client.ts";
import { migrate } from "../../store/engine/migrate.ts";
import { MIGRATIONS } from "../../store/engine/migrations.ts";
import { retryWhileBusy } from "../../store/engine/retry-while-busy.ts";
import { databaseFile } from "../../wiring/store/database.ts";
import { masterKeyOf } from "../../flows/secrets/master-key.ts";
import { keysInUse, problemOf } from "../../wiring/store/installation-keys.ts";
import { hasMasterKey, heldMasterKeys, saveMasterKey } from "../../wiring/store/master-key.ts";
import { ACCOUNT_FLAG } from "../support/account.ts";
import { type Context, defineCommand } from "../support/command.ts";
import { withAnyDatabase, withDatabase } from "../support/database.ts";
import { EX_NO, EX_OK, unavailable } from "../support/exit.ts";
import { field } from "../support/output.ts";
import { checkFile, KEY_CHECK } from "./file-format.ts";
import { importFile, type Report } from "./import-file.ts";

/** Reads a file of `postrider export` into the database. */
export const importFrom = defineCommand({
  name: "import",
  args: ["FILE"],
  flags: {
    "dry-run": { type: "boolean", help: "change nothing, and show what would be" },
    account: { ...ACCOUNT_FLAG, help: "account that the projects join; needed if there is more than one" },
  },
  about: `Reads FILE, which \`postrider export\` made, into the database, which it makes if there is none. Ids are kept. A row
whose id is already there is left as it is, so a repeated import goes on where it stopped. The whole file is checked before
anything is written. If the installation has an account of its own, the projects join it.

Secrets in FILE are sealed with the master key of its installation: MASTER_KEY, or master.key in DATA_DIR. If this
installation has another one, put that of FILE at FILE.key: the secrets are sealed again. If it has none yet, FILE.key
becomes its own. Messages that were due are held: see \`postrider release-held\`.`,
  example: "postrider export estate.ndjson && postrider import estate.ndjson --dry-run",
  async run({ flags, args: [name = ""] }, context) {
    const { clock, config } = context;
    const path = resolve(name);
    if (!existsSync(path)) throw unavailable(`${path} cannot be read`);
    const { header, counts } = await checkFile(path, Math.max(...MIGRATIONS.map(({ version }) => version)));
    const dryRun = flags["dry-run"] === true;
    const from = keyOfFile(config, path, header.key);
    const report = await inDatabase(context, dryRun, async (db) => {
      const reseal = await resealing(db, config, from, dryRun);
      const { messages } = header;
      return importFile(path, { db, clock, dryRun, reseal, account: flags.account, messages });
    });
    show(report, Object.keys(counts), dryRun, context);
    const refused = [...report.tallies.values()].some((tally) => tally.refused > 0);
    return refused ? EX_NO : EX_OK;
  },
});

function show(
  { tallies, refusals, notes }: Report,
  tables: readonly string[],
  dryRun: boolean,
  { out }: Context,
): void {
  const rows = tables.map((table) => ({
    kind: table,
    dryRun,
    created: 0,
    alreadyThere: 0,
    refused: 0,
    ...tallies.get(table),
  }));
  const columns = [
    field("kind"),
    field("created", dryRun ? "would be created" : "created"),
    field("alreadyThere", "already there"),
    field("refused"),
  ];
  out.rows(rows, columns);
  for (const text of [...refusals.map(({ row, why }) => `refused: ${row}: ${why}`), ...notes]) out.warn(text);
}

function inDatabase<Value>(
  context: Context,
  dryRun: boolean,
  task: Parameters<typeof withDatabase<Value>>[1],
): Promise<Value> {
  if (dryRun) return withDatabase(context, task);
  const { clock, config } = context;
  const file = databaseFile(config);
  if (file !== null) mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  return withAnyDatabase(context, async (db) => {
    await retryWhileBusy(clock, () => migrate(db, clock.now(), MIGRATIONS, clock));
    return task(db);
  });
}

/** Returns the master key that sealed a file: one that this process has, or the one next to the file. */
function keyOfFile(config: Config, path: string, check: string): string {
  const own = hasMasterKey(config) ? heldMasterKeys(config, true) : [];
  const beside = existsSync(`${path}.key`) ? [readFileSync(`${path}.key`, "utf8").trim()] : [];
  const key = [...own, ...beside].find(
    (one) => unsealOrNull(masterKeyOf(one).derived.box, check) === KEY_CHECK,
  );
  if (key !== undefined) return key;
  throw new SettingsError(
    `the secrets in ${path} are sealed with another master key: set MASTER_KEY to that of the installation that exported it, or put its master.key at ${path}.key`,
  );
}

/** Returns the function that seals a secret of the file with this installation's key. */
async function resealing(
  db: Db,
  config: Config,
  masterKey: string,
  dryRun: boolean,
): Promise<(sealed: string) => string> {
  if (!hasMasterKey(config)) {
    if (!dryRun) saveMasterKey(config.dataDir, masterKey);
    return (sealed) => sealed;
  }
  const inUse = await keysInUse(db, config);
  const problem = problemOf(inUse);
  const own = inUse.sealing?.derived.box;
  if (problem !== null || own === undefined) throw new SettingsError(problem ?? WRONG_KEY);
  const from = masterKeyOf(masterKey);
  if (from.id === inUse.sealing?.id) return (sealed) => sealed;
  return (sealed) => seal(own, unseal(from.derived.box, sealed));
}
