import { cpSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Types of file systems in memory, as statfs(2) names them: there a durable commit costs nothing. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/** A folder of the bench's own on a real disk, gone with it. Throws where temporary files are kept in memory. */
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

/** A copy of a data folder, beside it, gone with the bench. */
export function copyOf(folder: string): string {
  const copy = `${folder}-${++copies}`;
  goneAtExit(copy);
  cpSync(folder, copy, { recursive: true });
  return copy;
}
