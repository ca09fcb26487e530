import { MIGRATIONS } from "../../store/engine/migrate.ts";
import type { Db } from "../../store/engine/client.ts";
import { errorCode } from "../../store/engine/engine.ts";
import { appliedVersions, quickCheck } from "../../store/health.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

const MEGABYTE = 1024 ** 2;
const GIGABYTE = 1024 ** 3;
/** What is left of a disk when it is time to act, and when it is nearly too late: a share of it, and bytes. */
const WARN_FREE = { share: 0.1, bytes: GIGABYTE };
const FAIL_FREE = { share: 0.02, bytes: 100 * MEGABYTE };
/** Size to which a database is looked through unasked: about two seconds. */
export const QUICK_CHECK_BYTES = 512 * MEGABYTE;
/** Faults of a database that are shown. */
const SHOWN_FAULTS = 3;
const RESTORE =
  "stop the service, keep a copy of the file, and go back to the last backup; one that was put back wants the -wal and -shm of the file before it removed";

export interface StorageParts {
  /** Opens the database where it can be; throws why it cannot. */
  db: () => Db;
  /** Bytes of the disk that the database is on. */
  disk: () => Promise<{ free: number; total: number }>;
  /** Octets of its file; null where the database is no file of ours. */
  octets: (() => number) | null;
}

/** The disk and the database as they can be looked at at any time. */
export function storageChecks({ db, disk }: Pick<StorageParts, "db" | "disk">): Check[] {
  return [
    {
      name: "disk",
      run: async () => diskFinding(await disk()),
      fix: "see that DATA_DIR, or the folder that DATABASE_URL names, is there and can be read",
    },
    {
      name: "database",
      run: () => readable(db),
      fix: "start the service; see what DATABASE_URL and DATA_DIR name, and who may read and write it",
    },
  ];
}

/** A file that is there, and whether every user of the machine may read it. */
export interface StoredFile {
  path: string;
  open: boolean;
}

/** Mails and secrets are for the user of the service: files of earlier releases, and restored ones, may be for everybody. */
export function filesCheck(files: () => readonly StoredFile[]): Check {
  return {
    name: "files",
    fix: "see that DATA_DIR is there and can be read",
    run() {
      const open = files().flatMap(({ path, open }) => (open ? [path] : []));
      if (open.length === 0) return ok("the database is no other user's to read");
      const paths = open.join(" ");
      return warn(`every user of this machine can read ${paths}`, `chmod 600 ${paths}`);
    },
  };
}

/** Looks through the whole database; a large one only where `deep`. */
export function integrityCheck({ db, octets }: Pick<StorageParts, "db" | "octets">, deep: boolean): Check {
  return {
    name: "integrity",
    fix: RESTORE,
    holds: true,
    needsDatabase: true,
    async run() {
      if (octets === null) return ok("the database is a server's: that is looked after there");
      const bytes = octets();
      const size = `${(bytes / MEGABYTE).toFixed(1)} MB`;
      if (bytes > QUICK_CHECK_BYTES && !deep) return ok(`not looked through, for it is ${size}: --deep does`);
      const faults = await quickCheck(db(), SHOWN_FAULTS);
      if (faults.length === 0) return ok(`every page of ${size} is sound`);
      return fail(`the file is damaged: ${faults.join("; ")}`, RESTORE);
    },
  };
}

function diskFinding({ free, total }: { free: number; total: number }): Finding {
  const share = total === 0 ? 0 : free / total;
  const isBelow = (limit: typeof WARN_FREE): boolean => share < limit.share || free < limit.bytes;
  const left = free < GIGABYTE ? `${Math.floor(free / MEGABYTE)} MB` : `${(free / GIGABYTE).toFixed(1)} GB`;
  const message = `${(share * 100).toFixed(1)} % free, ${left}`;
  const fix =
    "make room where the database is, or set RETENTION_CONTENT_DAYS, RETENTION_EVENT_DAYS or CONTENT_STORE";
  if (isBelow(FAIL_FREE)) return fail(message, fix);
  return isBelow(WARN_FREE) ? warn(message, fix) : ok(message);
}

/** A file that is no database any more is not mended by a start. */
async function readable(db: () => Db): Promise<Finding> {
  try {
    return await database(db());
  } catch (error) {
    if (!/^SQLITE_(?:CORRUPT|NOTADB)/.test(errorCode(error))) throw error;
    return fail(`the file is damaged: ${error instanceof Error ? error.message : String(error)}`, RESTORE);
  }
}

async function database(db: Db): Promise<Finding> {
  const applied = await appliedVersions(db);
  const pending = MIGRATIONS.filter(({ version }) => !applied.includes(version));
  const newest = Math.max(0, ...applied);
  if (MIGRATIONS.every(({ version }) => version < newest))
    return fail(`its schema, ${newest}, is newer than this program`, "run the program that the service runs");
  if (pending.length === 0) return ok(`answers; schema ${newest}`);
  const names = pending.map(({ version, name }) => `${version} ${name}`).join(", ");
  return fail(`schema steps are missing: ${names}`, "start the service, or run postrider migrate");
}
