import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { COMMIT, VERSION } from "./version.ts";

// Labels are words of ours from short lists, never an address, a domain, a project or a path with ids. So the metrics do
// not tell who writes to whom, and the number of series does not grow with the traffic.

/** A request that a route has answered. */
export interface RequestSample {
  method: string;
  /** The route's path with its `:name` segments. */
  route: string;
  status: number;
  durationMs: number;
}

/** The depth of an outbox. `oldestSeconds` is how long the oldest due row has been due. */
export type QueueSample = Record<"depth" | "oldestSeconds", Readonly<Record<string, number>>>;

/** Lanes by state, and attempts of the day by outcome, of one provider: "other" if it is no known one. */
export type LaneSample = { provider: string } & Record<"states" | "day", Readonly<Record<string, number>>>;

/** Values that are read only when Prometheus reads the metrics. */
export interface Readings {
  /** Null if the database did not answer. */
  queues: QueueSample | null;
  lanes: readonly LaneSample[];
  ready: Readonly<Record<string, boolean>>;
  /** For each check of `/v1/health` 0, 1 for a warning or 2 for a failure; what needs somebody, counted by kind. */
  health: Readonly<Record<string, number>>;
  troubles: Readonly<Record<string, number>>;
  /** Open SMTP connections. */
  connections: { in: number; out: number };
  /** Clients of this process that follow events. */
  live: { stream: number; wait: number };
  process: ProcessSample;
}

/** The process as the system sees it. Null if the system does not tell. */
export interface ProcessSample {
  cpuUserSeconds: number;
  cpuSystemSeconds: number;
  residentBytes: number;
  heapBytes: number;
  /** Seconds since the Unix epoch. */
  startedAt: number;
  openFds: number | null;
  maxFds: number | null;
}

/** The meters of one App. */
export interface Metrics {
  answered(sample: RequestSample): void;
  transmit: {
    claimed(waitedSeconds: number, retry: boolean): void;
    tried(seconds: number, outcome: string): void;
  };
  push: {
    claimed(waitedSeconds: number): void;
    tried(seconds: number, outcome: string): void;
  };
  smtp: {
    sessionEnded(seconds: number, end: string): void;
    messageRefused(reason: string): void;
  };
  /** A message was submitted by SMTP, with its outcome. */
  submitted(outcome: string): void;
  /** A message arrived, with its outcome. */
  received(outcome: string): void;
  /** A thread of the inspector has read a message or a part of one. */
  inspected(seconds: number, kind: string, outcome: string): void;
  /** A thread has rendered a template or a large message. */
  rendered(seconds: number, kind: string, outcome: string): void;
  commits: {
    committed(seconds: number, writers: number): void;
    failed(): void;
  };
  /** Returns the function to call for each failed turn of a worker's loop. Its counter starts at zero. */
  turnFailures(loop: string): () => void;
  /** A timer of the main thread was this late. */
  lagged(seconds: number): void;
  /** Returns all metrics in Prometheus' text form. */
  text(readings: Readings): Promise<string>;
}

/** The content type of `text`. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Seconds. The clock counts milliseconds, so shorter times are the same. */
const WORK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const REQUESTS = [0.0025, 0.01, 0.05, 0.25, 1, 5, 30];
const CONVERSATIONS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const WAITS = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 900, 3600, 14_400];
const WRITERS = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Routes that accept messages to send. */
const SEND_ROUTES: ReadonlyMap<string, string> = new Map([
  ["POST /v1/emails", "single"],
  ["POST /v1/emails/batch", "batch"],
  ["POST /v1/threads/:id/reply", "reply"],
]);

/** Statuses that a delivery attempt leads to. */
const TRY_OUTCOMES =
  "delivered sent delivery_delayed bounced failed rejected rendering_failure complained".split(" ");
const PUSH_OUTCOMES = ["succeeded", "refused", "failed"];

/** Returns seconds that may be observed. A wait since a stored time is negative if the clock was set back. */
const span = (seconds: number): number => Math.max(0, seconds);

/** Makes the meters of one App. It has its own registry, because tests run several Apps in one process. */
export function openMetrics(): Metrics {
  const registry = new Registry();
  const meters = metersIn(registry);
  const gauges = gaugesIn(registry);
  return {
    ...meters,
    text(readings) {
      show(gauges, readings);
      return registry.metrics();
    },
  };
}

