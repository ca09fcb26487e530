import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = new Set<string>();

/** Memory that Linux offers as a folder, and its `statfs` type. */
const [MEMORY, TMPFS] = ["/dev/shm", 0x01021994];
/** Free bytes from which it takes the databases of a run. A container of Docker has 64 MB by default. */
const ROOM = 2 ** 31;
const dataRoot = hasRoom() ? MEMORY : tmpdir();

function hasRoom(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { type, bavail, bsize } = statfsSync(MEMORY);
  return type === TMPFS && bavail * bsize >= ROOM;
}

/**
 * Makes a new folder whose name tells its purpose. `removeFolder` deletes it. The preload deletes what is left
 * after the tests of a file; if no tests run, the end of the process does.
 */
export function newFolder(purpose: string): string {
  return removedLater(lastingFolder(purpose));
}

/** Makes a new folder as `newFolder` does, for a database: in memory if there is room, because each commit waits for the disk. */
export function newDataFolder(purpose: string): string {
  return removedLater(lastingDataFolder(purpose));
}

function removedLater(folder: string): string {
  if (made.size === 0) process.once("exit", removeFolders);
  made.add(folder);
  return folder;
}

/** Makes a new folder that outlives the tests of a file. The caller removes it. */
export function lastingFolder(purpose: string): string {
  return mkdtempSync(join(tmpdir(), `postrider-${purpose}-`));
}

/** Makes a new folder for a database that outlives the tests of a file. The caller removes it. */
export function lastingDataFolder(purpose: string): string {
  return mkdtempSync(join(dataRoot, `postrider-${purpose}-`));
}

/** Removes a folder with its content. Does nothing if the folder is gone. */
export function removeFolder(folder: string): void {
  // A process that has just been killed may still be writing.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  made.delete(folder);
}

/** Removes every folder that is left. */
export function removeFolders(): void {
  process.off("exit", removeFolders);
  for (const folder of made) removeFolder(folder);
}
