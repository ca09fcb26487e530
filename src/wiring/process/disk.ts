import { closeSync, existsSync, fsyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../../config.ts";
import type { DiskSpace } from "../../flows/free-space.ts";
import { databasePath } from "../../store/engine/client.ts";

/** Returns the database's file, which may be a link to another disk, or its folder if the file does not exist yet. */
export function existingPath(path: string): string {
  return existsSync(path) ? path : dirname(path);
}

/** Reads the disk of a path. */
export function diskOf(path: string): DiskSpace {
  const { bavail, blocks, bsize } = statfsSync(path);
  return { free: bavail * bsize, total: blocks * bsize };
}

/** Returns a function that reads the disk of the database's file; null if the database is on a server. */
export function databaseDisk({ databaseUrl }: Pick<Config, "databaseUrl">): (() => DiskSpace) | null {
  const path = databasePath(databaseUrl);
  return path === null ? null : () => diskOf(existingPath(path));
}

/** Writes all the bytes, because one call may write only some of them. */
export function writeAllSync(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

/** Syncs the bytes of a file to disk. */
export function syncFile(path: string): void {
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
}

/** Syncs the folder of a file, so that a new or renamed file survives a power cut. */
export function syncFolder(path: string): void {
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}
