import { limitsOf } from "../../src/flows/deliver/reputation.ts";
import { RightOfWay } from "../../src/core/concurrency/right-of-way.ts";
import { captureRoute } from "../../src/flows/deliver/deliver.ts";
import { testLanes } from "../support/lanes.ts";
import { ALWAYS_ROOM } from "../../src/flows/free-space.ts";
import { SharedPayloads } from "../../src/flows/webhooks/shared-payloads.ts";
import { JobAdmission, LARGE_MESSAGE_LIMITS, RENDERING_LIMITS } from "../../src/flows/deliver/admission.ts";
import { loadConfig } from "../../src/config.ts";
import { bootstrap } from "../../src/flows/account/bootstrap.ts";
import { parseTransmitKey } from "../../src/queue/hint.ts";
import { push, type PushDeps } from "../../src/flows/webhooks/push.ts";
import { type Inspect, runReading } from "../../src/flows/mime/reading-tasks.ts";
import type { MailLinks } from "../../src/flows/mime/make-mail.ts";
import { type TransmitDeps, transmit } from "../../src/flows/deliver/transmit.ts";
import { indexMessages } from "../../src/flows/sweep/index-messages.ts";
import { registerInstance } from "../../src/flows/sweep/instance.ts";
import { Sweep } from "../../src/flows/sweep/sweep.ts";
import { recheckDue } from "../../src/flows/domains/recheck.ts";
import { Streams } from "../../src/flows/live/streams.ts";
import { Tail } from "../../src/flows/live/tail.ts";
import { Waits } from "../../src/flows/live/waits.ts";
import { domainRoutes } from "../../src/http/routes/domains.ts";
import { createHttp, type Http } from "../../src/http/server/server.ts";
import { openMetrics } from "../../src/metrics.ts";
import type { PostRequest } from "../../src/net/post.ts";
import type { Job, Queue, QueueName } from "../../src/queue/port.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { deleteOldAnswers } from "../../src/store/projects/idempotency.ts";
import { checkingOf, type HttpParts, httpDeps } from "../../src/wiring/http.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { TEST_KEY, type TestZone, zoneLookups } from "../support/api.ts";
import type { Chance } from "../support/chance.ts";
import { testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { recurringRsaKey } from "../support/rsa-keys.ts";
import { rendererHere } from "../support/renderer.ts";
import { peerAnswer } from "./peers.ts";
import { type TableGuard, tableGuard } from "./table-guard.ts";
import { type Making, renderMemory } from "../../src/flows/mime/making.ts";

export const SERVICE_DOMAIN = "post.example";
/** The accounts of the stage, by position. */
export const OWNERS = ["owner@one.example", "owner@two.example"] as const;
/** Jobs and idempotent answers that one turn handles. */
const PER_TURN = 1000;

export interface Mail {
  rcptTo: string;
  raw: string;
}

/**
 * The service in this process, without sockets and threads: its own entry points on a file, with the test's clock.
 */
export interface Stage {
  db: Db;
  clock: ManualClock;
  /** DNS as domain checks see it. */
  zone: TestZone;
  guard: TableGuard;
  fetch(request: Request): Promise<Response>;
  /** Delivered mail of the recipients. */
  mails: Mail[];
  /** The answer to each push: a status, or null for none. */
  endpoint(answer: (request: PostRequest) => number | null): void;
  /** Drops every hint, as a flushed queue does. */
  loseHints(): void;
  /** One turn of the sweep, which adds due rows to the queue. */
  sweep(): Promise<void>;
  /** Sends to the recipients in the queue, in the order of their messages. */
  transmitHinted(): Promise<void>;
  /** Makes the pushes in the queue. */
  pushHinted(): Promise<void>;
  /** Domain checks, removal of answers after their day, the search index. */
  chores(): Promise<void>;
  close(): Promise<void>;
}

/** Opens it on an empty database. `chance` replaces jitter. */
export async function openStage(chance: Chance): Promise<Stage> {
  const clock = manualClock();
  const { db: bare, folder, remove } = await testDatabase();
  const guard = tableGuard(bare);
  const db = guard.db;
  const config = loadConfig({
    SERVICE_DOMAIN,
    OWNER_EMAIL: OWNERS[0],
    DELIVERY: "capture",
    CAPTURE_STRICT: "1",
    DATA_DIR: folder,
  });
  const keys = openKeys("a master key of the model's own, long enough", folder);
  const generateDkimKey = async () => TEST_KEY;
  await bootstrap({ db, clock, boxKey: keys.box, generateDkimKey }, config);
  const hints = hintedQueue();
  const zone: TestZone = new Map();
  const links: MailLinks = {
    serviceDomain: SERVICE_DOMAIN,
    publicUrl: config.publicUrl,
    hostsDomains: false,
    serviceSignature: false,
    verpKey: keys.verp,
    unsubscribeKey: keys.unsubscribe,
    trackingKey: keys.tracking,
  };
  const making = {
    db,
    clock,
    queue: hints.queue,
    objects: null,
    boxKey: keys.box,
    ...links,
    renderer: rendererHere(links),
    memory: renderMemory(),
    inspect: ((asked) =>
      runReading({ clock, host: `mx.${SERVICE_DOMAIN}`, resolve: async () => [] }, asked)) as Inspect,
  };
  const http = openHttp({ config, keys, zone, ...making });
  let answer: (request: PostRequest) => number | null = () => 200;
  const common = {
    ...making,
    random: chance.number,
    instanceId: (await registerInstance({ db, clock }, process.pid)).id,
  };
  const mails: Mail[] = [];
  const transmitDeps: TransmitDeps = {
    ...common,
    custody: "delivered",
    suspension: limitsOf(5),
    capture: true,
    verpKey: keys.verp,
    renderingAdmission: new JobAdmission(clock, RENDERING_LIMITS),
    rightOfWay: new RightOfWay(clock),
    largeMessageAdmission: new JobAdmission(clock, LARGE_MESSAGE_LIMITS),
    knownOutcome: () => null,
    returnDomain: async () => `bounce.${links.serviceDomain}`,
    async deliver(shipment) {
      mails.push({ rcptTo: shipment.rcptTo, raw: shipment.raw.toString("latin1") });
      return peerAnswer(shipment, clock.now());
    },
    retry: {
      schedule: { delaysSeconds: config.deliveryRetrySeconds, jitter: 0.2 },
      giveUpMs: config.deliveryGiveUpSeconds * 1000,
    },
  };
  const pushDeps: PushDeps = {
    ...common,
    payloads: new SharedPayloads(),
    async post(request) {
      const status = answer(request);
      return status === null
        ? { kind: "failed", reason: "no answer" }
        : { kind: "answered", status, body: new Uint8Array() };
    },
    policy: {
      delaysSeconds: config.webhookRetrySeconds,
      timeoutMs: config.webhookTimeoutSeconds * 1000,
      disableAfterMs: config.webhookDisableAfterSeconds * 1000,
      allowPrivate: false,
    },
  };
  const { giveUpMs } = transmitDeps.retry;
  const index = indexMessages(db);
  const sweep = new Sweep({ ...common, giveUpMs }, { wants: () => true, offer: hints.offer });
  const verification = { ...checkingOf(http.parts), generateDkimKey, lookups: zoneLookups(zone) };
  return {
    db: bare,
    clock,
    zone,
    guard,
    mails,
    fetch: (request) => http.door.fetch(request),
    endpoint(given) {
      answer = given;
    },
    loseHints: hints.lose,
    sweep: () => sweep.turn(),
    async transmitHinted() {
      for (const job of hints.take(["transmit", "retry"]).sort(byRecipient))
        await transmit(transmitDeps, job);
    },
    async pushHinted() {
      for (const job of hints.take(["push"])) await push(pushDeps, job);
    },
    async chores() {
      await recheckDue(verification, PER_TURN);
      await deleteOldAnswers(db, clock.now(), PER_TURN);
      await index();
    },
    async close() {
      await http.door.stop(0);
      await remove();
    },
  };
}

function byRecipient(one: Job, other: Job): number {
  const [a, b] = [parseTransmitKey(one.key), parseTransmitKey(other.key)];
  if (a === null || b === null) throw new Error("not the key of a recipient");
  return a.messageId < b.messageId ? -1 : a.messageId > b.messageId ? 1 : a.ord - b.ord;
}

interface HttpGround extends Making, Pick<HttpParts, "config" | "keys" | "queue"> {
  zone: TestZone;
}

/** Every route as in the service, but with one DKIM key for all domains, because making keys is slow. */
function openHttp({ zone, ...ground }: HttpGround): { door: Http; parts: HttpParts } {
  const parts: HttpParts = {
    ...ground,
    metrics: openMetrics(),
    resolver: { resolve: async () => ({ status: "nxdomain" }) },
    limits: ground.config,
    volume: ground.config,
    capturesAnyFrom: false,
    makeRsaKey: recurringRsaKey,
    documentHosts: {},
    outbound: {
      lanes: testLanes(ground.clock),
      findDeliveryRoute: async () => captureRoute(ground.clock),
      custody: "delivered",
      waysOf: async () => [captureRoute(ground.clock)],
    },
    testControls: null,
    space: ALWAYS_ROOM,
    limiter: null,
    signIns: null,
    keyLimiter: null,
    streams: new Streams({ ...ground, tail: new Tail(ground, true) }),
    waits: new Waits({ ...ground, tail: new Tail(ground, true) }),
    listening: () => true,
    rightOfWay: new RightOfWay(ground.clock),
    connections: () => ({ in: 0, out: 0 }),
  };
  const deps = httpDeps(parts);
  const domains = domainRoutes({
    ...checkingOf(parts),
    receivers: null,
    generateDkimKey: async () => TEST_KEY,
    lookups: zoneLookups(zone),
  });
  const others = deps.routes.filter(({ path }) => !path.startsWith("/v1/domains"));
  return { door: createHttp({ ...deps, docs: null, ui: null, routes: [...others, ...domains] }), parts };
}

/** A queue that keeps hints until a turn of the test takes them. */
function hintedQueue() {
  const jobs = new Map<string, { name: QueueName; job: Job }>();
  const offer = (name: QueueName, job: Job): void => void jobs.set(`${name} ${job.key}`, { name, job });
  const queue: Queue = {
    async add(name, added) {
      for (const job of added) offer(name, job);
    },
    work() {},
    async check() {},
    async close() {},
  };
  return {
    queue,
    offer,
    lose: () => jobs.clear(),
    take(names: readonly QueueName[]): Job[] {
      const taken = [...jobs].filter(([, { name }]) => names.includes(name));
      for (const [key] of taken) jobs.delete(key);
      return taken.map(([, { job }]) => job);
    },
  };
}
