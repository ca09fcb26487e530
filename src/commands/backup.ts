import { existsSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../config.ts";
import { copyDatabase } from "../store/engine/backup.ts";
import { MASTER_KEY_FILE } from "../wiring/master-key.ts";
import { syncFile, syncFolder } from "../wiring/synced.ts";
import { defineCommand } from "./command.ts";
import { databaseFile, isThere } from "./database.ts";
import { EX_OK, refused, unavailable } from "./exit.ts";
import { claimFile } from "./new-file.ts";
import { explained } from "./trouble.ts";

/** Copies the database file. */
export const backup = defineCommand({
  name: "backup",
  args: ["FILE"],
  flags: { "with-key": { type: "boolean", help: "copy master.key too, to FILE.key" } },
  about: `Copies the database into FILE as it stands at one moment, while the service runs and writes. FILE appears when the
copy is whole and on disk; until then it is FILE.part. A FILE that exists is not overwritten. To go back to it, stop
the service and put FILE in the place of the database (and remove its -wal and -shm).

DKIM keys and webhook secrets in the database are sealed with the master key: without it a backup cannot send signed
mail. It is not in FILE. Keep it elsewhere, once, or copy it with --with-key and guard both files alike.`,
  example: "postrider backup postrider-$(date +%F).db --with-key",
  async run({ flags, args: [name = ""] }, { config, out }) {
    const file = resolve(name);
    const source = sourceOf(config);
    const key = keyOf(config, flags["with-key"], file);
    if (existsSync(file)) throw refused(`${file} exists and is not overwritten`);
    const bytes = copyInto(
      source,
      file,
      key.copyFrom === null ? null : { from: key.copyFrom, to: `${file}.key` },
    );
    const keyFile = key.copyFrom === null ? null : `${file}.key`;
    out.record({ file, bytes, keyFile, masterKey: key.at }, `copied ${bytes} bytes into ${file}`);
    if (keyFile === null)
      out.warn(
        `THE MASTER KEY IS NOT IN THIS BACKUP, and without it the backup cannot sign mail: it is ${key.where}`,
      );
    else out.warn(`${keyFile} holds the master key: who has both files has all secrets`);
    return EX_OK;
  },
});

function sourceOf(config: Config): string {
  const source = databaseFile(config);
  if (source === null)
    throw refused("the database is a server's: a backup is made there (DATABASE_URL, DATABASE_SYNC_URL)");
  if (!isThere(source)) throw unavailable(`there is no database at ${source}`);
  return source;
}

interface Key {
  /** Where the master key is, for programs and in words. */
  at: string;
  where: string;
  /** The file to copy; null: none. */
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

/** Makes the copy under another name first, so that a FILE is never half of one. Gives its bytes. */
function copyInto(source: string, file: string, key: { from: string; to: string } | null): number {
  const part = claimPart(`${file}.part`);
  try {
    const keyCopy = key === null ? null : claimFile(key.to);
    try {
      copyOf(source, part);
      syncFile(part);
      if (key !== null) keyCopy?.finish(readFileSync(key.from));
      // Once more: the copy may have taken long.
      if (existsSync(file)) throw refused(`${file} exists and is not overwritten`);
      renameSync(part, file);
    } catch (error) {
      keyCopy?.giveUp();
      throw error;
    }
  } catch (error) {
    rmSync(part, { force: true });
    // What SQLite would take a copy back with that it could not write.
    rmSync(`${part}-journal`, { force: true });
    throw error;
  }
  syncFolder(file);
  return statSync(file).size;
}

/** Makes the copy; throws in words that tell which of the two files, or disks, is at fault. */
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

/** Makes the file that the copy goes into, which VACUUM INTO takes where it is empty. */
function claimPart(part: string): string {
  if (existsSync(part))
    throw refused(`${part} exists: a backup is under way, or one has died and left it; then remove it`);
  claimFile(part).finish("");
  return part;
}
