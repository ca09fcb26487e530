import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { type Config, ConfigError } from "./config.ts";
import { type Clock, timeLeft, within } from "./core/clock.ts";
import { type FirstStart, bootstrap } from "./flows/bootstrap.ts";
import { renderMemory } from "./flows/send/render.ts";
import { deregisterInstance, registerInstance } from "./flows/sweep/instance.ts";
import { createHttp, type Http } from "./http/server.ts";
import { log } from "./log.ts";
import { generateDkimKey } from "./mail/dkim.ts";
import { openMetrics } from "./metrics.ts";
import { dnsServers } from "./net/dns/servers.ts";
import { createResolver } from "./net/dns/resolver.ts";
import type { ZoneServer } from "./net/zone/server.ts";
import { openQueue } from "./queue/open.ts";
import { databaseRefusal } from "./queue/redis-facts.ts";
import type { Queue } from "./queue/port.ts";
import { openRateLimiter, type RateBuckets } from "./queue/rate-limiter.ts";
import { createPool } from "./smtp/client/pool.ts";
import type { Listener } from "./smtp/listener.ts";
import type { CommitMeter, Db } from "./store/engine/client.ts";
import { isEmpty, migrate } from "./store/engine/migrate.ts";
import { untilFree } from "./store/engine/until-free.ts";
import { installationKey } from "./store/sending.ts";
import { openDatabase, writerFor } from "./wiring/database.ts";
import { mxName } from "./wiring/delivery.ts";
import { openNameServer } from "./wiring/dns.ts";
import { maxIdleConnections, watchFileHandles } from "./wiring/file-handles.ts";
import type { Ground } from "./wiring/ground.ts";
import { openInspector } from "./wiring/inspector.ts";
import { listenerCertificate, openListener } from "./wiring/listener.ts";
import { watchLag } from "./wiring/lag.ts";
import { type InstallationKeys, openKeys } from "./wiring/master-key.ts";
import { endAll } from "./wiring/endings.ts";
import { type HttpParts, httpDeps } from "./wiring/http.ts";
import { openObjects } from "./wiring/objects.ts";
import { openRenderer } from "./wiring/renderer.ts";
import { threadsFor } from "./wiring/threads/pool.ts";
import { timedInspect } from "./wiring/timed-inspect.ts";
import { workerDeps } from "./wiring/worker-deps.ts";
import { startWorkers, type Workers } from "./wiring/workers.ts";

/** Time that a stop gives to what is in hand. */
export const STOP_GRACE_MS = 20_000;
/** The part of that time that is kept for giving claims back and closing the database. */
const CLOSING_MS = 1000;

/** Time that a start gives Redis to say whether it has the database that is wanted. */
const REDIS_WAIT_MS = 2_000;

/** Ports listened on; null for a role that this process does not take. */
export interface Ports {
  /** Of health and metrics, and of the API where that is a role of this process. */
  http: number;
  smtp: number | null;
  /** Of our name server, UDP and TCP. */
  dns: number | null;
}

/** The whole service in one process. */
export interface App {
  readonly db: Db;
  readonly queue: Queue;
  readonly ports: Ports;
  /** The secrets made at first start, to be shown once; null at every later one. */
  readonly firstStart: FirstStart | null;
  /**
   * Reads the listener's key and certificate anew; false where none are configured. Rejects, and goes on with the old
   * ones, where they cannot be had.
   */
  reload(): Promise<boolean>;
  /** Takes nothing new, finishes what is in hand within the grace, gives the rest back, closes. */
  stop(graceMs?: number): Promise<void>;
}

/** What has stopped a first start. Its keys are in the database, and told now or never. */
export class FirstStartError extends Error {
  readonly firstStart: FirstStart;

  constructor(firstStart: FirstStart, cause: unknown) {
    super("the first start has failed", { cause });
    this.name = "FirstStartError";
    this.firstStart = firstStart;
  }
}

/**
 * Opens the database, brings it up to date and starts every role that the configuration names.
 * @throws FirstStartError where that fails behind the making of the first keys; ConfigError where a setting names what is
 * not there
 */
export async function startApp(config: Config, clock: Clock): Promise<App> {
  await requireRedisDatabase(config, clock);
  const certificate = config.roles.has("smtp") ? listenerCertificate({ config, clock }) : null;
  // One that is named is awaited before anything is made or taken up; one to be made, when the listener opens. Until then its
  // failure must not count as one that nobody handles.
  if (config.smtpTlsCert !== null) await certificate;
  else certificate?.catch(() => undefined);
  // What mails say is not for everybody on the machine; a folder that is there keeps its mode.
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const metrics = openMetrics();
  const { db, keys, firstStart } = await openData(config, clock, metrics.commits);
  try {
    const ground = await openGround({ config, clock, db, keys, metrics, certificate });
    return await startRoles(ground, firstStart);
  } catch (error) {
    throw firstStart === null ? error : new FirstStartError(firstStart, error);
  }
}

/** A Redis that does not say in time is not waited for: a start needs none, and `/readyz` tells of it later. */
async function requireRedisDatabase({ redisUrl }: Config, clock: Clock): Promise<void> {
  if (redisUrl === null) return;
  const refusal = await within(clock, REDIS_WAIT_MS, databaseRefusal(redisUrl), null);
  if (refusal !== null)
    throw new ConfigError([`REDIS_URL names a database that its Redis does not give (${refusal})`]);
}

