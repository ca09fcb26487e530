import { mkdirSync } from "node:fs";
import { type Config, ConfigError } from "./config.ts";
import { RightOfWay } from "./core/concurrency/right-of-way.ts";
import { type MakeRsaKey, newRsaKey } from "./core/crypto/rsa-key.ts";
import { type Clock, within } from "./core/time/clock.ts";
import { type Begun, bootstrap, type FirstStart } from "./flows/account/bootstrap.ts";
import { hostsDomains } from "./flows/certificates/domain-hosts.ts";
import { testControls } from "./flows/dispatch/test-controls.ts";
import { ALWAYS_ROOM, type DiskSpace, watchSpace } from "./flows/free-space.ts";
import { registerInstance } from "./flows/sweep/instance.ts";
import { serveMetrics } from "./http/server/metrics.ts";
import { createHttp } from "./http/server/server.ts";
import { log } from "./log.ts";
import { generateDkimKey } from "./mail/auth/dkim.ts";
import { openMetrics } from "./metrics.ts";
import { dnsServers } from "./net/dns/servers.ts";
import { createResolver } from "./net/dns/resolver.ts";
import { openQueue } from "./queue/open.ts";
import { databaseRefusal } from "./queue/redis-facts.ts";
import type { Queue } from "./queue/port.ts";
import { openRateLimiter } from "./queue/rate-limiter.ts";
import { createPool } from "./smtp/client/pool.ts";
import type { CommitMeter, Db } from "./store/engine/client.ts";
import { isEmpty } from "./store/engine/migrate.ts";
import { retryWhileBusy } from "./store/engine/retry-while-busy.ts";
import { needsCertificate, openServerCertificate } from "./wiring/certificates.ts";
import { databaseDisk } from "./wiring/process/disk.ts";
import { openDatabase, writerFor } from "./wiring/store/database.ts";
import { takesSends } from "./wiring/process/takes-sends.ts";
import { capturesAnyFrom, mxName, openOutbound } from "./wiring/delivery.ts";
import { openNameServer } from "./wiring/dns.ts";
import { maxIdleConnections, watchFileHandles } from "./wiring/observe/file-handles.ts";
import { startHeartbeat } from "./wiring/heartbeat.ts";
import { migrateAtStart } from "./wiring/store/failed-migration.ts";
import { keepKeysOf } from "./wiring/process/first-keys-file.ts";
import type { DocumentHosts, Services } from "./wiring/services.ts";
import { requireFreePorts } from "./wiring/process/free-ports.ts";
import { openInspector, timedInspect } from "./wiring/cpu/inspector.ts";
import { commitBell } from "./wiring/commit-bell.ts";
import { listenerCertificate } from "./wiring/listener.ts";
import { openLive } from "./wiring/live.ts";
import { type Listeners, NO_SMTP, type SmtpPorts, startListeners } from "./wiring/listeners.ts";
import { watchLag } from "./wiring/process/timing.ts";
import { followKeys } from "./wiring/store/installation-keys.ts";
import { stopRoles } from "./wiring/stop.ts";
import { openTlsHosts } from "./wiring/tls-hosts.ts";
import { type HttpParts, httpDeps } from "./wiring/http.ts";
import { openObjects } from "./wiring/store/objects.ts";
import { openRenderer } from "./wiring/cpu/renderer.ts";
import { cpusFor } from "./wiring/cpu/pool.ts";
import { workerDeps } from "./wiring/worker-deps.ts";
import { startWorkers } from "./wiring/workers.ts";
import { renderMemory } from "./flows/mime/making.ts";

/** Milliseconds that a stop waits for the work in progress. */
export const STOP_GRACE_MS = 20_000;

/** Timeout of asking Redis for its database at a start, milliseconds. */
const REDIS_WAIT_MS = 2_000;

/** The ports in use; null if this process does not have the role. */
export interface Ports extends SmtpPorts {
  /** Port of health and metrics, and of the API if this process has that role. */
  http: number;
  /** Port of the API with TLS. */
  tls: number | null;
  /** Port of our name server, UDP and TCP. */
  dns: number | null;
  /** Of `/metrics` on loopback. */
  metrics: number | null;
}

