import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Config } from "../../config.ts";
import { SettingsError } from "../../core/errors.ts";
import { migrationStates } from "../../store/engine/migrate.ts";
import { recordFact } from "../../store/installation/facts.ts";
import { AFTER_ALL, countHeld, holdAll } from "../../store/messages/held-by-restore.ts";
import { installationKey } from "../../store/messages/sending.ts";
import { unseal } from "../../core/crypto/secretbox.ts";
import { syncFile, syncFolder } from "../../wiring/process/disk.ts";
import { databaseFile } from "../../wiring/store/database.ts";
import { keysOf, MASTER_KEY_FILE, saveMasterKey } from "../../wiring/store/master-key.ts";
import { openSealed } from "../../wiring/store/sealed-copy.ts";
import { defineCommand, type Context } from "../support/command.ts";
import { withAnyDatabase } from "../support/database.ts";
import { EX_OK, refused, unavailable } from "../support/exit.ts";
import { heldText } from "./held-text.ts";

/** First octets of a database file that is not encrypted (https://sqlite.org/fileformat.html §1.3). */
const SQLITE = "SQLite format 3\0";

/** Makes the database from a backup, and holds what was due in it. */
export const restore = defineCommand({
  name: "restore",
  args: ["FILE"],
  flags: {},
  about: `Makes the database from FILE, which \`postrider backup\` or BACKUP_EVERY made. There must be no database yet. The
master key is taken from MASTER_KEY, else from master.key in DATA_DIR, else from FILE.key.

Everything that was due in the backup is held, because some of it was sent after the backup. Start the service: reads,
arriving mail and new sends work. Then \`postrider release-held\` shows what is held and lets it go.`,
  example: "postrider backup copy.db --with-key && DATA_DIR=restored postrider restore copy.db",
  async run({ args: [name = ""] }, context) {
    const { config, clock, out } = context;
    const backup = resolve(name);
    const file = targetOf(config);
    const master = masterKeyOf(config, backup);
    const part = `${file}.restoring`;
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    try {
      await copyTo(backup, part, master.key);
      renameSync(part, file);
    } catch (error) {
      rmSync(part, { force: true });
      throw error;
    }
    try {
      const held = await hold(context, master.key, clock.now());
      if (master.isNew) saveMasterKey(config.dataDir, master.key);
      syncFolder(file);
      out.record({ file, held }, `restored ${file}. ${heldText(held)}`);
      return EX_OK;
    } catch (error) {
      for (const ending of ["", "-wal", "-shm"]) rmSync(`${file}${ending}`, { force: true });
      throw error;
    }
  },
});

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

interface Master {
  key: string;
  /** True if it has to be put into DATA_DIR. */
  isNew: boolean;
}

function masterKeyOf({ masterKey, dataDir }: Config, backup: string): Master {
  if (masterKey !== null) return { key: masterKey, isNew: false };
  const own = join(dataDir, MASTER_KEY_FILE);
  const path = [own, `${backup}.key`].find((candidate) => existsSync(candidate));
  if (path === undefined)
    throw new SettingsError(
      `there is no master key: set MASTER_KEY to that of the backup, or put its master.key at ${own}`,
    );
  return { key: readFileSync(path, "utf8").trim(), isNew: path !== own };
}

async function copyTo(backup: string, part: string, masterKey: string): Promise<void> {
  if ((await startOf(backup)) === SQLITE) {
    copyFileSync(backup, part);
    chmodSync(part, 0o600);
  } else
    await openSealed(backup, part, keysOf(masterKey).backup).catch((error: unknown) => {
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

/** Checks that this program and this key fit the database, and holds what is due. */
function hold(context: Context, masterKey: string, now: number) {
  return withAnyDatabase(context, async (db) => {
    await migrationStates(db);
    const sealed = (await installationKey(db))?.sealedPrivateKey;
    if (sealed !== undefined) openWith(masterKey, sealed);
    await holdAll(db, now);
    await db.write([recordFact("held", String(now))]);
    return countHeld(db, AFTER_ALL);
  });
}

function openWith(masterKey: string, sealed: string): void {
  try {
    unseal(keysOf(masterKey).box, sealed);
  } catch {
    throw new SettingsError(
      "the master key is not that of the backup: set MASTER_KEY to the one it was made with",
    );
  }
}
