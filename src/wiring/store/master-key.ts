import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Config } from "../../config.ts";
import { reasonOf, SettingsError } from "../../core/errors.ts";
import { syncFile, syncFolder } from "../process/disk.ts";

/** The way out if the key that seals the database is nowhere. */
export const IF_LOST = "If it is lost, `postrider master-key reset` replaces the secrets";

/** The file in DATA_DIR that holds a generated master key: 32 bytes in hex. */
export const MASTER_KEY_FILE = "master.key";

/** Files of the keys during and after a rotation, with a key each. */
export const NEXT_KEY_FILE = `${MASTER_KEY_FILE}.next`;
export const OLD_KEY_FILE = `${MASTER_KEY_FILE}.old`;

/**
 * Returns the master keys that this process has: those of the settings, and without MASTER_KEY those of the files in DATA_DIR,
 * of which the first start makes one.
 * @param sealed true if the database holds sealed keys; then a missing file is an error, because a new key would not open them
 * @throws SettingsError if a file cannot be read, holds no key, or is lost
 */
export function heldMasterKeys(
  { masterKey, masterKeyOld, dataDir }: Pick<Config, "masterKey" | "masterKeyOld" | "dataDir">,
  sealed: boolean,
): string[] {
  const old = masterKeyOld === null ? [] : [masterKeyOld];
  if (masterKey !== null) return [masterKey, ...old];
  const others = [NEXT_KEY_FILE, OLD_KEY_FILE].map((name) => join(dataDir, name)).filter(existsSync);
  return [keyFromFile(dataDir, sealed), ...others.map(keyIn), ...old];
}

/** Returns whether there is a master key: the setting, or the file. */
export function hasMasterKey({ masterKey, dataDir }: Pick<Config, "masterKey" | "dataDir">): boolean {
  return masterKey !== null || existsSync(join(dataDir, MASTER_KEY_FILE));
}

/** Makes the file of the next master key, unless it is there. Returns the key. */
export function nextKeyFromFile(dataDir: string): string {
  const path = join(dataDir, NEXT_KEY_FILE);
  if (!existsSync(path)) makeKeyFile(path);
  return keyIn(path);
}

/** Makes the next master key the one of the file, and keeps the one before it. Can be repeated. */
export function turnKeyFiles(dataDir: string): void {
  const [path, next, old] = [MASTER_KEY_FILE, NEXT_KEY_FILE, OLD_KEY_FILE].map((name) => join(dataDir, name));
  if (path === undefined || next === undefined || old === undefined || !existsSync(next)) return;
  copyFileSync(path, `${old}.part`);
  chmodSync(`${old}.part`, 0o600);
  syncFile(`${old}.part`);
  renameSync(`${old}.part`, old);
  renameSync(next, path);
  syncFolder(path);
}

/** Puts the master key of another installation into a DATA_DIR that has none. */
export function saveMasterKey(dataDir: string, key: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(dataDir, MASTER_KEY_FILE), `${key}\n`, { flag: "wx", mode: 0o600, flush: true });
}

function keyFromFile(dataDir: string, sealed: boolean): string {
  const path = join(dataDir, MASTER_KEY_FILE);
  if (!existsSync(path)) {
    if (sealed)
      throw new SettingsError(
        `there is no master key at ${path}, and the database was sealed with one: put that master.key there, or set MASTER_KEY to it. ${IF_LOST}`,
      );
    mkdirSync(dataDir, { recursive: true });
    makeKeyFile(path);
  }
  return keyIn(path);
}

function keyIn(path: string): string {
  const key = textOf(path).trim();
  if (!/^[0-9a-f]{64}$/.test(key))
    throw new SettingsError(
      `${path} does not hold a master key, which is 64 hexadecimal digits: put back the one that this database was sealed with`,
    );
  return key;
}

/** Reads the file. It may be a folder, because Docker makes one if a file to mount is missing. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const code = reasonOf(cause);
    const hint = code === "EACCES" ? ": does it belong to the user of the service?" : "";
    throw new SettingsError(`the master key at ${path} cannot be read (${code})${hint}`, { cause });
  }
}

/**
 * Makes the file. If several processes start at once, one makes it and the others read it. It is written under another name
 * and then linked, which fails if the file exists.
 */
function makeKeyFile(path: string): void {
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  writeFileSync(draft, `${randomBytes(32).toString("hex")}\n`, { flag: "wx", mode: 0o600, flush: true });
  try {
    linkSync(draft, path);
  } catch (error) {
    // If the file system has no hard links, copy. A process that reads a partial copy reports that it holds no key.
    if (reasonOf(error) !== "EEXIST") copyUnlessThere(draft, path);
  } finally {
    rmSync(draft);
  }
  chmodSync(path, 0o600);
  // The sealed keys are synced with the database, so the file must survive a power cut, too.
  syncFolder(path);
}

function copyUnlessThere(from: string, to: string): void {
  try {
    copyFileSync(from, to, constants.COPYFILE_EXCL);
    syncFile(to);
  } catch (error) {
    if (reasonOf(error) !== "EEXIST") throw error;
  }
}
