import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { linksHost } from "../core/own-names.ts";
import { organizationalDomain } from "../core/public-suffix.ts";
import { type BlockListParts, blockListChecks, MAX_LISTED_SUBJECTS } from "../flows/health/block-lists.ts";
import { type Check, fail, type Finding, ok, warn } from "../flows/health/check.ts";
import type { DkimSigner } from "../mail/auth/dkim.ts";
import type { OtherClock } from "../flows/health/clock.ts";
import { hostsDomains } from "../flows/certificates/domain-hosts.ts";
import { captureDomains } from "../flows/domains/capture-domain.ts";
import { domainChecks, type LinkFaultOf } from "../flows/health/domains/domains.ts";
import { openSigners } from "../flows/health/domains/signers.ts";
import { linkFault } from "../flows/health/outside/links.ts";
import { remoteChecks } from "../flows/health/outside/remote.ts";
import { egressChecks } from "../flows/health/egress.ts";
import { smarthostCheck } from "../flows/health/smarthost.ts";
import { filesCheck, integrityCheck, type StoredFile } from "../flows/health/storage.ts";
import { tlsPortChecks } from "../flows/health/tls-port.ts";
import { secondaryChecks } from "../flows/health/secondaries.ts";
import { dnsServers } from "../net/dns/servers.ts";
import { endpointOf, exchangeHttp } from "../net/http-exchange.ts";
import { addressesOfHost } from "../net/dns/lookups.ts";
import { checkObjectStore, openObjectStore } from "../net/object-store.ts";
import { createResolver, type Resolver } from "../net/dns/resolver.ts";
import { parseSmarthost } from "../smtp/client/smarthost.ts";
import { databasePath } from "../store/engine/client.ts";
import type { Domain } from "../store/domains/domains.ts";
import { domainsOfAll } from "../store/installation/health.ts";
import { installationKey } from "../store/messages/sending.ts";
import { mxName, sendingAddresses } from "./delivery.ts";
import { outsideChecks, type HealthParts, localChecks, storageParts } from "./health.ts";
import { domainLookups } from "./http.ts";
import { BOTH_KEYS, keysInUse, problemOf } from "./store/installation-keys.ts";
import { opens } from "../flows/secrets/master-key.ts";
import { hasMasterKey, MASTER_KEY_FILE } from "./store/master-key.ts";
import { configuredStore, probeName } from "./store/objects.ts";

/** Checks that the operator asks for on the command line. */
export interface DoctorOptions {
  /** A mail server to test port 25 with. */
  egress: { host: string; port: number } | null;
  /** A web server whose Date header the clock is compared with. */
  clockUrl: URL | null;
  /** True to ask block lists. */
  lists: boolean;
  /** True to check every page of a large database too. */
  deep: boolean;
}

/** Timeout of requests to the web server and the object store, milliseconds. */
const REQUEST_MS = 4_000;
/** Timeout of one query, milliseconds. Four queries fit into the limit of a check. */
const DNS_TRY_MS = 1_000;

/** Returns the checks of an installation on another machine. Mail is checked if SERVICE_DOMAIN is set to that of the installation. */
export function checksOfRemote(parts: Omit<HealthParts, "db">, url: string): Check[] {
  const { config, clock, ca } = parts;
  const serviceDomain = config.sources.has("SERVICE_DOMAIN") ? config.serviceDomain : null;
  return remoteChecks({ clock, ca, url, serviceDomain, resolver: resolverFor(parts) });
}

function resolverFor({ config, clock }: Pick<HealthParts, "config" | "clock">): Resolver {
  return createResolver(
    { clock },
    {
      servers: dnsServers(config.dnsServers),
      tries: 2,
      tryTimeoutMs: DNS_TRY_MS,
      ownZone: config.serviceDomain,
    },
  );
}

