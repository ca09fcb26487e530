// Backups in the object store. A backup is a list of objects of one size at most, so memory stays small and each request has a time
// limit, and one index says which are whole. S3's own multipart uploads would need requests that the client does not sign.
import { createHash } from "node:crypto";
import { closeSync, openSync, statSync } from "node:fs";
import type { Config } from "../../config.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type ObjectStore, ObjectStoreError, openObjectStore } from "../../net/object-store.ts";
import { writeAllSync } from "../process/disk.ts";
import { storeAt } from "./objects.ts";

/** Size of the objects of a backup, octets. */
export const PART_OCTETS = 16 * 1024 * 1024;
/** Maximum size of the index, octets: some thousand backups. */
const MAX_INDEX_OCTETS = 1024 * 1024;
const NOT_FOUND = 404;

/** A backup in the object store. */
export interface RemoteBackup {
  name: string;
  bytes: number;
  parts: number;
  /** Null until all of it was read back. */
  sha256: string | null;
}

/** The backups below one prefix. Only one process writes at a time. */
export interface RemoteBackups {
  /** Stores a file, and reads it back. */
  put(file: string, name: string): Promise<void>;
  /** Writes a backup into a new file. */
  fetch(name: string, to: string): Promise<void>;
  /** Returns those that are whole, oldest first. */
  list(): Promise<RemoteBackup[]>;
  /** Removes those beyond the newest, and those that were interrupted. */
  keep(count: number): Promise<void>;
}

/** Returns whether a place of backups is in an object store. */
export function isRemote(place: string): boolean {
  return place.startsWith("s3://");
}

/** Opens the backups at `s3://bucket/prefix`. @throws SettingsError without S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY */
export function openRemoteBackups(config: Config, clock: Clock, place: string): RemoteBackups {
  const { options, prefix } = storeAt(config, place);
  const objects = openObjectStore({ clock }, options);
  const at = (name: string) => `${prefix}backups/${name}`;
  const read = () => readIndex(objects, at("index.json"));
  const save = async (all: readonly RemoteBackup[]) =>
    objects.put(at("index.json"), new TextEncoder().encode(JSON.stringify(all)));
  const part = (name: string, number: number) => at(`${name}/${number}`);
  const readParts = async (backup: RemoteBackup, use: (bytes: Uint8Array) => void): Promise<string> => {
    const hash = createHash("sha256");
    for (let number = 0; number < backup.parts; number++) {
      const bytes = await objects.get(part(backup.name, number), PART_OCTETS);
      hash.update(bytes);
      use(bytes);
    }
    return hash.digest("hex");
  };
  return {
    async put(file, name) {
      const { size: bytes } = statSync(file);
      const backup: RemoteBackup = { name, bytes, parts: Math.ceil(bytes / PART_OCTETS), sha256: null };
      const others = (await read()).filter((one) => one.name !== name);
      // Named before it is whole, so that the parts of an interrupted one are found.
      await save([...others, backup]);
      const hash = createHash("sha256");
      for (let number = 0; number < backup.parts; number++) {
        const slice = Bun.file(file).slice(number * PART_OCTETS, (number + 1) * PART_OCTETS);
        const octets = new Uint8Array(await slice.arrayBuffer());
        hash.update(octets);
        await objects.put(part(name, number), octets);
      }
      const sha256 = hash.digest("hex");
      if ((await readParts(backup, () => undefined)) !== sha256)
        throw new Error(`the object store returns something else than was put: ${name}`);
      await save([...others, { ...backup, sha256 }]);
    },
    async fetch(name, to) {
      const backup = (await read()).find((one) => one.name === name && one.sha256 !== null);
      if (backup === undefined) throw new Error(`there is no backup ${name} at ${place}`);
      const handle = openSync(to, "wx", 0o600);
      try {
        const write = (bytes: Uint8Array) => writeAllSync(handle, bytes);
        if ((await readParts(backup, write)) !== backup.sha256) throw new Error(`${name} is damaged`);
      } finally {
        closeSync(handle);
      }
    },
    list: async () => (await read()).filter(({ sha256 }) => sha256 !== null),
    async keep(count) {
      const all = await read();
      const kept = all.filter(({ sha256 }) => sha256 !== null).slice(-count);
      for (const old of all.filter((one) => !kept.includes(one)))
        for (let number = 0; number < old.parts; number++) await objects.remove(part(old.name, number));
      if (kept.length < all.length) await save(kept);
    },
  };
}

async function readIndex(objects: ObjectStore, name: string): Promise<RemoteBackup[]> {
  try {
    const all: RemoteBackup[] = JSON.parse(Buffer.from(await objects.get(name, MAX_INDEX_OCTETS)).toString());
    return all.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  } catch (error) {
    if (error instanceof ObjectStoreError && error.status === NOT_FOUND) return [];
    throw error;
  }
}