function histogramsIn(registry: Registry) {
  const make = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ) => new Histogram({ name: `postrider_${name}`, help, buckets, labelNames, registers: [registry] });
  return {
    requests: make("http_request_duration_seconds", "Duration of answered requests, by route.", REQUESTS, [
      ...(["method", "route", "status"] as const),
    ]),
    accepts: make("accept_duration_seconds", "Duration of requests to send.", WORK, ["kind"]),
    waits: make("queue_wait_seconds", "Time from due to claimed by a worker.", WAITS, ["queue"]),
    attempts: make(
      "attempt_duration_seconds",
      "Duration of delivery attempts to one recipient, composing included.",
      CONVERSATIONS,
      ["outcome"],
    ),
    webhooks: make("webhook_duration_seconds", "Duration of pushes of one event.", CONVERSATIONS, [
      "outcome",
    ]),
    sessions: make("smtp_session_duration_seconds", "Incoming SMTP sessions.", CONVERSATIONS, ["end"]),
    inspections: make("inspection_duration_seconds", "Messages read on a thread, waiting included.", WORK, [
      ...(["kind", "outcome"] as const),
    ]),
    renderings: make("rendering_duration_seconds", "Renderings on a thread, waiting included.", WORK, [
      ...(["kind", "outcome"] as const),
    ]),
    commits: make("commit_duration_seconds", "Duration of database commits.", WORK),
    writers: make("commit_writers", "Writers that shared a commit.", WRITERS),
    lag: make("event_loop_lag_seconds", "How late a timer fired, measured four times a second.", WORK),
  };
}

/**
 * Starts the series that alerts use at zero. Prometheus takes the first value of a series as its start. Without this, a burst of
 * bounces before the first reading would be lost.
 */
function beginAtZero({ attempts, webhooks }: ReturnType<typeof histogramsIn>): void {
  for (const outcome of TRY_OUTCOMES) attempts.zero({ outcome });
  for (const outcome of PUSH_OUTCOMES) webhooks.zero({ outcome });
}

function metersIn(registry: Registry): Omit<Metrics, "text"> {
  const times = histogramsIn(registry);
  beginAtZero(times);
  const registers = [registry];
  const count = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name: `postrider_${name}`, help, labelNames, registers });
  const received = count("inbound_messages_total", "Mails that came in by SMTP, by what they became.", [
    "outcome",
  ]);
  const submissions = count("submitted_messages_total", "Messages that programs sent by SMTP.", ["outcome"]);
  const failures = count("commit_failures_total", "Commits that the database did not make.");
  const turns = count("turn_failures_total", "Turns of a loop that failed.", ["loop"]);
  return {
    answered({ method, route, status, durationMs }) {
      const seconds = durationMs / 1000;
      times.requests.observe({ method, route, status }, seconds);
      const kind = status < 300 ? SEND_ROUTES.get(`${method} ${route}`) : undefined;
      if (kind !== undefined) times.accepts.observe({ kind }, seconds);
    },
    transmit: {
      claimed: (waited, retry) => times.waits.observe({ queue: retry ? "retry" : "transmit" }, span(waited)),
      tried: (seconds, outcome) => times.attempts.observe({ outcome }, seconds),
    },
    push: {
      claimed: (waited) => times.waits.observe({ queue: "webhook" }, span(waited)),
      tried: (seconds, outcome) => times.webhooks.observe({ outcome }, seconds),
    },
    smtp: {
      sessionEnded: (seconds, end) => times.sessions.observe({ end }, seconds),
      messageRefused: (outcome) => received.inc({ outcome }),
    },
    submitted: (outcome) => submissions.inc({ outcome }),
    received: (outcome) => received.inc({ outcome }),
    rendered: (seconds, kind, outcome) => times.renderings.observe({ kind, outcome }, seconds),
    inspected: (seconds, kind, outcome) => times.inspections.observe({ kind, outcome }, seconds),
    commits: {
      committed(seconds, writers) {
        times.commits.observe(seconds);
        times.writers.observe(writers);
      },
      failed: () => failures.inc(),
    },
    turnFailures(loop) {
      turns.inc({ loop }, 0);
      return () => turns.inc({ loop });
    },
    lagged: (seconds) => times.lag.observe(seconds),
  };
}

type Gauges = ReturnType<typeof gaugesIn>;

