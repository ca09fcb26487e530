import { existsSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../../config.ts";
import { copyDatabase, faultsOf } from "../../store/embedded/connection.ts";
import { makingKey } from "../../core/crypto/key-ring.ts";
import { currentKeys } from "../../wiring/store/installation-keys.ts";
import { MASTER_KEY_FILE } from "../../wiring/store/master-key.ts";
import { sealFile } from "../../wiring/store/sealed-copy.ts";
import { syncFile, syncFolder } from "../../wiring/process/disk.ts";
import { type Context, defineCommand } from "../support/command.ts";
import { databaseFile } from "../../wiring/store/database.ts";
import { isThere, withAnyDatabase } from "../support/database.ts";
import { EX_OK, refused, unavailable } from "../support/exit.ts";
import { claimFile, claimPart } from "../support/new-file.ts";
import { explained } from "../support/trouble.ts";

/** Copies the database file. */
export const backup = defineCommand({
  name: "backup",
  args: ["FILE"],
  flags: {
    "with-key": { type: "boolean", help: "also copy master.key, to FILE.key" },
    encrypt: { type: "boolean", help: "encrypt FILE with the master key, and check it by opening it" },
  },
  about: `Copies the database into FILE as of one moment, while the service runs and writes. The copy is FILE.part until it is
complete and on disk. If FILE exists, it is not overwritten. \`postrider restore FILE\` brings it back.

The master key encrypts the DKIM keys and webhook secrets in the database. Without it a backup cannot send signed
mail, and it is not in FILE. Keep it elsewhere, or copy it with --with-key and protect both files. With --encrypt, FILE
cannot even be opened without it. The format is that of age (age-encryption.org).`,
  example: "postrider backup postrider-$(date +%F).db --with-key",
  async run({ flags, args: [name = ""] }, context) {
    const { config, out } = context;
    const file = resolve(name);
    const source = sourceOf(config);
    const key = keyOf(config, flags["with-key"], file);
    if (existsSync(file)) throw refused(`${file} exists and is not overwritten`);
    const bytes = await copyInto(source, file, {
      key: key.copyFrom === null ? null : { from: key.copyFrom, to: `${file}.key` },
      seal: flags.encrypt === true ? await backupKey(context) : null,
    });
    const keyFile = key.copyFrom === null ? null : `${file}.key`;
    out.record({ file, bytes, keyFile, masterKey: key.at }, `copied ${bytes} bytes into ${file}`);
    if (keyFile === null)
      out.warn(
        `THE MASTER KEY IS NOT IN THIS BACKUP. Without it the backup cannot sign mail. It is ${key.where}`,
      );
    else out.warn(`${keyFile} contains the master key. Both files together reveal all secrets`);
    return EX_OK;
  },
});

/** Returns the key that encrypts a backup, which is that of the master key in use. */
function backupKey(context: Context): Promise<Uint8Array> {
  const { clock, config } = context;
  return withAnyDatabase(context, async (db) => makingKey((await currentKeys({ db, clock }, config)).backup));
}

function sourceOf(config: Config): string {
  const source = databaseFile(config);
  if (source === null)
    throw refused("the database is a server's: a backup is made there (DATABASE_URL, DATABASE_SYNC_URL)");
  if (!isThere(source)) throw unavailable(`there is no database at ${source}`);
  return source;
}

interface Key {
  /** The place of the master key, for programs and in words. */
  at: string;
  where: string;
  /** The file to copy. Null: there is none. */
  copyFrom: string | null;
}

function keyOf(config: Config, wanted: boolean, file: string): Key {
  if (config.masterKey !== null) {
    if (wanted) throw refused("--with-key: the master key is the setting MASTER_KEY, and no file of ours");
    return { at: "MASTER_KEY", where: "the setting MASTER_KEY", copyFrom: null };
  }
  const path = resolve(join(config.dataDir, MASTER_KEY_FILE));
  if (!wanted) return { at: path, where: `in ${path} (--with-key copies it)`, copyFrom: null };
  if (!existsSync(path)) throw refused(`--with-key: there is no ${path}`);
  if (existsSync(`${file}.key`)) throw refused(`${file}.key exists and is not overwritten`);
  return { at: path, where: `in ${path}`, copyFrom: path };
}

/** Copies to another name first, so that FILE is never incomplete. Returns its bytes. */
async function copyInto(
  source: string,
  file: string,
  { key, seal }: { key: { from: string; to: string } | null; seal: Uint8Array | null },
): Promise<number> {
  const part = `${file}.part`;
  // VACUUM INTO accepts an existing file if it is empty.
  claimPart(part, "a backup").finish();
  const sealed = `${part}.age`;
  try {
    const keyCopy = key === null ? null : claimFile(key.to);
    try {
      copyOf(source, part);
      syncFile(part);
      if (seal !== null) {
        checkCopy(part);
        await sealFile(part, sealed, seal);
      }
      if (key !== null) keyCopy?.finish(readFileSync(key.from));
      // Checks again, because the copy may have taken long.
      if (existsSync(file)) throw refused(`${file} exists and is not overwritten`);
      renameSync(seal === null ? part : sealed, file);
      rmSync(part, { force: true });
    } catch (error) {
      keyCopy?.giveUp();
      throw error;
    }
  } catch (error) {
    rmSync(sealed, { force: true });
    rmSync(part, { force: true });
    // Files of SQLite that would spoil the copy when it is opened.
    rmSync(`${part}-journal`, { force: true });
    throw error;
  }
  syncFolder(file);
  return statSync(file).size;
}

/** Makes the copy. If it fails, the error says which of the two files or disks is the cause. */
function copyOf(source: string, part: string): void {
  try {
    copyDatabase(source, part);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code.startsWith("SQLITE_FULL")) throw unavailable(`there is no room for the copy at ${part}`);
    if (code.startsWith("SQLITE_IOERR"))
      throw unavailable(`${source} cannot be read to its end, or ${part} not be written (${code})`);
    explained(error);
  }
}

/** Checks every page of a copy. */
function checkCopy(part: string): void {
  const [fault] = faultsOf(part);
  if (fault !== undefined) throw unavailable(`the database is damaged, so the copy is no backup: ${fault}`);
}
