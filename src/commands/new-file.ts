import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { syncFolder } from "../wiring/synced.ts";
import { refused } from "./exit.ts";

/** A file that was made empty for us alone. */
export interface ClaimedFile {
  /** Writes the content and has it on disk when this returns. */
  finish(content: string | Uint8Array): void;
  /** Deletes it. */
  giveUp(): void;
}

/** Readable by its owner alone: what goes into it is secret. */
const OWNER_ONLY = 0o600;

/** Makes an empty file that is nobody else's. Throws (refused) where there is one of that name; it is left as it is. */
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
    // `wx` neither overwrites nor follows a link that somebody else has laid there.
    return openSync(path, "wx", OWNER_ONLY);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST")
      throw refused(`${path} exists and is not overwritten`);
    if (error instanceof Error && "code" in error) throw refused(`${path} cannot be made (${error.code})`);
    throw error;
  }
}
