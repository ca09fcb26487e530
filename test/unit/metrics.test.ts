import { describe, expect, test } from "bun:test";
import { TRANSITIONS } from "../../src/core/messages/states.ts";
import { openMetrics, type Readings } from "../../src/metrics.ts";
import { LAG_LOOK_MS, watchLag } from "../../src/wiring/process/timing.ts";
import { processSample } from "../../src/wiring/observe/process-sample.ts";
import { timedInspect } from "../../src/wiring/cpu/inspector.ts";
import { manualClock } from "../support/manual-clock.ts";

const READINGS: Readings = {
  queues: { depth: { transmit: 3 }, oldestSeconds: { transmit: 1.5 } },
  lanes: [{ provider: "yahoo", states: { slowed: 0, resting: 0, blocked: 1 }, day: { accepted: 7 } }],
  ready: { database: true, redis: false },
  health: { disk: 1 },
  troubles: { webhooks_disabled: 3 },
  connections: { in: 2, out: 5 },
  live: { stream: 4, wait: 6 },
  process: {
    cpuUserSeconds: 2,
    cpuSystemSeconds: 1,
    residentBytes: 10,
    heapBytes: 5,
    startedAt: 7,
    openFds: null,
    maxFds: null,
  },
};

/** Returns the value of one series, or null if it does not exist. */
function value(text: string, series: string): number | null {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length));
}

describe("metrics", () => {
  test("two meters of one process count separately", async () => {
    const [one, two] = [openMetrics(), openMetrics()];
    one.received("taken");
    const series = 'postrider_inbound_messages_total{outcome="taken"}';
    expect(value(await one.text(READINGS), series)).toBe(1);
    expect(value(await two.text(READINGS), series)).toBeNull();
  });

  test("a request is counted by route and status, and by kind if it accepted mail", async () => {
    const metrics = openMetrics();
    const send = { method: "POST", route: "/v1/emails", durationMs: 30 };
    metrics.answered({ ...send, status: 202 });
    metrics.answered({ ...send, status: 422 });
    metrics.answered({ ...send, method: "GET", status: 200 });
    metrics.answered({ ...send, route: "/v1/emails/batch", status: 207 });
    const text = await metrics.text(READINGS);
    const count = (labels: string) => value(text, `postrider_http_request_duration_seconds_count{${labels}}`);
    expect(count('method="POST",route="/v1/emails",status="202"')).toBe(1);
    expect(count('method="POST",route="/v1/emails",status="422"')).toBe(1);
    expect(value(text, 'postrider_accept_duration_seconds_count{kind="single"}')).toBe(1);
    expect(value(text, 'postrider_accept_duration_seconds_sum{kind="single"}')).toBe(0.03);
    expect(value(text, 'postrider_accept_duration_seconds_count{kind="batch"}')).toBe(1);
  });

  test("the checks of health and the things that need somebody have a gauge each", async () => {
    const text = await openMetrics().text(READINGS);
    expect(value(text, 'postrider_health{check="disk"}')).toBe(1);
    expect(value(text, 'postrider_troubles{kind="webhooks_disabled"}')).toBe(3);
  });

  test("counters used by alerts exist before the first event, so that the first burst of a new process is an increase", async () => {
    const text = await openMetrics().text(READINGS);
    // A claim that is given back is not a delivery attempt.
    const ends = TRANSITIONS.sending.filter((status) => status !== "queued");
    const tries = (name: string) =>
      [
        ...text.matchAll(
          new RegExp(`^postrider_${name}_duration_seconds_count\\{outcome="(\\w+)"\\} 0$`, "gm"),
        ),
      ].map(([, outcome]) => outcome);
    expect(tries("attempt").toSorted()).toEqual(ends.toSorted());
    expect(tries("webhook").toSorted()).toEqual(["failed", "refused", "succeeded"]);
  });

  test("a negative wait, from a clock that was set back, counts as zero", async () => {
    const metrics = openMetrics();
    metrics.push.claimed(-3600);
    const text = await metrics.text(READINGS);
    expect(value(text, 'postrider_queue_wait_seconds_sum{queue="webhook"}')).toBe(0);
    expect(value(text, 'postrider_queue_wait_seconds_count{queue="webhook"}')).toBe(1);
  });

  test("gauges show current values, and no old ones if reading fails", async () => {
    const metrics = openMetrics();
    const text = await metrics.text(READINGS);
    expect(value(text, 'postrider_queue_depth{queue="transmit"}')).toBe(3);
    expect(value(text, 'postrider_queue_oldest_due_seconds{queue="transmit"}')).toBe(1.5);
    expect(value(text, 'postrider_lanes{provider="yahoo",state="blocked"}')).toBe(1);
    expect(value(text, 'postrider_lane_day_attempts{provider="yahoo",outcome="accepted"}')).toBe(7);
    expect(value(text, 'postrider_ready{check="database"}')).toBe(1);
    expect(value(text, 'postrider_ready{check="redis"}')).toBe(0);
    expect(value(text, 'postrider_smtp_connections{direction="out"}')).toBe(5);
    expect(value(text, 'postrider_live_clients{kind="stream"}')).toBe(4);
    expect(value(text, 'postrider_live_clients{kind="wait"}')).toBe(6);
    expect(value(text, "process_cpu_seconds_total")).toBe(3);
    const later = await metrics.text({ ...READINGS, queues: null });
    expect(value(later, 'postrider_queue_depth{queue="transmit"}')).toBeNull();
    expect(value(later, 'postrider_queue_oldest_due_seconds{queue="transmit"}')).toBeNull();
    // A counter that is read from outside is not added up.
    expect(value(later, "process_cpu_seconds_total")).toBe(3);
  });
});

test("process metrics are exported", () => {
  const sample = processSample();
  expect(sample.cpuUserSeconds).toBeGreaterThan(0);
  expect(sample.residentBytes).toBeGreaterThan(sample.heapBytes);
  expect(sample.startedAt).toBeGreaterThan(1_600_000_000);
  if (process.platform === "linux") expect(sample.openFds).toBeLessThanOrEqual(sample.maxFds ?? 0);
});

test("lag is the delay of a timer, and stopping ends the measurement", () => {
  const clock = manualClock();
  const told: number[] = [];
  const stop = watchLag(clock, (seconds) => void told.push(seconds));
  clock.advance(LAG_LOOK_MS);
  clock.stall(400);
  clock.advance(LAG_LOOK_MS);
  expect(told).toEqual([0, 0.4]);
  stop();
  expect(clock.pending()).toBe(0);
});

describe("a timed reading", () => {
  const asked = { kind: "attachment", raw: new Uint8Array(), ord: 0 } as const;
  const rows: [outcome: string, found: () => Promise<{ bytes: null } | null>][] = [
    ["read", async () => ({ bytes: null })],
    ["busy", async () => null],
    ["failed", () => Promise.reject(new Error("no"))],
  ];
  test.each(rows)("that ends as %s is reported so, with its time", async (outcome, found) => {
    const clock = manualClock();
    const told: unknown[] = [];
    const inspect = timedInspect(
      clock,
      // The reading takes two seconds of the test's clock.
      (() => {
        clock.advance(2000);
        return found();
      }) as Parameters<typeof timedInspect>[1],
      (...said) => void told.push(said),
    );
    const ended = await inspect(asked).catch((error: Error) => error.message);
    expect(ended as unknown).toEqual(outcome === "failed" ? "no" : await found());
    expect(told).toEqual([[2, "attachment", outcome]]);
  });
});
