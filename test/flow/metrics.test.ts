import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openMetrics } from "../../src/metrics.ts";
import { openScrape, QUEUES_FRESH_MS } from "../../src/wiring/observe/scrape.ts";
import { testDatabase } from "../support/database.ts";
import { startSink } from "../support/https-sink.ts";
import { delivered, deliver, smtpSession } from "../support/mail-in.ts";
import { manualClock } from "../support/manual-clock.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, startService, type TestService, verifiedDomain } from "../support/service.ts";

const DEPLOY = join(import.meta.dir, "../../deploy");

/** The metrics of a service that has sent, received, pushed and refused. */
let text = "";
/** Words that the service was given and that no label may contain. */
let words: string[] = [];

beforeAll(async () => {
  const sink = startSink();
  const service = await startService({ WEBHOOK_RETRY_SECONDS: "0,600" });
  try {
    text = await live(service, sink);
  } finally {
    await service.stop();
    await sink.stop();
  }
}, 90_000);

async function live(service: TestService, sink: ReturnType<typeof startSink>): Promise<string> {
  const [inboxId = ""] = await receivingInboxes(service, "in.test", ["a@in.test"]);
  await verifiedDomain(service, "sender.test");
  const hook = { url: sink.url, eventTypes: ["delivery", "bounce"] };
  const { id: webhookId } = (await service.call("POST", "/v1/webhooks", hook)).body;
  sink.answer(200, 500, 200);
  const send = async (to: string, status: string): Promise<string> => {
    const mail = { from: { email: "a@sender.test" }, to: [{ email: to }], subject: "Hi", text: "x" };
    const { id } = (await service.call("POST", "/v1/emails", mail)).body;
    await service.message(id, status);
    return id;
  };
  const first = await send("b@x.test", "delivered");
  await sink.requests.reached(1);
  const second = await send(`bounced@simulator.${"mail.test"}`, "bounced");
  await sink.requests.reached(2);
  // A replay has not waited since the event.
  const log = `/v1/webhooks/${webhookId}/deliveries`;
  const told = (await service.call("GET", log)).body.data.at(-1).id;
  const replay = () => service.call("POST", `${log}/${told}/replay`);
  await until(async () => (await replay()).status === 202);
  await sink.requests.reached(3);
  const later = { from: { email: "a@sender.test" }, to: [{ email: "l@x.test" }], subject: "Hi", text: "x" };
  const scheduledAt = new Date(systemClock.now() + 3_600_000).toISOString();
  expect((await service.call("POST", "/v1/emails", { ...later, scheduledAt })).status).toBe(202);
  await delivered(service, { to: "a@in.test" });
  expect(await deliver(service, { to: "a@in.test", body: "a\nb" })).toStartWith("550");
  const standing = await smtpSession(service.smtpPort);
  const quitting = await smtpSession(service.smtpPort);
  await quitting.say("QUIT");
  words = [inboxId, webhookId, first, second, "b@x.test", "a@in.test", "in.test", "sender.test", "x.test"];
  // The second push is recorded after its answer, and the session that quits closes after its own.
  for (;;) {
    const read = await service.metrics();
    const there =
      value(read, 'postrider_webhook_duration_seconds_count{outcome="refused"}') === 1 &&
      value(read, 'postrider_webhook_duration_seconds_count{outcome="succeeded"}') === 2 &&
      (value(read, 'postrider_smtp_session_duration_seconds_count{end="quit"}') ?? 0) > 0;
    if (!there) {
      await Bun.sleep(20);
      continue;
    }
    expect(value(read, 'postrider_smtp_connections{direction="in"}')).toBeGreaterThan(0);
    standing.end();
    return read;
  }
}

/** The value of one series, or null if it does not exist. */
function value(metrics: string, series: string): number | null {
  const line = metrics.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length));
}

