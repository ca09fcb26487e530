import { migrationStates, SchemaRefusal } from "../../store/engine/migrate.ts";
import type { Clock } from "../../core/time/clock.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import type { Db } from "../../store/engine/client.ts";
import { errorCode } from "../../store/sql/errors.ts";
import { readFact } from "../../store/installation/facts.ts";
import { AFTER_ALL, countHeld } from "../../store/messages/held-by-restore.ts";
import { commitsReachDisk, quickCheck } from "../../store/installation/health.ts";
import { type DiskSpace, isLow } from "../free-space.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

const MEGABYTE = 1024 ** 2;
const GIGABYTE = 1024 ** 3;
/** Free space below which the check warns: a share of the disk, and bytes. */
const WARN_FREE = { share: 0.1, bytes: GIGABYTE };
/** Free space below which the check fails, if the service does not watch the disk. */
const FAIL_FREE = { share: 0.02, bytes: 100 * MEGABYTE };
/** Largest database that is checked without `deep`, which takes about two seconds. */
export const QUICK_CHECK_BYTES = 512 * MEGABYTE;
/** Faults of a database that are shown. */
const SHOWN_FAULTS = 3;
const RESTORE =
  "Stop the service, keep a copy of the file, delete its -wal and -shm, and restore the last backup.";

export interface StorageParts {
  /** Returns the database; throws if it cannot be opened. */
  db: () => Db;
  /** Reads the space of the disk that the database is on. */
  disk: () => Promise<DiskSpace>;
  /** Free bytes below which the service refuses new content; 0 if it does not watch the disk. */
  minFree: number;
  /** Returns the octets of the database file; null if the database is on a server. */
  octets: (() => number) | null;
}

/** Checks the disk and the database, at a cost that allows it at any time. */
export function storageChecks({ db, disk, minFree }: Pick<StorageParts, "db" | "disk" | "minFree">): Check[] {
  return [
    {
      name: "disk",
      run: async () => diskFinding(await disk(), minFree),
      fix: "Check that DATA_DIR, or the folder in DATABASE_URL, exists and can be read.",
    },
    {
      name: "database",
      run: () => readable(db),
      fix: "Start the service, and check that DATABASE_URL and DATA_DIR are right and that the service may read and write there.",
    },
  ];
}

/** An existing file, and whether every user of the machine may read it. */
export interface StoredFile {
  path: string;
  open: boolean;
}

/** Checks that other users of the machine cannot read messages and secrets, as they could in a restored file. */
export function filesCheck(files: () => readonly StoredFile[]): Check {
  return {
    name: "files",
    fix: "Check that DATA_DIR exists and can be read.",
    run() {
      const open = files().flatMap(({ path, open }) => (open ? [path] : []));
      if (open.length === 0) return ok("Other users of this machine cannot read the database.");
      const paths = open.join(" ");
      return warn(`Every user of this machine can read ${paths}.`, `Run: chmod 600 ${paths}`);
    },
  };
}

/** Checks every page of the database; a large one only if `deep`. */
export function integrityCheck({ db, octets }: Pick<StorageParts, "db" | "octets">, deep: boolean): Check {
  return {
    name: "integrity",
    fix: RESTORE,
    holds: true,
    needsDatabase: true,
    async run() {
      if (octets === null) return ok("The database is on a server, which checks it itself.");
      const bytes = octets();
      const size = `${(bytes / MEGABYTE).toFixed(1)} MB`;
      if (bytes > QUICK_CHECK_BYTES && !deep)
        return ok(`The database was not checked, because it has ${size}. Use --deep to check it.`);
      const faults = await quickCheck(db(), SHOWN_FAULTS);
      if (faults.length === 0) return ok(`All ${size} of the database are intact.`);
      return fail(`The database file is damaged: ${faults.join("; ")}`, RESTORE);
    },
  };
}

