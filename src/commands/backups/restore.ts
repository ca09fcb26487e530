import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Config } from "../../config.ts";
import { SettingsError } from "../../core/errors.ts";
import { migrationStates } from "../../store/engine/migrate.ts";
import { recordFact } from "../../store/installation/facts.ts";
import { AFTER_ALL, countHeld, holdAll } from "../../store/messages/held-by-restore.ts";
import { syncFile, syncFolder } from "../../wiring/process/disk.ts";
import { databaseFile } from "../../wiring/store/database.ts";
import { masterKeyOf } from "../../flows/secrets/master-key.ts";
import { followKeys, type KeySettings } from "../../wiring/store/installation-keys.ts";
import {
  hasMasterKey,
  heldMasterKeys,
  MASTER_KEY_FILE,
  saveMasterKey,
} from "../../wiring/store/master-key.ts";
import { openSealed } from "../../wiring/store/sealed-copy.ts";
import { defineCommand, type Context } from "../support/command.ts";
import { withAnyDatabase } from "../support/database.ts";
import { EX_OK, refused, unavailable } from "../support/exit.ts";
import { field } from "../support/output.ts";
import { isRemote, openRemoteBackups } from "../../wiring/store/remote-backups.ts";
import { heldText } from "./held-text.ts";

/** First octets of a database file that is not encrypted (https://sqlite.org/fileformat.html §1.3). */
const SQLITE = "SQLite format 3\0";

/** Ending of the names of backups in the object store. */
const ENDING = ".age";

/** Makes the database from a backup, and holds what was due in it. */
export const restore = defineCommand({
  name: "restore",
  args: ["FILE"],
  flags: {},
  about: `Makes the database from FILE, which \`postrider backup\` or BACKUP_EVERY made. There must be no database yet. The
master key is taken from MASTER_KEY, else from master.key in DATA_DIR, else from FILE.key.

FILE may be \`s3://bucket/prefix/NAME\` of BACKUP_TO; \`s3://bucket/prefix\` alone lists what is there.

Everything that was due in the backup is held, because some of it was sent after the backup. Start the service: reads,
arriving mail and new sends work. Then \`postrider release-held\` shows what is held and lets it go.`,
  example: "postrider backup copy.db --with-key && DATA_DIR=restored postrider restore copy.db",
  async run({ args: [name = ""] }, context) {
    const { config, clock, out } = context;
    if (isRemote(name) && !name.endsWith(ENDING)) return listRemote(context, name);
    const file = targetOf(config);
    const backup = isRemote(name) ? `${file}.fetched` : resolve(name);
    const keys = keysFor(config, backup);
    const part = `${file}.restoring`;
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    try {
      if (isRemote(name)) await fetchRemote(context, name, backup);
      await copyTo(backup, part, heldMasterKeys(keys, true));
      renameSync(part, file);
    } catch (error) {
      rmSync(part, { force: true });
      throw error;
    } finally {
      if (isRemote(name)) rmSync(backup, { force: true });
    }
    try {
      const held = await hold(context, keys, clock.now());
      if (keys !== config && keys.masterKey !== null) saveMasterKey(config.dataDir, keys.masterKey);
      syncFolder(file);
      out.record({ file, held }, `restored ${file}. ${heldText(held)}`);
      return EX_OK;
    } catch (error) {
      for (const ending of ["", "-wal", "-shm"]) rmSync(`${file}${ending}`, { force: true });
      throw error;
    }
  },
});

/** Prints the backups at a place in the object store. */
async function listRemote({ config, clock, out }: Context, place: string): Promise<number> {
  const all = await openRemoteBackups(config, clock, place).list();
  const rows = all.map(({ name, bytes }) => ({ name: `${place.replace(/\/+$/, "")}/${name}`, bytes }));
  out.rows(rows, [field("name"), field("bytes")]);
  return EX_OK;
}

async function fetchRemote({ config, clock }: Context, name: string, to: string): Promise<void> {
  const [, place = "", backup = ""] = /^(.*)\/([^/]+)$/.exec(name) ?? [];
  rmSync(to, { force: true });
  await openRemoteBackups(config, clock, place)
    .fetch(backup, to)
    .catch((error: unknown) => {
      throw unavailable(error instanceof Error ? error.message : String(error));
    });
}

function targetOf(config: Config): string {
  const file = databaseFile(config);
  if (file === null)
    throw refused("the database is a server's: restore it there (DATABASE_URL, DATABASE_SYNC_URL)");
  for (const path of [file, `${file}-wal`])
    if (existsSync(path))
      throw refused(
        `${path} exists: stop the service and move its files away, or set DATA_DIR to an empty folder`,
      );
  return file;
}

/** Returns the settings with the master keys of a backup. If they have none, it is the one next to the backup. */
function keysFor(config: Config, backup: string): KeySettings {
  const { masterKeyOld, dataDir } = config;
  if (hasMasterKey(config)) return config;
  if (existsSync(`${backup}.key`))
    return { masterKey: readFileSync(`${backup}.key`, "utf8").trim(), masterKeyOld, dataDir };
  throw new SettingsError(
    `there is no master key: set MASTER_KEY to that of the backup, or put its master.key at ${join(dataDir, MASTER_KEY_FILE)}`,
  );
}

async function copyTo(backup: string, part: string, masterKeys: readonly string[]): Promise<void> {
  if ((await startOf(backup)) === SQLITE) {
    copyFileSync(backup, part);
    chmodSync(part, 0o600);
  } else
    await openSealed(
      backup,
      part,
      masterKeys.map((key) => masterKeyOf(key).derived.backup),
    ).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      throw unavailable(`${backup} cannot be opened with this master key, or is damaged (${why})`);
    });
  syncFile(part);
}

async function startOf(path: string): Promise<string> {
  const start = Bun.file(path).slice(0, SQLITE.length);
  return start.text().catch(() => {
    throw unavailable(`${path} cannot be read`);
  });
}

/** Checks that this program and these keys fit the database, and holds what is due. */
function hold(context: Context, keys: KeySettings, now: number) {
  return withAnyDatabase(context, async (db) => {
    await migrationStates(db);
    await followKeys({ db, clock: context.clock }, keys);
    await holdAll(db, now);
    await db.write([recordFact("held", String(now))]);
    return countHeld(db, AFTER_ALL);
  });
}
