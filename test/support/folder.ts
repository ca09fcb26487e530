import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = new Set<string>();

/**
 * Makes a new folder whose name tells its purpose. `removeFolder` deletes it. The preload deletes what is left
 * after the tests of a file; if no tests run, the end of the process does.
 */
export function newFolder(purpose: string): string {
  const folder = lastingFolder(purpose);
  if (made.size === 0) process.once("exit", removeFolders);
  made.add(folder);
  return folder;
}

/** Makes a new folder that outlives the tests of a file. The caller removes it. */
export function lastingFolder(purpose: string): string {
  return mkdtempSync(join(tmpdir(), `postrider-${purpose}-`));
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
