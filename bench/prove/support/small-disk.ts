/** A file system of a few megabytes that a run fills and empties. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A mounted tmpfs. It is unmounted when the process ends. */
export interface SmallDisk {
  folder: string;
  /** Writes a file that leaves this many bytes free; 0 leaves none. */
  fill(leave: number): void;
  /** Removes that file. */
  free(): void;
}

const BLOCK = Buffer.alloc(4096);

/** Mounts a tmpfs of this size in bytes. Throws if this process may not mount. */
export function mountSmallDisk(octets: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), "postrider-small-disk-"));
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${octets}`, "none", folder], {
    encoding: "utf8",
  });
  if (mounted.status !== 0) throw new Error(`a tmpfs takes root to mount: ${mounted.stderr}`);
  process.on("exit", () => {
    spawnSync("umount", ["-l", folder]);
    rmdirSync(folder);
  });
  const ballast = join(folder, "ballast");
  return {
    folder,
    fill(leave) {
      const file = openSync(ballast, "w");
      try {
        while (freeOctets(folder) > leave) writeSync(file, BLOCK);
      } catch (error) {
        // Another process took the last block first: the disk is full anyway.
        if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
  };
}

function freeOctets(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
