import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { Dispatch } from "../flows/dispatch/dispatch.ts";
import { Lanes } from "../flows/lanes.ts";
import { makeDeliveries } from "../flows/notify/fan-out.ts";
import { type PushDeps, push } from "../flows/notify/push.ts";
import { createPacer, type Pace } from "../flows/dispatch/pacer.ts";
import type { FindPassage } from "../flows/send/outcome.ts";
import { type TransmitDeps, transmit } from "../flows/send/transmit.ts";
import { indexMessages } from "../flows/sweep/index-messages.ts";
import { BEAT_MS, Heartbeat } from "../flows/sweep/instance.ts";
import { Orphans } from "../flows/sweep/orphans.ts";
import { Sweep } from "../flows/sweep/sweep.ts";
import { log } from "../log.ts";
import { openSharedPacer } from "../queue/destination-pacer.ts";
import type { JobHandler, Queue } from "../queue/port.ts";
import type { Db } from "../store/engine/client.ts";
import type { Instance } from "../store/instances.ts";
import { type Chore, startLoop } from "./loop.ts";

/** Recipients that wait in this process; more stay in the database. */
const WAITING_RECIPIENTS = 50_000;
/** Mails being claimed, composed and signed at a time. */
const MAILS_AT_DESK = 50;
/** Mails under way to peers at a time, over all destinations, and their octets. */
const MAILS_UNDER_WAY = 4_000;
const OCTETS_UNDER_WAY = 128 * 1024 * 1024;
/** Mails in hand for each connection to a destination: while one is being sent, others are composed and recorded. */
const MAILS_PER_CONNECTION = 4;
/** Mails in hand for the smarthost, and of those that do not leave. */
const OWN_MAILS_IN_HAND = 100;
/**
 * Mails that end without a try at a time, of one resting destination and of all domains without a way: they are written
 * together, and a client's request waits for no more than that.
 */
const DEFERRALS_IN_HAND = 8;
/**
 * The longest time that a destination rests which could not be reached. Usually it rests for half the first retry delay, so
 * that retries find it awake.
 */
const LONGEST_REST_MS = 300_000;
/** Pushes of one endpoint that wait in lanes of this process. */
const WAITING_PER_LANE = 10_000;
/** Webhook deliveries that wait in lanes of this process; more stay in the database. */
const WAITING_PUSHES = 100_000;
/** Pushes in hand at a time, over all endpoints that answer soon, and to one endpoint. */
const PUSHES_IN_HAND = 400;
const PUSHES_PER_ENDPOINT = 4;
/** An endpoint that takes longer than this has its pushes counted apart; of those, so many are in hand at a time. */
const SLOW_PUSH_MS = 2000;
const SLOW_PUSHES_IN_HAND = 800;
/**
 * Jobs that the queue hands over at a time. Handing over is quick: the lanes hold them. BullMQ fetches so many one after another
 * before it hands over the first: with a Redis that is 100 ms away more of them would outlive their locks.
 */
const HANDOVERS = 16;
const SWEEP_PAUSE_MS = 1000;
const INDEX_PAUSE_MS = 250;
const FAN_OUT_PAUSE_MS = 250;
/** A claim left over is freed at the second look: within ten seconds after a server that came and went. */
export const ORPHANS_PAUSE_MS = 4000;

export interface WorkerDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
  config: Config;
  instance: Instance;
  transmit: Omit<TransmitDeps, "deliver" | "foregone">;
  findPassage: FindPassage;
  push: PushDeps;
  /** Further work of each turn of the sweep, e.g. domains that are due for a check. */
  chores: readonly Chore[];
  /** What is to be told of each turn of a loop that fails. */
  turnFailures: (loop: string) => () => void;
}

/** The workers of this process. */
export interface Workers {
  /** Takes up nothing new and waits for what is in hand. */
  stop(): Promise<void>;
}