/** The whole service in one process. */
export interface App {
  readonly db: Db;
  readonly queue: Queue;
  readonly ports: Ports;
  /** The secrets of the first start, to show once; null at later ones. */
  readonly firstStart: FirstStart | null;
  /** The token of the dashboard's first link; null at later starts. */
  readonly startToken: string | null;
  /**
   * Reloads the listener's certificate. Returns false if none is configured. If the files cannot be used, rejects and keeps
   * the old certificate.
   */
  reload(): Promise<boolean>;
  /** Takes no new work, finishes the work in progress within the grace, frees the remaining claims, and closes. */
  stop(graceMs?: number): Promise<void>;
}

/** Thrown if a first start fails after its keys were made. They must be shown now. */
export class FirstStartError extends Error {
  readonly firstStart: FirstStart;

  constructor(firstStart: FirstStart, cause: unknown) {
    super("the first start failed", { cause });
    this.name = "FirstStartError";
    this.firstStart = firstStart;
  }
}

/** The parts of a service's outside world that tests replace. */
export interface Surroundings {
  /** Reads the free space of the database's disk; null if the database is on a server. */
  disk: (() => DiskSpace) | null;
  makeRsaKey: MakeRsaKey;
  documentHosts: DocumentHosts;
}

/**
 * Opens the database, migrates it and starts all configured roles.
 * @throws FirstStartError if it fails after the first keys were made; ConfigError if a setting is wrong
 */
export async function startApp(
  config: Config,
  systemClock: Clock,
  { disk = databaseDisk(config), makeRsaKey = newRsaKey, documentHosts = {} }: Partial<Surroundings> = {},
): Promise<App> {
  const controls = config.testControls ? testControls(systemClock) : null;
  const clock = controls?.clock ?? systemClock;
  await requireRedisDatabase(config, clock);
  const certificate = needsCertificate(config) ? listenerCertificate({ config, clock, makeRsaKey }) : null;
  // A configured certificate is checked before anything is made. A self-signed one is awaited when the listener opens, and
  // its failure is handled there.
  if (config.smtpTlsCert !== null) await certificate;
  else certificate?.catch(() => undefined);
  // Other users of the machine must not read messages. An existing folder keeps its mode.
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const metrics = openMetrics();
  const space = disk === null ? ALWAYS_ROOM : watchSpace(clock, disk, config.minFreeBytes);
  const bell = commitBell(metrics.commits);
  const base = { config, clock, makeRsaKey, documentHosts, testControls: controls };
  const { db, begun, ...secrets } = await openData(base, bell.meter);
  try {
    const services = await openServices({ ...base, ...secrets, db, metrics, bell, certificate, space });
    return await startRoles(services, begun);
  } catch (error) {
    throw begun.firstStart === null ? error : new FirstStartError(begun.firstStart, error);
  }
}

/** Checks that Redis has the configured database. If it does not answer in time, starts anyway; `/readyz` reports it. */
async function requireRedisDatabase({ redisUrl }: Config, clock: Clock): Promise<void> {
  if (redisUrl === null) return;
  const refusal = await within(clock, REDIS_WAIT_MS, databaseRefusal(redisUrl), null);
  if (refusal !== null)
    throw new ConfigError([`REDIS_URL names a database that its Redis does not give (${refusal})`]);
}

/** Opens the services that the roles share. */
async function openServices(
  base: Pick<
    Services,
    | "config"
    | "clock"
    | "db"
    | "keys"
    | "masterKeys"
    | "makeRsaKey"
    | "documentHosts"
    | "metrics"
    | "bell"
    | "certificate"
    | "space"
    | "testControls"
  >,
): Promise<Services> {
  const { config, clock, db, keys, metrics } = base;
  const cpus = cpusFor();
  const inspector = openInspector(
    { clock, log: log("smtp") },
    { host: mxName(config), dnsServers: config.dnsServers, ownZone: config.serviceDomain, cpus },
  );
  const links = {
    serviceDomain: config.serviceDomain,
    publicUrl: config.publicUrl,
    hostsDomains: hostsDomains(config),
    serviceSignature: config.serviceSignature,
    verpKey: keys.verp,
    unsubscribeKey: keys.unsubscribe,
    trackingKey: keys.tracking,
  };
  const store = openObjects(config, clock);
  return {
    ...base,
    queue: openQueue(
      { clock, log: log("queue") },
      { redisUrl: config.redisUrl, works: config.roles.has("worker") },
    ),
    resolver: createResolver(
      { clock },
      { servers: dnsServers(config.dnsServers), ownZone: config.serviceDomain },
    ),
    pool: createPool(
      { clock, log: log("smtp") },
      { maxConnectionsPerDestination: config.destinationConnections, maxIdle: maxIdleConnections() },
    ),
    instance: await registerInstance({ db, clock }, process.pid, await base.masterKeys()),
    store,
    objects: store?.reader ?? null,
    inspector,
    inspect: timedInspect(clock, inspector.inspect, metrics.inspected),
    ...links,
    boxKey: keys.box,
    relayKey: keys.relay,
    limits: config,
    volume: config,
    capturesAnyFrom: capturesAnyFrom(config),
    memory: renderMemory(),
    rightOfWay: new RightOfWay(clock),
    renderer: openRenderer({ clock, meter: metrics.rendered }, { links, cpus }),
  };
}

