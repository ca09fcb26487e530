import { type Clock, cacheFor, within } from "../../core/time/clock.ts";
import type { Streams } from "../../flows/live/streams.ts";
import type { Waits } from "../../flows/live/waits.ts";
import { type ReadyCheck, runChecks } from "../../http/server/health.ts";
import type { Metrics, QueueSample } from "../../metrics.ts";
import type { Db } from "../../store/engine/client.ts";
import { queueDepths } from "../../store/messages/queue-depth.ts";
import { processSample } from "./process-sample.ts";

/** Time for which the queue depths are cached, milliseconds. */
export const QUEUES_FRESH_MS = 5_000;
/** Timeout of reading the queue depths, milliseconds. A scrape has ten seconds in all. */
const QUEUES_LIMIT_MS = 5_000;

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
}

/** Returns a function that reads all metrics as text. If a source fails, its metrics are left out. */
export function openScrape(parts: ScrapeParts): () => Promise<string> {
  const { clock, db, metrics, checks, connections, streams, waits } = parts;
  const queues = cacheFor(clock, QUEUES_FRESH_MS, (now) => {
    const asked = readQueues(db, now).catch(() => null);
    return within(clock, QUEUES_LIMIT_MS, asked, null);
  });
  return async () => {
    const [depths, outcomes] = await Promise.all([queues(), runChecks(clock, checks)]);
    const ready = Object.entries(outcomes).map(([name, outcome]) => [name, outcome === "ok"]);
    return metrics.text({
      queues: depths,
      ready: Object.fromEntries(ready),
      connections: connections(),
      live: { stream: streams.size, wait: waits.size },
      process: processSample(),
    });
  };
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