/** Returns all checks. */
export async function doctorChecks(parts: HealthParts, options: DoctorOptions): Promise<Check[]> {
  const { config, clock, db } = parts;
  const resolver = resolverFor(parts);
  const hostname = mxName(config);
  const direct = config.delivery === "mx";
  const clocks = options.clockUrl === null ? [] : [webClock(parts, resolver, options.clockUrl)];
  const checks: Check[] = [
    ...localChecks(parts, clocks),
    filesCheck(() => storedFiles(config)),
    {
      name: "master key",
      run: () => masterKey(parts),
      fix: "Check that the service may read the file.",
      needsDatabase: true,
    },
    ...objectStoreChecks(parts),
    ...egressChecks(
      {
        clock,
        resolver,
        hostname,
        direct,
        publicIps: config.publicIps,
        egress: config.egress,
        ipv6: config.smtpOutIpv6,
      },
      options.egress,
    ),
    ...(config.delivery === "relay"
      ? [smarthostCheck({ clock, resolver, hostname }, () => parseSmarthost(config.smtpRelayUrl ?? ""))]
      : []),
    ...outsideChecks(parts, resolver),
    ...(options.lists ? blockListChecks(await listSubjects(parts, resolver)) : []),
    ...tlsPortChecks({ db, clock, resolver, settings: config }),
    ...secondaryChecks({ db, clock, settings: config }),
    ...(await checksOfDomains(parts, resolver)),
    integrityCheck(storageParts(parts), options.deep),
  ];
  // One line says that there is no database.
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

/** Bits of a mode that let all users read a file and enter a folder. */
const [OTHERS_READ, OTHERS_ENTER] = [0o004, 0o001];

/** Lists the files of the database and the master key. */
function storedFiles({ databaseUrl, dataDir }: HealthParts["config"]): StoredFile[] {
  const database = databasePath(databaseUrl);
  const paths = database === null ? [] : ["", "-wal", "-shm"].map((suffix) => `${database}${suffix}`);
  return [...paths, join(dataDir, MASTER_KEY_FILE)].filter(existsSync).map((path) => {
    const entered = (statSync(dirname(path)).mode & OTHERS_ENTER) !== 0;
    return { path, open: entered && (statSync(path).mode & OTHERS_READ) !== 0 };
  });
}

/** Returns the checks of all domains; if the domains cannot be read, one check that fails. */
async function checksOfDomains({ config, clock, db, ca }: HealthParts, resolver: Resolver): Promise<Check[]> {
  const { serviceDomain, publicIps, publicUrl } = config;
  try {
    const isCaptureDomain = captureDomains(config);
    const lookups = domainLookups({ config, clock, resolver });
    const signersOf = signersIn({ config, clock, db });
    const linkFaultOf: LinkFaultOf | null = hostsDomains(config)
      ? ({ name }) => linkFault({ clock, resolver, ca }, `https://${linksHost(name)}`)
      : null;
    const own = {
      db: db(),
      linkFaultOf,
      clock,
      resolver,
      lookups,
      serviceDomain,
      publicIps,
      publicUrl,
      isCaptureDomain,
      signersOf,
    };
    return await domainChecks(own);
  } catch (error) {
    const fix = "Check that the database is reachable.";
    return [{ name: "domains", run: () => Promise.reject(error), fix, needsDatabase: true }];
  }
}

/**
 * Returns the names and addresses to query block lists for: our addresses, the domains of From, and the host of links.
 */
async function listSubjects({ config, db }: HealthParts, resolver: Resolver): Promise<BlockListParts> {
  const found = isThere(db) ? await domainsOfAll(db(), MAX_LISTED_SUBJECTS) : [];
  const link = organizationalDomain(new URL(config.publicUrl).hostname);
  const domains = new Set([
    link,
    organizationalDomain(config.serviceDomain),
    ...found.map(({ name }) => name),
  ]);
  return { resolver, addresses: sendingAddresses(config).map(({ ip }) => ip), domains: [...domains] };
}

/** Returns the function that opens a domain's keys. If there is no master key, or another one, it opens none. */
function signersIn({ config, db }: HealthParts): (domain: Domain) => Promise<DkimSigner[]> {
  if (!hasMasterKey(config)) return async () => [];
  return async (domain) => {
    const { sealing } = await keysInUse(db(), config);
    return openSigners(db(), sealing?.derived.box ?? new Uint8Array(), domain);
  };
}

/** Checks that the master key opens the sealed keys. Without them no message is signed. */
async function masterKey({ config, db }: HealthParts): Promise<Finding> {
  const path = join(config.dataDir, MASTER_KEY_FILE);
  const fix = "Restore the master key that this database was made with, or set MASTER_KEY to it.";
  // Do not open the keys before this, because that would make a new one.
  const sealed = (await installationKey(db()))?.sealedPrivateKey;
  if (sealed === undefined)
    return ok("There is no master key yet. The first start of the service makes one.");
  if (!hasMasterKey(config)) return fail(`There is no master key at ${path}.`, fix);
  const inUse = await keysInUse(db(), config);
  const { sealing, rotation } = inUse;
  if (sealing === null || (rotation === null && !opens(sealing.derived.box, sealed)))
    return fail("The master key does not open the sealed keys in the database.", fix);
  if (problemOf(inUse) !== null)
    return fail("The master key is being changed, and one of both keys is missing.", BOTH_KEYS);
  if (rotation !== null)
    return warn(
      "A change of the master key has not ended, or was interrupted.",
      "Call `postrider master-key rotate`.",
    );
  if (config.masterKeyOld === sealing.text)
    return warn("MASTER_KEY is not in use yet: MASTER_KEY_OLD is.", "Call `postrider master-key rotate`.");
  if (config.masterKeyOld !== null)
    return warn(
      "The master key was changed, and MASTER_KEY_OLD is still set.",
      "Remove it from the settings.",
    );
  return ok("The master key opens the sealed keys.");
}

function objectStoreChecks({ config, clock }: HealthParts): Check[] {
  const store = configuredStore(config);
  if (store === null) return [];
  const objects = openObjectStore({ clock }, { ...store.options, timeoutMs: REQUEST_MS });
  const run = async (): Promise<Finding> => {
    await checkObjectStore(objects, probeName(store.prefix, clock.now()));
    return ok(`${config.contentStore} stores, returns and removes an object.`);
  };
  const fix = "Check CONTENT_STORE, the S3_ settings and the permissions of the key.";
  return [{ name: "object store", run, fix }];
}

/** Reads the clock of a web server from its Date header (RFC 9110 §6.6.1). */
function webClock({ clock }: HealthParts, resolver: Resolver, url: URL): OtherClock {
  return {
    name: url.host,
    async read() {
      const { host, port, tlsName } = endpointOf(url);
      const [ip] = (await addressesOfHost(resolver, host)) ?? [];
      if (ip === undefined) throw new Error(`${host} has no address.`);
      const head = `HEAD ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`;
      const outcome = await exchangeHttp(
        { clock },
        {
          ip,
          port,
          tlsName,
          octets: [Buffer.from(head)],
          timeoutMs: REQUEST_MS,
          connectTimeoutMs: REQUEST_MS,
        },
      );
      if (outcome.kind === "failed") throw new Error(`${url.host} cannot be reached: ${outcome.reason}`);
      const date = Date.parse(outcome.response.headers.get("date") ?? "");
      if (Number.isNaN(date)) throw new Error(`${url.host} sends no valid Date header.`);
      return date;
    },
  };
}
