import { closeSync, existsSync, fsyncSync, openSync, rmSync } from "node:fs";
import { syncFolder, writeAllSync } from "../../wiring/process/disk.ts";
import { refused } from "./exit.ts";

/** An empty file that this process has just created. */
export interface ClaimedFile {
  write(content: string | Uint8Array): void;
  /** Writes the rest of the content, and returns when all of it is on disk. */
  finish(rest?: string | Uint8Array): void;
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
  const write = (content: string | Uint8Array): void => writeAllSync(file, Buffer.from(content));
  return {
    write,
    finish(rest = "") {
      write(rest);
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

/** Creates FILE.part, in which a file is written, so that FILE is never incomplete. `what`: such as "a backup". */
export function claimPart(part: string, what: string): ClaimedFile {
  if (existsSync(part))
    throw refused(
      `${part} exists: ${what} is running, or one was interrupted and left it behind; then remove it`,
    );
  return claimFile(part);
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
