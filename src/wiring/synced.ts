import { closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** Has the bytes of a file on disk when it returns. */
export function syncFile(path: string): void {
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
}

/** Has the names in the file's folder on disk: a file that was made or renamed is there after a power cut too. */
export function syncFolder(path: string): void {
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}