/** What the roles stand on, around an open database. */
async function openGround(
  base: Pick<Ground, "config" | "clock" | "db" | "keys" | "metrics" | "certificate">,
): Promise<Ground> {
  const { config, clock, db, keys, metrics } = base;
  const threads = threadsFor(availableParallelism());
  const inspector = openInspector(
    { clock, log: log("smtp") },
    { host: mxName(config), dnsServers: config.dnsServers, threads },
  );
  const links = {
    serviceDomain: config.serviceDomain,
    publicUrl: config.publicUrl,
    unsubscribeKey: keys.unsubscribe,
    trackingKey: keys.tracking,
  };
  return {
    ...base,
    queue: openQueue(
      { clock, log: log("queue") },
      { redisUrl: config.redisUrl, works: config.roles.has("worker") },
    ),
    resolver: createResolver({ clock }, { servers: dnsServers(config.dnsServers) }),
    pool: createPool(
      { clock, log: log("smtp") },
      { maxConnectionsPerDestination: config.destinationConnections, maxIdle: maxIdleConnections() },
    ),
    instance: await registerInstance({ db, clock }, process.pid),
    store: openObjects(config, clock),
    inspector,
    inspect: timedInspect(clock, inspector.inspect, metrics.inspected),
    links,
    memory: renderMemory(),
    renderer: openRenderer({ clock, meter: metrics.rendered }, { links, threads }),
  };
}

/**
 * Opens the database and brings it up to date, and its keys; on an empty one makes the first account. A DKIM key takes a processor a while:
 * the first one is made beside the tables.
 */
async function openData(
  config: Config,
  clock: Clock,
  meter: CommitMeter,
): Promise<{ db: Db; keys: InstallationKeys; firstStart: FirstStart | null }> {
  const db = await openDatabase(config, clock, { writer: writerFor(config), meter });
  // Of processes that start together on one file one makes its schema, and holds it meanwhile.
  const firstKey = (await untilFree(clock, () => isEmpty(db))) ? generateDkimKey() : null;
  await untilFree(clock, () => migrate(db, clock.now()));
  const keys = openKeys(config.masterKey, config.dataDir, (await installationKey(db)) !== null);
  const makeKey = () => firstKey ?? generateDkimKey();
  const deps = { db, clock, boxKey: keys.box, generateDkimKey: makeKey };
  return { db, keys, firstStart: await bootstrap(deps, config) };
}

async function startRoles(ground: Ground, firstStart: FirstStart | null): Promise<App> {
  const { config, clock, db, queue } = ground;
  const rates = config.roles.has("api")
    ? openRateLimiter({ clock, log: log("queue") }, { redisUrl: config.redisUrl }, config)
    : null;
  const parts: HttpParts = {
    ...ground,
    limiter: rates?.take ?? null,
    objects: ground.store?.reader ?? null,
    listening: () => listener !== null || !config.roles.has("smtp"),
    connections: () => ({ in: listener?.sessions ?? 0, out: ground.pool.connections }),
  };
  let listener: Listener | null = null;
  const ports: Ports = { http: 0, smtp: null, dns: null };
  const nameServer = await openNameServer(ground);
  ports.dns = nameServer?.port ?? null;
  if (ground.certificate !== null) {
    listener = openListener(ground, await ground.certificate);
    ports.smtp = (await listener.start()).port;
  }
  const http = createHttp(httpDeps(parts));
  ports.http = (await http.start()).port;
  // Behind all that a start may fail at: what they had in hand would go down with it, and mails that peers have by then go out
  // again, at each try of whoever starts us anew.
  const workers = config.roles.has("worker") ? startWorkers(workerDeps(ground, parts)) : null;
  const unwatchLag = watchLag(clock, ground.metrics.lagged);
  const unwatchFiles = watchFileHandles(clock, () => http.closeIdle());
  let stopping: Promise<void> | null = null;
  return {
    db,
    queue,
    ports,
    firstStart,
    async reload() {
      if (listener === null || config.smtpTlsCert === null) return false;
      listener.setCertificate(await listenerCertificate(ground));
      return true;
    },
    stop(graceMs = STOP_GRACE_MS) {
      unwatchLag();
      unwatchFiles();
      stopping ??= stopRoles(ground, { http, rates, listener, nameServer, workers }, graceMs);
      return stopping;
    },
  };
}

interface Roles {
  http: Http;
  rates: RateBuckets | null;
  listener: Listener | null;
  nameServer: ZoneServer | null;
  workers: Workers | null;
}

async function stopRoles(ground: Ground, roles: Roles, graceMs: number): Promise<void> {
  const { clock, db, queue, pool, instance, inspector, renderer } = ground;
  const left = timeLeft(clock, Math.max(0, graceMs - CLOSING_MS));
  ground.store?.stop();
  await endAll([
    // All at once: while one slow client holds a door open, nothing new must leave by the other.
    [
      () => roles.http.stop(left()),
      () => roles.listener?.stop(left()),
      () => queue.close(left()),
      () => within(clock, left(), roles.workers?.stop() ?? Promise.resolve(), undefined),
    ],
    [
      () => roles.nameServer?.stop(),
      () => inspector.close(),
      () => renderer.close(),
      () => roles.rates?.close(),
    ],
    [() => pool.close(left())],
    // What could not be finished is given back now; it is due again at once for whoever runs next.
    [() => deregisterInstance({ db, clock }, instance)],
    [() => db.close()],
  ]);
}
