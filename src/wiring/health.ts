import type { Config } from "../config.ts";
import type { Clock } from "../core/time/clock.ts";
import { servedCertificate, usesAcme } from "../flows/certificates/served.ts";
import { askedListsCheck } from "../flows/health/asked-lists.ts";
import { certificateCheck } from "../flows/health/certificate.ts";
import type { Check } from "../flows/health/check.ts";
import { clockCheck, type OtherClock } from "../flows/health/clock.ts";
import { domainCertificateChecks } from "../flows/health/domain-certificates.ts";
import { quotaCheck } from "../flows/health/quotas.ts";
import { queueChecks } from "../flows/health/queues.ts";
import { feedbackCheck, reputationChecks } from "../flows/health/reputation.ts";
import { laneCheck } from "../flows/health/lanes.ts";
import { ehloChecks } from "../flows/health/outside/ehlo.ts";
import { unsubscribeCheck } from "../flows/health/outside/links.ts";
import { listenerCheck } from "../flows/health/outside/listener.ts";
import { tlsaCheck } from "../flows/health/outside/tlsa.ts";
import { complaintChecks } from "../flows/health/traffic/complaints.ts";
import { outboundTlsCheck } from "../flows/health/traffic/outbound-tls.ts";
import { volumeChecks } from "../flows/health/traffic/volume.ts";
import { noticeChecks } from "../flows/health/secondaries.ts";
import { ownSpfChecks } from "../flows/health/own-spf.ts";
import { reverseChecks } from "../flows/health/reverse.ts";
import { zoneChecks } from "../flows/health/zone.ts";
import type { Resolver } from "../net/dns/resolver.ts";
import { isOwnMachine, settingsChecks } from "../flows/health/settings.ts";
import { backupChecks, storageChecks, type StorageParts } from "../flows/health/storage.ts";
import { suspensionLimits } from "../flows/deliver/reputation.ts";
import { redisFacts } from "../queue/redis-facts.ts";
import { listAccounts } from "../store/projects/accounts.ts";
import { databasePath, type Db } from "../store/engine/client.ts";
import { databaseOctets, databaseTime } from "../store/installation/health.ts";
import { diskOf, existingPath } from "./process/disk.ts";
import { laneLimits, mxName, sendingAddresses } from "./delivery.ts";

/** Dependencies of the checks. */
export interface HealthParts {
  config: Config;
  clock: Clock;
  /** Returns the database; throws if it cannot be opened. */
  db: () => Db;
  /** Trusted authorities in PEM, for tests. */
  ca?: string | undefined;
}

/** Returns the checks that query no server outside the installation and do not block the thread. */
export function localChecks(parts: HealthParts, clocks: readonly OtherClock[] = []): Check[] {
  const { config, clock, db } = parts;
  const { redisUrl } = config;
  const redis = redisUrl === null ? null : () => redisFacts(redisUrl);
  return [
    ...settingsChecks(config, () => accountOwner(db)),
    ...storageChecks(storageParts(parts)),
    ...backupChecks(parts, config.backupEvery),
    quotaCheck({ db, quotas: config.quotas }),
    ...queueChecks({ db, clock, redis }),
    ...(config.delivery === "mx" ? trafficChecks(parts) : []),
    ...reputationChecks({ db, clock, limits: suspensionLimits(config) }),
    certificateCheck({
      clock,
      hostname: mxName(config),
      ordered: usesAcme(config),
      served: () => servedCertificate(db, config),
    }),
    ...domainCertificateChecks({ db, clock, settings: config }),
    ...noticeChecks({ db, settings: config }),
    clockCheck(clock, [...clocksOf(parts), ...clocks]),
  ];
}

/** Returns the checks of mail that goes straight to providers: what they answer and report, and how much they get. */
function trafficChecks({ config, clock, db }: HealthParts): Check[] {
  const lanes = { db, clock, ...laneLimits(config) };
  return [
    laneCheck(lanes),
    askedListsCheck({ db, clock, addresses: sendingAddresses(config).map(({ ip }) => ip) }),
    feedbackCheck({ db, clock }),
    ...complaintChecks({ db, clock }),
    ...volumeChecks({ ...lanes, settings: config }),
    outboundTlsCheck(db),
  ];
}

/** Returns the checks of what the world sees of us: they ask DNS, and connect to our own hosts. */
export function outsideChecks(parts: HealthParts, resolver: Resolver): Check[] {
  const { config, clock, db } = parts;
  const addresses = config.delivery === "mx" ? sendingAddresses(config) : [];
  return [
    ...reverseChecks(resolver, addresses),
    ...ehloChecks(resolver, addresses),
    ...ownSpfChecks(resolver, addresses, config.serviceDomain),
    ...zoneChecks({ db, clock, resolver, settings: config }),
    // In capture mode no mail leaves, and nobody answers.
    ...(config.delivery === "capture" ? [] : ownHostChecks(parts, resolver)),
  ];
}

/** Returns the checks that connect to our own hosts. */
function ownHostChecks({ config, clock, ca }: HealthParts, resolver: Resolver): Check[] {
  const { publicUrl, roles, serviceDomain, smtpHost: host, smtpPort: port, smtpProxies: proxies } = config;
  const listener = { clock, resolver, hostname: mxName(config), serviceDomain, host, port, proxies };
  return [
    ...(isOwnMachine(new URL(publicUrl).hostname)
      ? []
      : [unsubscribeCheck({ clock, resolver, ca }, publicUrl)]),
    ...(roles.has("smtp") ? [listenerCheck(listener), tlsaCheck(listener)] : []),
  ];
}

/** Returns the owner's address; null if the database cannot be read, which another check reports. */
async function accountOwner(db: () => Db): Promise<string | null> {
  try {
    return (await listAccounts(db(), 1))[0]?.ownerEmail ?? null;
  } catch {
    return null;
  }
}

/** Returns the database and its disk, which is not that of DATA_DIR if DATABASE_URL names a file elsewhere. */
export function storageParts({ config, db }: HealthParts): StorageParts {
  const path = databasePath(config.databaseUrl);
  return {
    db,
    disk: async () => diskOf(path === null ? config.dataDir : existingPath(path)),
    // If the database is on a server, a low disk here refuses nothing.
    minFree: path === null ? 0 : config.minFreeBytes,
    octets: path === null ? null : () => databaseOctets(path),
  };
}

/** Returns the clocks of Redis and of a remote database. A database file has our own clock. */
function clocksOf({ config, db }: HealthParts): OtherClock[] {
  const { redisUrl } = config;
  return [
    ...(redisUrl === null ? [] : [{ name: "Redis", read: async () => (await redisFacts(redisUrl)).now }]),
    ...(databasePath(config.databaseUrl) === null
      ? [{ name: "the database", read: () => databaseTime(db()) }]
      : []),
  ];
}
