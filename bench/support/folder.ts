import { cpSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Types of file systems in memory, as in statfs(2). A durable commit costs nothing there. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/** Makes a folder on a real disk that is removed with the bench. Throws if temporary files are kept in memory. */
export function benchFolder(): string {
  if (IN_MEMORY.has(statfsSync(tmpdir()).type))
    throw new Error("the temporary folder is in memory: set TMPDIR to one on a disk");
  const folder = mkdtempSync(join(tmpdir(), "postrider-bench-"));
  goneAtExit(folder);
  return folder;
}

function goneAtExit(folder: string): void {
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
}

let copies = 0;

/** Copies a data folder. The copy is removed with the bench. */
export function copyOf(folder: string): string {
  const copy = `${folder}-${++copies}`;
  goneAtExit(copy);
  cpSync(folder, copy, { recursive: true });
  return copy;
}
