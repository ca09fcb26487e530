import type { Config } from "../config.ts";
import { Dispatch } from "../flows/dispatch/dispatch.ts";
import { Lanes as PushLanes } from "../flows/webhooks/push-lanes.ts";
import type { Lanes } from "../flows/lanes/lanes.ts";
import { makeDeliveries } from "../flows/webhooks/fan-out.ts";
import { type PushDeps, push } from "../flows/webhooks/push.ts";
import { createPacer, type Pace } from "../flows/dispatch/pacer.ts";
import type { FindWays } from "../flows/deliver/ways.ts";
import type { FindDeliveryRoute } from "../flows/deliver/outcome.ts";
import { type TransmitDeps, transmit } from "../flows/deliver/transmit.ts";
import { indexMessages } from "../flows/sweep/index-messages.ts";
import { indexWords } from "../flows/search/index-words.ts";

import { Orphans } from "../flows/sweep/orphaned-claims.ts";
import { Sweep } from "../flows/sweep/sweep.ts";
import { log } from "../log.ts";
import { openSharedPacer } from "../queue/destination-pacer.ts";
import type { JobHandler } from "../queue/port.ts";
import type { Contents } from "../store/contents/content-read.ts";
import type { Instance } from "../store/installation/instances.ts";
import { type Chore, startLoop } from "./process/loop.ts";
import { takesSends } from "./process/takes-sends.ts";
import type { Outbox } from "../flows/outbox.ts";

/** Maximum number of recipients that wait in this process. Further ones stay in the database. */
const WAITING_RECIPIENTS = 50_000;
/**
 * Maximum number of messages claimed, composed and signed at a time. They share commits, and each step's code is in
 * the processor's caches for all.
 */
const MAX_PREPARING = 50;
/** The same maximum while this process takes sends. Their answers would wait for all of these. */
const MAX_PREPARING_WITH_SENDS = 16;
/** Time after the last send in which a process counts as taking sends, milliseconds. */
const TAKING_SENDS_MS = 50;
/** Maximum number of messages in flight to all peers, and their bytes. */
const MAX_IN_FLIGHT = 4_000;
const MAX_OCTETS_IN_FLIGHT = 128 * 1024 * 1024;
/** Messages in progress per connection to a destination. While one is sent, the process composes and records further ones. */
const MESSAGES_PER_CONNECTION = 4;
/** Messages in progress for the smarthost, and for delivery within the service. */
const OWN_MESSAGES_IN_HAND = 100;
/**
 * Messages deferred without an attempt at a time, because their destination rests or has no route. They share a write, and
 * a client's request waits for no more than that.
 */
const DEFERRALS_IN_HAND = 8;
/**
 * Longest rest of a destination that could not be reached, milliseconds. Usually it is half the first retry delay, so that
 * the rest is over before the retry.
 */
const LONGEST_REST_MS = 300_000;
/** Maximum number of pushes of one endpoint that wait in lanes of this process. */
const WAITING_PER_LANE = 10_000;
/** Maximum number of webhook deliveries that wait in lanes of this process. Further ones stay in the database. */
const WAITING_PUSHES = 100_000;
/** Pushes in progress: to all endpoints that answer fast, and to one endpoint until it has answered well. */
const PUSHES_IN_HAND = 400;
const PUSHES_PER_ENDPOINT = 4;
/** Time after which an endpoint counts as slow, milliseconds, and pushes in progress to all slow endpoints. */
const SLOW_PUSH_MS = 2000;
const SLOW_PUSHES_IN_HAND = 800;
/**
 * Jobs that the queue hands over at a time. BullMQ fetches all of them before it hands over the first. With a Redis that is
 * 100 ms away, more of them would outlive their locks.
 */
const HANDOVERS = 16;
const SWEEP_PAUSE_MS = 1000;
/** Pause between two reads of what other processes have written about lanes. */
const LANES_PAUSE_MS = 1000;
const INDEX_PAUSE_MS = 250;
const FAN_OUT_PAUSE_MS = 250;
/** Pause between two searches for orphaned claims. The second search frees a claim, so within ten seconds. */
export const ORPHANS_PAUSE_MS = 4000;

export interface WorkerDeps extends Outbox {
  config: Config;
  instance: Instance;
  transmit: Omit<TransmitDeps, "deliver" | "knownOutcome">;
  findDeliveryRoute: FindDeliveryRoute;
  waysOf: FindWays;
  lanes: Lanes;
  push: PushDeps;
  contents: Contents;
  /** Further loops, such as checks of domains. */
  chores: readonly Chore[];
  /** Returns the function to call at each failed turn of a loop. */
  turnFailures: (loop: string) => () => void;
}

