import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { certificateCheck } from "../flows/health/certificate.ts";
import type { Check } from "../flows/health/check.ts";
import { clockCheck, type OtherClock } from "../flows/health/clock.ts";
import { queueChecks } from "../flows/health/queues.ts";
import { settingsChecks } from "../flows/health/settings.ts";
import { storageChecks, type StorageParts } from "../flows/health/storage.ts";
import { redisFacts } from "../queue/redis-facts.ts";
import { readCertificate } from "../smtp/certificate.ts";
import { listAccounts } from "../store/accounts.ts";
import { databasePath, type Db } from "../store/engine/client.ts";
import { databaseOctets, databaseTime } from "../store/health.ts";
import { mxName } from "./delivery.ts";

/** What health is looked at through. */
export interface HealthParts {
  config: Config;
  clock: Clock;
  /** Throws why there is no database. */
  db: () => Db;
}

/** The checks that ask nobody outside and hold nobody up. */
export function nearChecks(parts: HealthParts, clocks: readonly OtherClock[] = []): Check[] {
  const { config, clock, db } = parts;
  const { redisUrl, smtpTlsKey, smtpTlsCert } = config;
  const redis = redisUrl === null ? null : () => redisFacts(redisUrl);
  const read =
    smtpTlsKey === null || smtpTlsCert === null
      ? null
      : async () => (await readCertificate(smtpTlsKey, smtpTlsCert)).cert;
  return [
    ...settingsChecks(config, () => accountOwner(db)),
    ...storageChecks(storageParts(parts)),
    ...queueChecks({ db, clock, redis }),
    certificateCheck({ clock, hostname: mxName(config), read }),
    clockCheck(clock, [...clocksOf(parts), ...clocks]),
  ];
}

/** That the database does not say is another check's to tell. */
async function accountOwner(db: () => Db): Promise<string | null> {
  try {
    return (await listAccounts(db(), 1))[0]?.ownerEmail ?? null;
  } catch {
    return null;
  }
}

/** The database, and the disk that it grows on: not that of DATA_DIR, where DATABASE_URL names a file elsewhere. */
export function storageParts({ config, db }: HealthParts): StorageParts {
  const path = databasePath(config.databaseUrl);
  return {
    db,
    async disk() {
      const { bavail, blocks, bsize } = await statfs(placeOf(path) ?? config.dataDir);
      return { free: bavail * bsize, total: blocks * bsize };
    },
    octets: path === null ? null : () => databaseOctets(path),
  };
}

/** What lies on the disk of a database's file: itself, which may be a link to another disk, or the folder that it will be made in. */
function placeOf(path: string | null): string | null {
  return path === null || existsSync(path) ? path : dirname(path);
}

/** Clocks of the servers that belong to the installation; a database file's is our own. */
function clocksOf({ config, db }: HealthParts): OtherClock[] {
  const { redisUrl } = config;
  return [
    ...(redisUrl === null ? [] : [{ name: "Redis", read: async () => (await redisFacts(redisUrl)).now }]),
    ...(databasePath(config.databaseUrl) === null
      ? [{ name: "the database", read: () => databaseTime(db()) }]
      : []),
  ];
}