describe("the metrics of a service", () => {
  const COUNTS: [series: string, count: number][] = [
    ['postrider_accept_duration_seconds_count{kind="single"}', 3],
    ['postrider_http_request_duration_seconds_count{method="POST",route="/v1/emails",status="202"}', 3],
    ['postrider_queue_wait_seconds_count{queue="transmit"}', 2],
    ['postrider_queue_wait_seconds_count{queue="webhook"}', 2],
    ['postrider_attempt_duration_seconds_count{outcome="delivered"}', 1],
    ['postrider_attempt_duration_seconds_count{outcome="bounced"}', 1],
    ['postrider_webhook_duration_seconds_count{outcome="succeeded"}', 2],
    ['postrider_inbound_messages_total{outcome="taken"}', 1],
    ['postrider_inbound_messages_total{outcome="bare_line_end"}', 1],
    ['postrider_inspection_duration_seconds_count{kind="mail",outcome="read"}', 1],
    ['postrider_queue_depth{queue="transmit"}', 0],
    ['postrider_ready{check="database"}', 1],
    ['postrider_ready{check="listener"}', 1],
    ["postrider_commit_failures_total", 0],
    ['postrider_turn_failures_total{loop="sweep"}', 0],
  ];
  test.each(COUNTS)("count %s", (series, count) => {
    expect(value(text, series)).toBe(count);
  });

  test("cover commits, the event loop and the process", () => {
    const commits = value(text, "postrider_commit_duration_seconds_count") ?? 0;
    expect(commits).toBeGreaterThan(5);
    expect(value(text, "postrider_commit_writers_sum") ?? 0).toBeGreaterThanOrEqual(commits);
    expect(value(text, "process_resident_memory_bytes") ?? 0).toBeGreaterThan(10_000_000);
  });

  test("contain no address, domain or id, in few series", () => {
    expect(words.every((word) => word.length > 5)).toBe(true);
    expect(text.split("\n").filter((line) => words.some((word) => line.includes(word)))).toEqual([]);
    const series = text.split("\n").filter((line) => /^[a-z]/.test(line));
    expect(series.length).toBeLessThan(600);
  });
});

interface Panel {
  type: string;
  title: string;
  targets?: { expr: string }[];
}

/** Expressions of the dashboard and of the alerts, each with its place. */
async function expressions(): Promise<{ where: string; expr: string }[]> {
  const board = await Bun.file(join(DEPLOY, "grafana.json")).json();
  const panels = (board.panels as Panel[]).filter(({ type }) => type !== "row");
  const shown = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: title, expr })),
  );
  const variables = (board.templating.list as { name: string; type: string; query: { query: string } }[])
    .filter(({ type }) => type === "query")
    .map(({ name, query }) => ({ where: name, expr: query.query }));
  const rules = Bun.YAML.parse(await Bun.file(join(DEPLOY, "alerts.yaml")).text()) as {
    groups: { rules: { alert: string; expr: string }[] }[];
  };
  const alerts = rules.groups.flatMap((group) => group.rules);
  return [...shown, ...variables, ...alerts.map(({ alert, expr }) => ({ where: alert, expr }))];
}

/** Metrics that are served, with the labels of their series. Histograms by the names of their three series. */
function served(): Map<string, Set<string>> {
  const names = new Map<string, Set<string>>([["up", new Set()]]);
  for (const [, name = "", type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
    for (const suffix of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""])
      names.set(`${name}${suffix}`, new Set());
  for (const [, name = "", labels = ""] of text.matchAll(/^([a-z_]+)\{(.*)\} /gm))
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) names.get(name)?.add(label);
  return names;
}

/** Labels that Prometheus adds to each series. */
const ADDED = ["job", "instance"];
const NAME = /\b(?:(?:postrider|process|nodejs)_\w+|up)\b/g;