/** The workers of this process. */
export interface Workers {
  /** Takes no new work and waits for the work in progress. */
  stop(): Promise<void>;
}

/** Starts delivering, pushing and sweeping. */
export function startWorkers(deps: WorkerDeps): Workers {
  const { clock, queue } = deps;
  const pacer = openPacer(deps);
  const takes = takesSends(deps.config);
  let lastSendAt = Number.NEGATIVE_INFINITY;
  const dispatch = startDispatch(deps, pacer.pace, () =>
    takes && clock.elapsed() - lastSendAt < TAKING_SENDS_MS ? MAX_PREPARING_WITH_SENDS : MAX_PREPARING,
  );
  const pushes = openPushLanes(deps);
  const offering =
    (retry: boolean): JobHandler =>
    async (job) => {
      if (!retry) lastSendAt = clock.elapsed();
      dispatch.offer(job, retry);
    };
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
  const orphans = new Orphans(deps, deps.instance.id, inHand);
  const loop = (name: string, pauseMs: number, turn: () => Promise<void>) =>
    startLoop({ clock, failures: deps.turnFailures }, pauseMs, { name, turn });
  const loops = [
    loop("sweep", SWEEP_PAUSE_MS, () => sweep.turn()),
    loop("lanes", LANES_PAUSE_MS, async () => {
      await deps.lanes.storeFigures(dispatch.waitingByLane());
      dispatch.lanesChanged(await deps.lanes.refresh());
    }),
    // Each chore has its own loop, so that name servers that hang do not delay the other chores.
    ...deps.chores.map(({ name, turn }) => loop(name, SWEEP_PAUSE_MS, turn)),
    loop("index", INDEX_PAUSE_MS, indexMessages(deps.db)),
    loop("words", INDEX_PAUSE_MS, indexWords(deps.contents)),
    loop("fan-out", FAN_OUT_PAUSE_MS, makeDeliveries(deps)),
    loop("orphans", ORPHANS_PAUSE_MS, () => orphans.turn()),
  ];
  return {
    async stop() {
      await Promise.all([...loops.map((loop) => loop.stop()), dispatch.close(), pushes.close()]);
      pacer.close();
    },
  };
}

function openPushLanes({ config, clock, push: pushDeps }: WorkerDeps): PushLanes {
  return new PushLanes(
    clock,
    {
      perLane: Math.min(PUSHES_PER_ENDPOINT, config.webhookConnections),
      mostPerLane: config.webhookConnections,
      total: PUSHES_IN_HAND,
      slowAfterMs: SLOW_PUSH_MS,
      slowTotal: SLOW_PUSHES_IN_HAND,
      waitingPerLane: WAITING_PER_LANE,
      waiting: WAITING_PUSHES,
    },
    (job) => push(pushDeps, job),
  );
}

/** Opens the pace of lanes, which is shared through Redis if there is one. */
function openPacer({ config, clock }: WorkerDeps): { pace: Pace; close(): void } {
  const { redisUrl } = config;
  const own = createPacer(clock);
  if (redisUrl === null) return { pace: own, close() {} };
  return openSharedPacer({ clock, log: log("queue") }, { redisUrl }, own);
}

function startDispatch(deps: WorkerDeps, pace: Pace, maxPreparing: () => number): Dispatch {
  const { config, clock, transmit: common, findDeliveryRoute } = deps;
  const [firstRetrySeconds = 0] = config.deliveryRetrySeconds;
  return new Dispatch(
    {
      clock,
      findDeliveryRoute,
      waysOf: deps.waysOf,
      pace,
      largeMessageAdmission: common.largeMessageAdmission,
      restMs: Math.min((firstRetrySeconds * 1000) / 2, LONGEST_REST_MS),
      transmit: (job, handover) =>
        transmit(
          {
            ...common,
            deliver: (shipment) => handover.deliver(shipment),
            knownOutcome: () => handover.knownOutcome(),
          },
          job,
        ),
    },
    {
      perConnection: MESSAGES_PER_CONNECTION,
      own: OWN_MESSAGES_IN_HAND,
      trials: config.destinationConnections,
      deferrals: DEFERRALS_IN_HAND,
      get preparing() {
        return maxPreparing();
      },
      delivering: MAX_IN_FLIGHT,
      octets: MAX_OCTETS_IN_FLIGHT,
      waiting: WAITING_RECIPIENTS,
    },
  );
}
