import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { reasonOf, SettingsError } from "../../core/errors.ts";
import { deriveKey } from "../../core/crypto/secretbox.ts";
import { syncFile, syncFolder } from "../process/disk.ts";

/** The keys of the installation, each for one purpose and derived from the master key. */
export interface InstallationKeys {
  /** Seals DKIM keys, certificate keys and webhook secrets at rest. */
  box: Uint8Array;
  /** Authenticates cursors. */
  cursor: Uint8Array;
  /** Authenticates the tokens in return paths. */
  verp: Uint8Array;
  /** Authenticates the tokens in unsubscribe links. */
  unsubscribe: Uint8Array;
  /** Authenticates the tokens of open and click tracking. */
  tracking: Uint8Array;
  /** Seals the cookies of the dashboard's sessions. */
  session: Uint8Array;
  /** Encrypts backups. */
  backup: Uint8Array;
}

/** The file in DATA_DIR that holds a generated master key: 32 bytes in hex. */
export const MASTER_KEY_FILE = "master.key";

/**
 * Derives the keys from MASTER_KEY, or from the file in DATA_DIR, which the first start makes.
 * @param sealed true if the database holds sealed keys; then a missing file is an error, because a new key would not open them
 * @throws SettingsError if the file cannot be read, holds no key, or is lost
 */
export function openKeys(masterKey: string | null, dataDir: string, sealed = false): InstallationKeys {
  return keysOf(masterKey ?? keyFromFile(dataDir, sealed));
}

/** Derives the keys from a master key. */
export function keysOf(masterKey: string): InstallationKeys {
  const master = Buffer.from(masterKey, "utf8");
  return {
    box: deriveKey(master, "box"),
    cursor: deriveKey(master, "cursor"),
    verp: deriveKey(master, "verp"),
    unsubscribe: deriveKey(master, "unsubscribe"),
    tracking: deriveKey(master, "tracking"),
    session: deriveKey(master, "session"),
    backup: deriveKey(master, "backup"),
  };
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
        `there is no master key at ${path}, and the database was sealed with one: put that master.key there, or set MASTER_KEY to it`,
      );
    mkdirSync(dataDir, { recursive: true });
    makeKeyFile(path);
    chmodSync(path, 0o600);
  }
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
