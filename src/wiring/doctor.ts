import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { unseal } from "../core/secretbox.ts";
import { type Check, fail, type Finding, ok } from "../flows/health/check.ts";
import type { OtherClock } from "../flows/health/clock.ts";
import { domainChecks } from "../flows/health/domains.ts";
import { egressCheck } from "../flows/health/egress.ts";
import { reverseChecks } from "../flows/health/reverse.ts";
import { smarthostCheck } from "../flows/health/smarthost.ts";
import { filesCheck, integrityCheck, type StoredFile } from "../flows/health/storage.ts";
import { zoneChecks } from "../flows/health/zone.ts";
import { dnsServers } from "../net/dns/servers.ts";
import { endpointOf, exchangeHttp } from "../net/http-exchange.ts";
import { addressesOfHost } from "../net/dns/lookups.ts";
import { checkObjectStore, openObjectStore } from "../net/object-store.ts";
import { createResolver, type Resolver } from "../net/dns/resolver.ts";
import { parseSmarthost } from "../smtp/client/smarthost.ts";
import { databasePath } from "../store/engine/client.ts";
import { installationKey } from "../store/sending.ts";
import { mxName } from "./delivery.ts";
import { type HealthParts, nearChecks, storageParts } from "./health.ts";
import { freshLookups } from "./http.ts";
import { MASTER_KEY_FILE, openKeys } from "./master-key.ts";
import { configuredStore, probeName } from "./objects.ts";

/** What the operator wants looked at besides. */
export interface DoctorOptions {
  /** A mail server to try port 25 with. */
  egress: { host: string; port: number } | null;
  /** A web server whose Date the clock is compared with. */
  clockUrl: URL | null;
  /** Look through a large database too. */
  deep: boolean;
}

/** Time for an answer of the web server, and of the object store, milliseconds. */
const ASK_MS = 4_000;
/** Time for one try at a name server: four of them fit into a check. */
const DNS_TRY_MS = 1_000;

/** Every check there is. */
export async function doctorChecks(parts: HealthParts, options: DoctorOptions): Promise<Check[]> {
  const { config, clock, db } = parts;
  const resolver = createResolver(
    { clock },
    { servers: dnsServers(config.dnsServers), tries: 2, tryTimeoutMs: DNS_TRY_MS },
  );
  const hostname = mxName(config);
  const direct = config.delivery === "mx";
  const clocks = options.clockUrl === null ? [] : [webClock(parts, resolver, options.clockUrl)];
  const checks: Check[] = [
    ...nearChecks(parts, clocks),
    filesCheck(() => storedFiles(config)),
    {
      name: "master key",
      run: () => masterKey(parts),
      fix: "see that the service may read it",
      needsDatabase: true,
    },
    ...objectStoreChecks(parts),
    egressCheck({ clock, resolver, hostname, direct }, options.egress),
    ...(config.delivery === "relay"
      ? [smarthostCheck({ clock, resolver, hostname }, () => parseSmarthost(config.smtpRelayUrl ?? ""))]
      : []),
    ...(direct ? reverseChecks(resolver, config.publicIps, hostname) : []),
    ...zoneChecks({ db, clock, resolver, settings: config }),
    ...(await ofDomains(parts, resolver)),
    integrityCheck(storageParts(parts), options.deep),
  ];
  // That there is no database is said once.
  return isThere(db) ? checks : checks.filter(({ needsDatabase }) => needsDatabase !== true);
}

function isThere(db: () => unknown): boolean {
  try {
    db();
    return true;
  } catch {
    return false;
  }
}

/** Everybody may read a file, and go into a folder, by these bits of its mode. */
const [OTHERS_READ, OTHERS_ENTER] = [0o004, 0o001];

/** The files of DATA_DIR and of the database. */
function storedFiles({ databaseUrl, dataDir }: HealthParts["config"]): StoredFile[] {
  const database = databasePath(databaseUrl);
  const paths = database === null ? [] : ["", "-wal", "-shm"].map((suffix) => `${database}${suffix}`);
  return [...paths, join(dataDir, MASTER_KEY_FILE)].filter(existsSync).map((path) => {
    const entered = (statSync(dirname(path)).mode & OTHERS_ENTER) !== 0;
    return { path, open: entered && (statSync(path).mode & OTHERS_READ) !== 0 };
  });
}

/** Where the domains cannot be read, the check says so in their place. */
async function ofDomains({ config, db }: HealthParts, resolver: Resolver): Promise<Check[]> {
  const { serviceDomain } = config;
  try {
    return await domainChecks({ db: db(), lookups: freshLookups(resolver), serviceDomain });
  } catch (error) {
    const fix = "see that the database answers";
    return [{ name: "domains", run: () => Promise.reject(error), fix, needsDatabase: true }];
  }
}

/** Whether the master key at hand opens what is sealed: with another one no mail is signed. */
async function masterKey({ config, db }: HealthParts): Promise<Finding> {
  const path = join(config.dataDir, MASTER_KEY_FILE);
  const fix = "put back the master key that this database was made with, or set MASTER_KEY to it";
  // Opening the keys would make one.
  const sealed = (await installationKey(db()))?.sealedPrivateKey;
  if (sealed === undefined) return ok("nothing is sealed yet: the first start of the service makes it");
  if (config.masterKey === null && !existsSync(path)) return fail(`there is none at ${path}`, fix);
  const { box } = openKeys(config.masterKey, config.dataDir);
  try {
    unseal(box, sealed);
    return ok("opens what is sealed");
  } catch {
    return fail("it does not open what is sealed in the database", fix);
  }
}

function objectStoreChecks({ config, clock }: HealthParts): Check[] {
  const store = configuredStore(config);
  if (store === null) return [];
  const objects = openObjectStore({ clock }, { ...store.options, timeoutMs: ASK_MS });
  const run = async (): Promise<Finding> => {
    await checkObjectStore(objects, probeName(store.prefix, clock.now()));
    return ok(`${config.contentStore} takes an object, gives it back and removes it`);
  };
  const fix = "see CONTENT_STORE and the settings S3_*, and what the key may do there";
  return [{ name: "object store", run, fix }];
}

/** RFC 9110 §6.6.1: a server with a clock says in every answer what it shows. */
function webClock({ clock }: HealthParts, resolver: Resolver, url: URL): OtherClock {
  return {
    name: url.host,
    async read() {
      const { host, port, tlsName } = endpointOf(url);
      const [ip] = (await addressesOfHost(resolver, host)) ?? [];
      if (ip === undefined) throw new Error(`${host} has no address`);
      const head = `HEAD ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`;
      const outcome = await exchangeHttp(
        { clock },
        {
          ip,
          port,
          tlsName,
          octets: Buffer.from(head),
          timeoutMs: ASK_MS,
          connectTimeoutMs: ASK_MS,
        },
      );
      if (outcome.kind === "failed") throw new Error(`${url.host} does not answer: ${outcome.reason}`);
      const date = Date.parse(outcome.response.headers.get("date") ?? "");
      if (Number.isNaN(date)) throw new Error(`${url.host} does not say what time it has`);
      return date;
    },
  };
}
