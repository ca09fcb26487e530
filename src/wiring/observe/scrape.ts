import { type Clock, cacheFor, within } from "../../core/time/clock.ts";
import type { Health, HealthStatus } from "../../flows/health/check.ts";
import type { Streams } from "../../flows/live/streams.ts";
import type { Waits } from "../../flows/live/waits.ts";
import { type ReadyCheck, runChecks } from "../../http/server/health.ts";
import { type LaneRecord, type ReadLanesDeps, readLanes } from "../../flows/lanes/read-lanes.ts";
import { providerOfLane } from "../../flows/lanes/providers.ts";
import type { LaneSample, Metrics, QueueSample } from "../../metrics.ts";
import type { Db } from "../../store/engine/client.ts";
import { countTroubles } from "../../store/installation/health.ts";
import { queueDepths } from "../../store/messages/queue-depth.ts";
import { processSample } from "./process-sample.ts";

/** Time for which the queue depths are cached, milliseconds. */
export const QUEUES_FRESH_MS = 5_000;
/** Timeout of reading the queue depths, milliseconds. A scrape has ten seconds in all. */
const QUEUES_LIMIT_MS = 5_000;

const LEVELS: Readonly<Record<HealthStatus, number>> = { ok: 0, warn: 1, fail: 2 };

/** The sources of the gauges. */
export interface ScrapeParts {
  clock: Clock;
  db: Db;
  metrics: Metrics;
  checks: readonly ReadyCheck[];
  /** Open SMTP connections. */
  connections: () => { in: number; out: number };
  streams: Pick<Streams, "size">;
  waits: Pick<Waits, "size">;
  /** Looks at the installation as `/v1/health` shows it. */
  health: () => Promise<Health>;
  /** Limits of lanes. */
  lanes: Pick<ReadLanesDeps, "usual" | "overrides">;
}

/** Returns a function that reads all metrics as text. If a source fails, its metrics are left out. */
export function openScrape(parts: ScrapeParts): () => Promise<string> {
  const { clock, db, metrics, checks, connections, streams, waits } = parts;
  const lanes = cacheFor(clock, QUEUES_FRESH_MS, () => {
    const asked = readLanes({ db, clock, ...parts.lanes }).catch(() => []);
    return within(clock, QUEUES_LIMIT_MS, asked, []);
  });
  const queues = cacheFor(clock, QUEUES_FRESH_MS, (now) => {
    const asked = readQueues(db, now).catch(() => null);
    return within(clock, QUEUES_LIMIT_MS, asked, null);
  });
  const health = async (): Promise<Record<string, number>> => {
    const found = await within(clock, QUEUES_LIMIT_MS, parts.health(), null);
    return Object.fromEntries(found?.checks.map(({ name, status }) => [name, LEVELS[status]]) ?? []);
  };
  const troubles = cacheFor(clock, QUEUES_FRESH_MS, () => {
    const asked = countTroubles(db).catch(() => null);
    return within(clock, QUEUES_LIMIT_MS, asked, null);
  });
  return async () => {
    const [depths, found, outcomes, levels, counts] = await Promise.all([
      queues(),
      lanes(),
      runChecks(clock, checks),
      health(),
      troubles(),
    ]);
    const ready = Object.entries(outcomes).map(([name, outcome]) => [name, outcome === "ok"]);
    return metrics.text({
      queues: depths,
      lanes: laneSamples(found),
      ready: Object.fromEntries(ready),
      health: levels,
      troubles: { ...counts },
      connections: connections(),
      live: { stream: streams.size, wait: waits.size },
      process: processSample(),
    });
  };
}

/** The provider of hosts that are no known one's. It always has its series, so that a reader of metrics finds the names. */
const OTHER = "other";

/** Adds up the lanes of each provider. Lanes by host names would be too many series, and tell who writes to whom. */
function laneSamples(lanes: readonly LaneRecord[]): LaneSample[] {
  const byProvider = Map.groupBy(lanes, ({ name }) => providerOfLane(name)?.name ?? OTHER);
  if (!byProvider.has(OTHER)) byProvider.set(OTHER, []);
  return [...byProvider].map(([provider, some]) => {
    const states = { slowed: 0, resting: 0, blocked: 0 };
    const day = { accepted: 0, deferred: 0, refused: 0 };
    for (const lane of some) {
      if (lane.state !== "steady") states[lane.state]++;
      for (const outcome of ["accepted", "deferred", "refused"] as const) day[outcome] += lane.day[outcome];
    }
    return { provider, states, day };
  });
}

async function readQueues(db: Db, now: number): Promise<QueueSample> {
  const { recipients, deliveries, scheduled, fanOuts } = await queueDepths(db, now);
  const since = (dueSince: number | null): number => (dueSince === null ? 0 : (now - dueSince) / 1000);
  return {
    depth: {
      transmit: recipients.due,
      retry: recipients.later,
      scheduled,
      webhook: deliveries.due,
      webhook_retry: deliveries.later,
      fan_out: fanOuts,
    },
    oldestSeconds: { transmit: since(recipients.dueSince), webhook: since(deliveries.dueSince) },
  };
}
