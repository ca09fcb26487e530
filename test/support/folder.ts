import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = new Set<string>();

/**
 * A new folder, whose name tells what it is for. It goes with `removeFolder`, at the latest when the tests of its file have
 * run (the preload sees to it), and where no tests run with the process.
 */
export function newFolder(purpose: string): string {
  const folder = lastingFolder(purpose);
  if (made.size === 0) process.once("exit", removeFolders);
  made.add(folder);
  return folder;
}

/** A new folder for what outlives the tests of a file; whoever uses it removes it. */
export function lastingFolder(purpose: string): string {
  return mkdtempSync(join(tmpdir(), `postrider-${purpose}-`));
}

/** Removes a folder with all that is in it; one that is gone already is none too many. */
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