describe("dashboard and alerts", () => {
  test("use only metrics and labels that are served", async () => {
    const names = served();
    const asked = await expressions();
    expect(asked.length).toBeGreaterThan(40);
    for (const { where, expr } of asked) {
      const found = expr.match(NAME) ?? [];
      expect([where, found.length > 0]).toEqual([where, true]);
      expect([where, found.filter((name) => !names.has(name))]).toEqual([where, []]);
      for (const [, name = "", selector = ""] of expr.matchAll(/(\w+)\{([^}]*)\}/g)) {
        const labels = [...selector.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = ""]) => label);
        const unknown = labels.filter((label) => !ADDED.includes(label) && !names.get(name)?.has(label));
        expect([where, name, unknown]).toEqual([where, name, []]);
      }
    }
  });

  test("a name that is not served would be found", () => {
    expect("rate(postrider_no_such_total[5m])".match(NAME)?.filter((name) => !served().has(name))).toEqual([
      "postrider_no_such_total",
    ]);
  });

  test("use every metric of the service", async () => {
    const all = (await expressions()).map(({ expr }) => expr).join("\n");
    const own = [...text.matchAll(/^# TYPE (postrider_\S+) \S+$/gm)].map(([, name = ""]) => name);
    expect(own.length).toBeGreaterThan(15);
    expect(own.filter((name) => !all.includes(name))).toEqual([]);
  });

  test("the dashboard draws the state of the installation: its checks, its troubles and the share of 5xx", async () => {
    const board = await Bun.file(join(DEPLOY, "grafana.json")).json();
    const drawn = (board.panels as Panel[]).flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    for (const part of ["postrider_health{", "postrider_troubles{", 'status=~"5.."'])
      expect([part, drawn.some((expr) => expr.includes(part))]).toEqual([part, true]);
  });

  test("the dashboard is valid for Grafana 10: unique panel ids on a grid, and a data source to choose", async () => {
    const board = await Bun.file(join(DEPLOY, "grafana.json")).json();
    expect(board).toMatchObject({ title: "Postrider", schemaVersion: 39, uid: "postrider" });
    const ids = board.panels.map(({ id }: { id: number }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { gridPos } of board.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    expect(board.templating.list[0]).toMatchObject({ type: "datasource", query: "prometheus" });
  });

  test("each alert says how long, how bad and what to do", async () => {
    const rules = Bun.YAML.parse(await Bun.file(join(DEPLOY, "alerts.yaml")).text()) as {
      groups: { rules: object[] }[];
    };
    const alerts = rules.groups.flatMap((group) => group.rules);
    expect(alerts).toHaveLength(12);
    for (const alert of alerts)
      expect(alert).toMatchObject({
        for: expect.stringMatching(/^\d+m$/),
        labels: { severity: expect.stringMatching(/^(?:critical|warning)$/) },
        annotations: { summary: expect.any(String), description: expect.any(String) },
      });
  });
});

describe("a scrape", () => {
  test("reads the queues from the database once in five seconds, and works without if it does not answer", async () => {
    const { db, remove } = await testDatabase();
    const clock = manualClock();
    let asked = 0;
    let broken = false;
    const first: typeof db.first = (...query) => {
      asked++;
      return broken ? Promise.reject(new Error("gone")) : db.first(...query);
    };
    const parts = {
      clock,
      db: { ...db, first },
      metrics: openMetrics(),
      connections: () => ({ in: 0, out: 0 }),
      streams: { size: 0 },
      waits: { size: 0 },
      health: async () => ({ status: "ok" as const, checks: [], checkedAt: 0 }),
      lanes: { usual: { connections: 5, messages: 500, rate: 20 }, overrides: new Map() },
    };
    const run = () => (broken ? Promise.reject(new Error("gone")) : Promise.resolve());
    const scrape = openScrape({ ...parts, checks: [{ name: "database", run }] });
    const depth = 'postrider_queue_depth{queue="transmit"}';
    try {
      expect(value(await scrape(), depth)).toBe(0);
      clock.advance(QUEUES_FRESH_MS - 1);
      await scrape();
      expect(asked).toBe(2);
      broken = true;
      clock.advance(1);
      const read = await scrape();
      expect([asked, value(read, depth), value(read, 'postrider_ready{check="database"}')]).toEqual([
        4,
        null,
        0,
      ]);
    } finally {
      await remove();
    }
  });

  test.each(["worker", "smtp"])(
    "works on a process with only the role %s, and so does its health",
    async (role) => {
      const service = await startService({ ROLES: role });
      try {
        const read = await service.metrics();
        expect(value(read, 'postrider_ready{check="database"}')).toBe(1);
        expect((await service.call("GET", "/readyz")).status).toBe(200);
        expect((await service.call("GET", "/v1/emails")).status).toBe(404);
      } finally {
        await service.stop();
      }
    },
  );
});