/**
 * Opens and migrates the database and opens its keys. In an empty database it makes the first account. The first DKIM key is
 * generated while the tables are made, because that takes a while.
 */
async function openData(
  { config, clock, makeRsaKey }: Pick<Services, "config" | "clock" | "makeRsaKey">,
  meter: CommitMeter,
): Promise<Pick<Services, "db" | "keys" | "masterKeys"> & { begun: Begun }> {
  const db = await openDatabase(config, clock, { writer: writerFor(config), meter });
  // If several processes start on one file, one of them makes the schema and locks the file.
  const generate = () => generateDkimKey("rsa", makeRsaKey);
  const firstKey = (await retryWhileBusy(clock, () => isEmpty(db))) ? generate() : null;
  await migrateAtStart(config.dataDir, db, clock);
  const { keys, look: masterKeys } = await followKeys({ db, clock }, config);
  const deps = {
    db,
    clock,
    boxKey: keys.box,
    generateDkimKey: () => firstKey ?? generate(),
    keepKeys: keepKeysOf(config.firstKeysFile),
    beforeKeys: () => requireFreePorts(config),
  };
  return { db, keys, masterKeys, begun: await bootstrap(deps, config) };
}

async function startRoles(services: Services, begun: Begun): Promise<App> {
  const { config, clock, db, queue } = services;
  const rates = takesSends(config)
    ? openRateLimiter({ clock, log: log("queue") }, { redisUrl: config.redisUrl }, config)
    : null;
  const live = openLive(services);
  const parts: HttpParts = {
    ...services,
    limiter: rates?.take ?? null,
    signIns: rates?.takeSignIn ?? null,
    keyLimiter: rates?.takeKey ?? null,
    outbound: openOutbound(services),
    streams: live.streams,
    waits: live.waits,
    listening: () => listeners !== null || !config.roles.has("smtp"),
    connections: () => ({ in: listeners?.sessions ?? 0, out: services.pool.connections }),
  };
  let listeners: Listeners | null = null;
  const nameServer = await openNameServer(services);
  const ports: Ports = { ...NO_SMTP, http: 0, tls: null, dns: nameServer?.port ?? null, metrics: null };
  const certificate =
    services.certificate === null ? null : await openServerCertificate(services, services.certificate);
  if (certificate !== null && config.roles.has("smtp")) {
    listeners = await startListeners(services, rates, certificate);
    Object.assign(ports, listeners.ports);
  }
  const served = httpDeps(parts);
  const metrics = config.metricsPort === null ? null : serveMetrics(served.metrics, config.metricsPort);
  ports.metrics = metrics?.port ?? null;
  const http = createHttp(served);
  ports.http = (await http.start()).port;
  const hosts = certificate === null ? null : await openTlsHosts(services, certificate);
  if (hosts !== null && config.tlsPort !== null) {
    ports.tls = (await http.startTls(config.tlsPort, hosts.first)).port;
    hosts.onChange((all) => http.setCertificates(all));
  }
  // Start the workers after everything that may fail. Otherwise a failed start could interrupt deliveries, and each restart
  // would send those messages again.
  const workers = config.roles.has("worker") ? startWorkers(workerDeps(services, parts)) : null;
  const heartbeat = startHeartbeat(services);
  const unwatchLag = watchLag(clock, services.metrics.lagged);
  const unwatchFiles = watchFileHandles(clock, () => http.closeIdle());
  let stopping: Promise<void> | null = null;
  return {
    db,
    queue,
    ports,
    ...begun,
    reload: async () => (await certificate?.reload()) ?? false,
    stop(graceMs = STOP_GRACE_MS) {
      unwatchLag();
      unwatchFiles();
      stopping ??= stopRoles(
        services,
        { http, live, metrics, rates, listeners, nameServer, workers, heartbeat, certificate, hosts },
        graceMs,
      );
      return stopping;
    },
  };
}
