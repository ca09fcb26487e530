import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from "node:fs";
import { SettingsError } from "../../core/errors.ts";
import { randomBase62 } from "../../core/ids.ts";
import type { FirstStart, SaveKeys, SavedKeys } from "../../flows/account/bootstrap.ts";
import { syncFolder, writeAllSync } from "./disk.ts";

/** Only the service's user may read the file. */
const OWNER_ONLY = 0o600;
const RANDOM_CHARS = 8;

/** Returns the text of the file: shell assignments, so that a script can source it. */
function textOf({ accountKey, projectKey }: FirstStart): string {
  return `POSTRIDER_ACCOUNT_KEY=${accountKey}\nPOSTRIDER_PROJECT_KEY=${projectKey}\n`;
}

/**
 * Saves the first keys in a file that only its owner may read. It is written under a temporary name before the database has
 * the keys, and renamed after. If a file of that name exists, it stays, and the keys keep the temporary name.
 * @throws if the file cannot be made; then no key is made either
 */
export function saveKeysToFile(path: string): SaveKeys {
  return (keys) => {
    const own = `${path}.${randomBase62(RANDOM_CHARS)}`;
    writeNew(own, textOf(keys));
    return kept(path, own);
  };
}

function writeNew(path: string, text: string): void {
  // `wx` follows no link that another user has put there.
  const file = openSync(path, "wx", OWNER_ONLY);
  try {
    writeAllSync(file, Buffer.from(text));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  syncFolder(path);
}

function kept(path: string, own: string): SavedKeys {
  return {
    done() {
      if (existsSync(path)) return own;
      try {
        // Unlike a rename it replaces no file.
        linkSync(own, path);
      } catch {
        return own;
      }
      rmSync(own);
      syncFolder(path);
      return path;
    },
    giveUp: () => rmSync(own, { force: true }),
  };
}

/** Returns the function that saves the first keys in FIRST_KEYS_FILE. If the file cannot be made, the setting is wrong. */
export function keepKeysOf(firstKeysFile: string | null): SaveKeys | undefined {
  if (firstKeysFile === null) return undefined;
  const keep = saveKeysToFile(firstKeysFile);
  return (keys) => {
    try {
      return keep(keys);
    } catch (error) {
      const why = error instanceof Error ? error.message : error;
      throw new SettingsError(`FIRST_KEYS_FILE cannot be made: ${why}`);
    }
  };
}
