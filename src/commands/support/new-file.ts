import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { syncFolder } from "../../wiring/process/disk.ts";
import { refused } from "./exit.ts";

/** An empty file that this process has just created. */
export interface ClaimedFile {
  /** Writes the content, and returns when it is on disk. */
  finish(content: string | Uint8Array): void;
  giveUp(): void;
}

/** Mode of the file: only its owner may read it, because the content is secret. */
const OWNER_ONLY = 0o600;

/** Creates an empty file. Throws (refused) if a file of that name exists, which is left unchanged. */
export function claimFile(path: string): ClaimedFile {
  const file = open(path);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(file);
    isOpen = false;
  };
  return {
    finish(content) {
      const bytes = Buffer.from(content);
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
      fsyncSync(file);
      close();
      syncFolder(path);
    },
    giveUp() {
      close();
      rmSync(path, { force: true });
    },
  };
}

function open(path: string): number {
  try {
    // `wx` neither overwrites a file nor follows a link that another user has placed there.
    return openSync(path, "wx", OWNER_ONLY);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST")
      throw refused(`${path} exists and is not overwritten`);
    if (error instanceof Error && "code" in error) throw refused(`${path} cannot be created (${error.code})`);
    throw error;
  }
}