/** Judges the free space of a disk. @param minFree see `StorageParts` */
export function diskFinding({ free, total }: DiskSpace, minFree: number): Finding {
  const share = total === 0 ? 0 : free / total;
  const isBelow = (limit: typeof WARN_FREE): boolean => share < limit.share || free < limit.bytes;
  const left = free < GIGABYTE ? `${Math.floor(free / MEGABYTE)} MB` : `${(free / GIGABYTE).toFixed(1)} GB`;
  const message = `The disk has ${(share * 100).toFixed(1)} % (${left}) free`;
  const fix =
    "Free space on the disk of the database, or set RETENTION_CONTENT_DAYS, RETENTION_EVENT_DAYS or CONTENT_STORE.";
  if (isLow({ free, total }, minFree))
    return fail(`${message}, so new messages and content are refused.`, fix);
  if (isBelow(FAIL_FREE)) return fail(`${message}.`, fix);
  return isBelow(WARN_FREE) ? warn(`${message}.`, fix) : ok(`${message}.`);
}

/** Reads the database. If its file is damaged, a start cannot repair it, so the fix is a backup. */
async function readable(db: () => Db): Promise<Finding> {
  try {
    return await database(db());
  } catch (error) {
    if (!/^SQLITE_(?:CORRUPT|NOTADB)/.test(errorCode(error))) throw error;
    return fail(
      `The database file is damaged: ${error instanceof Error ? error.message : String(error)}`,
      RESTORE,
    );
  }
}

/** Compares the schema as a start of the service does, and says the same. */
async function database(db: Db): Promise<Finding> {
  const states = await migrationStates(db).catch((error: unknown) => {
    if (error instanceof SchemaRefusal) return error.message;
    throw error;
  });
  if (typeof states === "string")
    return fail(`This program cannot use the database: ${states}.`, "Run the version that the service runs.");
  const pending = states.filter(({ appliedAt }) => appliedAt === null);
  if (pending.length > 0) {
    const names = pending.map(({ version, name }) => `${version} ${name}`).join(", ");
    return fail(`The schema lacks migrations: ${names}.`, "Start the service, or run postrider migrate.");
  }
  if (!(await commitsReachDisk(db)))
    return warn(
      "The database server answers before a commit is on its disk, so a power cut there can lose accepted mail.",
      "Set durability_mode to strong in sqld's admin API: see docs/scale.md, A database server.",
    );
  const held = await heldFinding(db);
  if (held !== null) return held;
  return ok(`The database answers and has schema ${states.at(-1)?.version}.`);
}

/** Returns a warning while a restore holds mail; else null. */
async function heldFinding(db: Db): Promise<Finding | null> {
  if (((await readFact(db, "held")) ?? "") === "") return null;
  const { recipients, pushes } = await countHeld(db, AFTER_ALL);
  return warn(
    `A restore holds ${recipients} recipients and ${pushes} webhook pushes that were due in the backup.`,
    "Run postrider release-held, which shows them and lets them go.",
  );
}

/** Backups that may be missing before the check warns, and before it fails. */
export const LATE_BACKUPS = 2;
const TOO_LATE_BACKUPS = 4;
const BACKUP_FIX =
  "Look for `backups` in the log: a full disk, or a folder that the service may not write to (BACKUP_TO).";

/**
 * Checks the age of the last good backup, if the service makes them.
 * @param every milliseconds between two backups; 0 if it makes none
 */
export function backupChecks({ db, clock }: { db: () => Db; clock: Clock }, every: number): Check[] {
  const run = async (): Promise<Finding> => {
    const at = await readFact(db(), "backup");
    if (at === null) return warn("The service has made no backup yet.", BACKUP_FIX);
    const ageMs = clock.now() - Number(at);
    const says = `The last good backup is ${(ageMs / HOUR_MS).toFixed(1)} hours old.`;
    if (ageMs > every * TOO_LATE_BACKUPS) return fail(says, BACKUP_FIX);
    return ageMs > every * LATE_BACKUPS ? warn(says, BACKUP_FIX) : ok(says);
  };
  return every === 0 ? [] : [{ name: "backup", fix: BACKUP_FIX, needsDatabase: true, run }];
}