function gaugesIn(registry: Registry) {
  const registers = [registry];
  const make = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge({ name, help, labelNames, registers });
  const total = (name: string, help: string) => new Counter({ name, help, registers });
  const info = make("postrider_info", "Always 1.", ["version", "commit"]);
  info.set({ version: VERSION, commit: COMMIT ?? "" }, 1);
  return {
    depth: make(
      "postrider_queue_depth",
      "Waiting rows in the shared database, by outbox; 10000 means that many or more. A *retry is not due yet.",
      ["queue"],
    ),
    oldest: make(
      "postrider_queue_oldest_due_seconds",
      "How long the oldest due row of an outbox has been due; 0 if none is due.",
      ["queue"],
    ),
    lanes: make("postrider_lanes", "Lanes of all processes that are not steady.", ["provider", "state"]),
    laneDay: make("postrider_lane_day_attempts", "Attempts since midnight UTC.", ["provider", "outcome"]),
    ready: make("postrider_ready", "Whether a check of /readyz holds.", ["check"]),
    health: make("postrider_health", "Checks of /v1/health: 0 holds, 1 warns, 2 fails.", ["check"]),
    troubles: make("postrider_troubles", "Things of all projects that need somebody.", ["kind"]),
    connections: make("postrider_smtp_connections", "Open SMTP connections.", ["direction"]),
    live: make("postrider_live_clients", "Clients that follow events.", ["kind"]),
    cpu: total("process_cpu_seconds_total", "Processor time of all threads."),
    cpuUser: total("process_cpu_user_seconds_total", "Processor time in user space."),
    cpuSystem: total("process_cpu_system_seconds_total", "Processor time in the kernel."),
    resident: make("process_resident_memory_bytes", "Resident memory."),
    heap: make("postrider_heap_bytes", "Used heap of the main thread."),
    startedAt: make("process_start_time_seconds", "Start time of the process since the Unix epoch."),
    openFds: make("process_open_fds", "Open files and sockets."),
    maxFds: make("process_max_fds", "Maximum number of open files and sockets."),
  };
}

/** Sets each gauge after clearing them all, so that an old value does not remain if a new one cannot be read. */
function showEach<Label extends string>(
  gauge: Gauge<Label>,
  label: Label,
  values: Readonly<Record<string, number>>,
): void {
  gauge.reset();
  for (const [name, value] of Object.entries(values))
    gauge.set({ [label]: name } as Record<Label, string>, value);
}

function showLanes(gauges: Gauges, lanes: readonly LaneSample[]): void {
  for (const gauge of [gauges.lanes, gauges.laneDay]) gauge.reset();
  for (const { provider, states, day } of lanes) {
    for (const [state, number] of Object.entries(states)) gauges.lanes.set({ provider, state }, number);
    for (const [outcome, number] of Object.entries(day)) gauges.laneDay.set({ provider, outcome }, number);
  }
}

function show(gauges: Gauges, readings: Readings): void {
  const { queues, lanes, ready, connections, live, process } = readings;
  showLanes(gauges, lanes);
  showEach(gauges.depth, "queue", queues?.depth ?? {});
  showEach(gauges.oldest, "queue", queues?.oldestSeconds ?? {});
  const checks = Object.entries(ready).map(([name, holds]) => [name, holds ? 1 : 0]);
  showEach(gauges.ready, "check", Object.fromEntries(checks));
  showEach(gauges.health, "check", readings.health);
  showEach(gauges.troubles, "kind", readings.troubles);
  showEach(gauges.connections, "direction", { ...connections });
  showEach(gauges.live, "kind", { ...live });
  countTo(gauges.cpuUser, process.cpuUserSeconds);
  countTo(gauges.cpuSystem, process.cpuSystemSeconds);
  countTo(gauges.cpu, process.cpuUserSeconds + process.cpuSystemSeconds);
  gauges.resident.set(process.residentBytes);
  gauges.heap.set(process.heapBytes);
  gauges.startedAt.set(process.startedAt);
  if (process.openFds !== null) gauges.openFds.set(process.openFds);
  if (process.maxFds !== null) gauges.maxFds.set(process.maxFds);
}

/** Sets a counter that the system keeps and we only show. */
function countTo(counter: Counter, total: number): void {
  counter.reset();
  counter.inc(total);
}