/** Starts delivering, pushing and sweeping. */
export function startWorkers(deps: WorkerDeps): Workers {
  const { clock, queue } = deps;
  const pacer = openPacer(deps);
  const dispatch = startDispatch(deps, pacer.pace);
  const pushes = openLanes(deps);
  const offering =
    (retry: boolean): JobHandler =>
    async (job) =>
      dispatch.offer(job, retry);
  queue.work("transmit", offering(false), HANDOVERS);
  queue.work("retry", offering(true), HANDOVERS);
  queue.work("push", async (job) => pushes.offer(job), HANDOVERS);
  const inHand = (key: string): boolean => dispatch.has(key) || pushes.has(key);
  const { giveUpMs } = deps.transmit.retry;
  const sweep = new Sweep(
    { db: deps.db, clock, queue, giveUpMs },
    {
      wants: (name, job) => (name === "push" ? pushes.wants(job) : dispatch.wants(job, name === "retry")),
      offer: (name, job) => (name === "push" ? pushes.offer(job) : dispatch.offer(job, name === "retry")),
    },
  );
  const heartbeat = new Heartbeat(deps, deps.instance);
  const orphans = new Orphans(deps, deps.instance.id, inHand);
  const loop = (name: string, pauseMs: number, turn: () => Promise<void>) =>
    startLoop({ clock, failures: deps.turnFailures }, pauseMs, { name, turn });
  const loops = [
    loop("sweep", SWEEP_PAUSE_MS, () => sweep.turn()),
    // A loop each: domains on name servers that hang must not keep the others from their turn.
    ...deps.chores.map(({ name, turn }) => loop(name, SWEEP_PAUSE_MS, turn)),
    loop("index", INDEX_PAUSE_MS, () => indexMessages(deps.db)),
    loop("fan-out", FAN_OUT_PAUSE_MS, makeDeliveries(deps)),
    loop("heartbeat", BEAT_MS, () => heartbeat.turn()),
    loop("orphans", ORPHANS_PAUSE_MS, () => orphans.turn()),
  ];
  return {
    async stop() {
      await Promise.all([...loops.map((loop) => loop.stop()), dispatch.close(), pushes.close()]);
      pacer.close();
    },
  };
}

function openLanes({ clock, push: pushDeps }: WorkerDeps): Lanes {
  return new Lanes(
    clock,
    {
      perLane: PUSHES_PER_ENDPOINT,
      total: PUSHES_IN_HAND,
      slowAfterMs: SLOW_PUSH_MS,
      slowTotal: SLOW_PUSHES_IN_HAND,
      waitingPerLane: WAITING_PER_LANE,
      waiting: WAITING_PUSHES,
    },
    (job) => push(pushDeps, job),
  );
}

/** Moments for mail to other people's hosts: shared where there is a Redis, and none needed where there is no limit. */
function openPacer({ config, clock }: WorkerDeps): { pace: Pace | null; close(): void } {
  const { destinationRate, redisUrl } = config;
  if (destinationRate === 0 || config.delivery !== "mx") return { pace: null, close() {} };
  const own = createPacer(clock, destinationRate);
  if (redisUrl === null) return { pace: own, close() {} };
  return openSharedPacer({ clock, log: log("queue") }, { redisUrl }, destinationRate, own);
}

function startDispatch(deps: WorkerDeps, pace: Pace | null): Dispatch {
  const { config, clock, transmit: common, findPassage } = deps;
  const [firstRetrySeconds = 0] = config.deliveryRetrySeconds;
  return new Dispatch(
    {
      clock,
      findPassage,
      pace,
      largeMailSeats: common.largeMailSeats,
      restMs: Math.min((firstRetrySeconds * 1000) / 2, LONGEST_REST_MS),
      transmit: (job, handover) =>
        transmit(
          {
            ...common,
            deliver: (shipment) => handover.deliver(shipment),
            foregone: () => handover.foregone(),
          },
          job,
        ),
    },
    {
      hosts: config.destinationConnections * MAILS_PER_CONNECTION,
      own: OWN_MAILS_IN_HAND,
      trials: config.destinationConnections,
      deferrals: DEFERRALS_IN_HAND,
      desk: MAILS_AT_DESK,
      underWay: MAILS_UNDER_WAY,
      bytes: OCTETS_UNDER_WAY,
      waiting: WAITING_RECIPIENTS,
    },
  );
}
