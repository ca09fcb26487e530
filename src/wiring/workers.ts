import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { Lanes } from "../flows/lanes.ts";
import { type PushDeps, push } from "../flows/notify/push.ts";
import { type TransmitDeps, transmit } from "../flows/send/transmit.ts";
import { heartbeat, LEASE_MS } from "../flows/sweep/instance.ts";
import { Orphans } from "../flows/sweep/orphans.ts";
import { Sweep } from "../flows/sweep/sweep.ts";
import type { JobHandler, Queue } from "../queue/port.ts";
import type { Db } from "../store/client.ts";
import type { Instance } from "../store/instances.ts";
import { startLoop } from "./loop.ts";

/** Recipients that wait in lanes of this process; more stay in the database. */
const WAITING_RECIPIENTS = 200_000;
/** Recipients that are being delivered to at a time, over all destinations. */
const TRANSMITS_IN_HAND = 500;
/** Of one destination, and of one endpoint, that wait in lanes of this process. */
const WAITING_PER_LANE = 10_000;
/** Webhook deliveries that wait in lanes of this process; more stay in the database. */
const WAITING_PUSHES = 100_000;
/** Pushes in hand at a time, over all endpoints, and to one endpoint. */
const PUSHES_IN_HAND = 400;
const PUSHES_PER_ENDPOINT = 4;
/** Jobs that the queue hands over at a time. Handing over is quick: the lanes hold them. */
const HANDOVERS = 64;
const SWEEP_PAUSE_MS = 1000;

export interface WorkerDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
  config: Config;
  instance: Instance;
  transmit: TransmitDeps;
  push: PushDeps;
  /** Further work of each turn of the sweep, e.g. domains that are due for a check. */
  chores: readonly (() => Promise<void>)[];
}

/** The workers of this process. */
export interface Workers {
  /** Takes up nothing new and waits for what is in hand. */
  stop(): Promise<void>;
}

/** Starts delivering, pushing and sweeping. */
export function startWorkers(deps: WorkerDeps): Workers {
  const { clock, queue, config } = deps;
  const transmits = new Lanes(
    {
      perLane: config.destinationConnections,
      total: TRANSMITS_IN_HAND,
      waitingPerLane: WAITING_PER_LANE,
      waiting: WAITING_RECIPIENTS,
    },
    (job) => transmit(deps.transmit, job),
  );
  const pushes = new Lanes(
    {
      perLane: PUSHES_PER_ENDPOINT,
      total: PUSHES_IN_HAND,
      waitingPerLane: WAITING_PER_LANE,
      waiting: WAITING_PUSHES,
    },
    (job) => push(deps.push, job),
  );
  const handTo =
    (lanes: Lanes): JobHandler =>
    async (job) =>
      lanes.offer(job);
  queue.work("transmit", handTo(transmits), HANDOVERS);
  queue.work("push", handTo(pushes), HANDOVERS);
  const sweep = new Sweep(deps);
  const orphans = new Orphans(deps, deps.instance.id, (key) => transmits.has(key) || pushes.has(key));
  const loops = [
    startLoop(clock, "sweep", SWEEP_PAUSE_MS, () => sweep.turn()),
    startLoop(clock, "chores", SWEEP_PAUSE_MS, async () => {
      for (const chore of deps.chores) await chore();
    }),
    startLoop(clock, "heartbeat", LEASE_MS / 4, async () => {
      await heartbeat(deps, deps.instance);
      await orphans.turn();
    }),
  ];
  return {
    async stop() {
      await Promise.all([...loops.map((loop) => loop.stop()), transmits.close(), pushes.close()]);
    },
  };
}
