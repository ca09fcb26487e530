import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { replay, sendSample } from "../../src/flows/webhooks/sample.ts";
import { until } from "../support/poll.ts";
import { FAST_PUSHES, webhookService } from "../support/webhook-service.ts";

const scene = webhookService();
const { subscribe } = scene;

/** The type-specific details of each event's data. Types that are not listed have none. */
const DETAILS: [type: string, details: string[]][] = [
  ["bounce", ["type", "category", "smtpCode", "enhancedCode", "diagnostic", "mx"]],
  ["open", ["ip", "userAgent", "first", "machine"]],
  ["click", ["url", "ip", "userAgent", "machine"]],
  ["delivery", ["mx", "tls", "smtpCode", "response"]],
  ["delivery_delayed", ["attempt", "nextAttemptAt", "smtpCode", "diagnostic"]],
  [
    "inbound_received",
    ["inboxId", "threadId", "from", "to", "subject", "text", "html", "truncated", "attachments", "auth"],
  ],
  ["inbound_rejected", ["reason", "inboxId", "from", "to", "subject", "auth"]],
  ["rejected", ["reason"]],
  ["failed", ["reason"]],
  ["rendering_failure", ["reason"]],
  ["complaint", ["feedbackType"]],
];

test.each(DETAILS)("a sample of %s has the details of a real one", async (type, details) => {
  const { id } = await subscribe(["*"]);
  await scene.service.call("POST", `/v1/webhooks/${id}/test`, { type });
  const { data } = JSON.parse((await scene.sink.requests.reached(1)).body);
  for (const detail of details) expect(data[type]).toHaveProperty(detail);
  expect(Object.hasOwn(data, "email")).toBe(!type.startsWith("inbound_"));
});

test("the delay before the first attempt applies, like those before later ones", async () => {
  await scene.service.restart({ ...FAST_PUSHES, WEBHOOK_RETRY_SECONDS: "1.5,0.02" });
  const { id } = await subscribe(["delivery"]);
  const { body } = await scene.service.call("POST", `/v1/webhooks/${id}/test`);
  const request = await scene.sink.requests.reached(1);
  const [delivery] = (await scene.service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data;
  expect(delivery).toMatchObject({ id: body.id, attempts: 1 });
  expect(Date.parse(delivery.lastAttemptAt) - Date.parse(delivery.createdAt)).toBeGreaterThanOrEqual(1500);
  expect(JSON.parse(request.body).id).toBe(body.id);
});

test("an endpoint has the time in the settings, and may fail only that long", async () => {
  const time = { WEBHOOK_TIMEOUT_SECONDS: "3", WEBHOOK_DISABLE_AFTER_SECONDS: "0.3" };
  await scene.service.restart({ ...time, WEBHOOK_RETRY_SECONDS: "0,0.5,60" });
  const { id } = await subscribe(["delivery"]);
  scene.sink.answer(async () => {
    await Bun.sleep(1500);
    return new Response();
  });
  await scene.service.call("POST", `/v1/webhooks/${id}/test`);
  const webhook = async () => (await scene.service.call("GET", `/v1/webhooks/${id}`)).body;
  await until(async () => !(await webhook()).enabled);
  expect(scene.sink.requests.items).toHaveLength(2);
  const [delivery] = (await scene.service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data;
  expect(delivery).toMatchObject({ attempts: 2, error: "timeout" });
});

describe.each([
  ["deleted", "DELETE", undefined, "not_found"],
  ["switched off", "PATCH", { enabled: false }, "conflict"],
] as const)("for a webhook that is %s during the request, there is", (_, method, body, type) => {
  test("no sample", async () => {
    const webhook = await changed();
    const asked = sendSample(deps(), webhook, "delivery", () => []);
    expect(await asked.catch((error) => error.type)).toBe(type);
    expect(await logged(webhook.id)).toBe(0);
  });

  test("no replay, and the client is told why", async () => {
    const webhook = await changed();
    const asked = replay(deps(), webhook, `dlv_${"0".repeat(26)}`, []);
    expect(await asked.catch(({ type, message }) => [type, /webhook/.test(message)])).toEqual([type, true]);
  });

  const deps = () => ({ db: scene.service.app.db, queue: scene.service.app.queue, clock: systemClock });

  /** A webhook as it was read, before the change. */
  async function changed() {
    const { id } = await subscribe(["delivery"]);
    const { body: sender } = await scene.service.call("GET", "/v1/senders", undefined, {
      key: scene.service.accountKey,
    });
    await scene.service.call(method, `/v1/webhooks/${id}`, body);
    return { id, senderId: sender.data[0].id, enabled: true, eventTypes: ["delivery"] };
  }
  const logged = async (id: string) =>
    (await scene.service.app.db.all("SELECT 1 FROM webhook_deliveries WHERE webhook_id = ?", [id])).length;
});

test("a push states that it is JSON, and who sends it", async () => {
  const { id } = await subscribe(["delivery"]);
  await scene.service.call("POST", `/v1/webhooks/${id}/test`);
  const { headers } = await scene.sink.requests.reached(1);
  expect(headers.get("content-type")).toBe("application/json");
  expect(headers.get("user-agent")).toMatch(/^Postrider-Webhooks\/\d/);
});

test.each([
  [200, "succeeded"],
  [299, "succeeded"],
  [300, "failed"],
  [304, "failed"],
])("an answer of %p ends a delivery as %s", async (answer, status) => {
  const { id } = await subscribe(["delivery"]);
  scene.sink.answer(answer);
  await scene.service.call("POST", `/v1/webhooks/${id}/test`);
  const read = async () => (await scene.service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data[0];
  await until(async () => (await read()).status !== "pending");
  expect(await read()).toMatchObject({ status, httpStatus: answer });
});

test("a cut answer never contains part of a character", async () => {
  const { id } = await subscribe(["delivery"]);
  scene.sink.answer(() => new Response(`x${"é".repeat(4096)}`));
  await scene.service.call("POST", `/v1/webhooks/${id}/test`);
  const read = async () => (await scene.service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data[0];
  await until(async () => (await read()).status !== "pending");
  expect((await read()).response).toBe(`x${"é".repeat(2047)}`);
});

test.each([null, 1])(
  "an attempt that fails on our side does not count against the endpoint (%p)",
  async (since) => {
    const { id } = await subscribe(["delivery"]);
    await scene.service.app.db.write([
      { sql: "UPDATE webhooks SET secret = 'unreadable', failing_since = ?", args: [since] },
    ]);
    await scene.service.call("POST", `/v1/webhooks/${id}/test`);
    const log = async () => (await scene.service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data[0];
    await until(async () => (await log()).status === "failed");
    expect(await log()).toMatchObject({ error: "internal error", httpStatus: null });
    expect(await scene.service.app.db.first("SELECT enabled, failing_since FROM webhooks")).toEqual({
      enabled: 1,
      failing_since: since,
    });
  },
);

describe("an attempt that ends late", () => {
  /** Holds the first request, runs `meanwhile`, and answers it then. Returns the webhook after it. */
  async function late(
    status: number,
    meanwhile: (id: string) => Promise<unknown>,
    failingSince: number | null = 1,
  ) {
    const { id } = await subscribe(["delivery"]);
    await scene.service.app.db.write([
      { sql: "UPDATE webhooks SET failing_since = ?", args: [failingSince] },
    ]);
    const held = Promise.withResolvers<Response>();
    let requests = 0;
    scene.sink.answer(() => (requests++ === 0 ? held.promise : new Response(null, { status: 200 })));
    const { body } = await scene.service.call("POST", `/v1/webhooks/${id}/test`);
    await scene.sink.requests.reached(1);
    await meanwhile(id);
    held.resolve(new Response(null, { status }));
    const read = async () =>
      (await scene.service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data.find(
        (one: { id: string }) => one.id === body.id,
      );
    await until(async () => (await read()).httpStatus === status);
    return (await scene.service.call("GET", `/v1/webhooks/${id}`)).body;
  }

  test("disables a webhook that has only failed", async () => {
    expect(await late(500, async () => undefined)).toMatchObject({
      enabled: false,
      disabledReason: expect.stringContaining("failed"),
    });
  });

  test("an attempt that ends late does not disable it if another attempt has succeeded in the meantime", async () => {
    const succeed = async (id: string) => {
      await scene.service.call("POST", `/v1/webhooks/${id}/test`);
      const failing = () =>
        scene.service.app.db.first<{ failing_since: number | null }>("SELECT failing_since FROM webhooks");
      await until(async () => (await failing())?.failing_since === null);
    };
    expect(await late(500, succeed)).toMatchObject({ enabled: true, disabledReason: null });
  });

  test("a late 200 ends a series of failures that began in the meantime", async () => {
    const fail = () =>
      scene.service.app.db.write([{ sql: "UPDATE webhooks SET failing_since = 7", args: [] }]);
    await late(200, fail, null);
    const row = await scene.service.app.db.first("SELECT failing_since FROM webhooks");
    expect(row).toEqual({ failing_since: null });
  });

  test("a late 410 from a former URL does not disable the webhook either", async () => {
    const move = (id: string) =>
      scene.service.call("PATCH", `/v1/webhooks/${id}`, { url: `${scene.sink.url}/moved` });
    expect(await late(410, move)).toMatchObject({ enabled: true, disabledReason: null });
  });

  test("a late 410 does not disable a webhook that was enabled again in the meantime", async () => {
    const revive = async (id: string) => {
      for (const enabled of [false, true])
        await scene.service.call("PATCH", `/v1/webhooks/${id}`, { enabled });
    };
    expect(await late(410, revive)).toMatchObject({ enabled: true, disabledReason: null });
  });

  test.each([
    [500, null, null],
    [200, 1, 7],
  ])("a late %d says nothing about the current URL", async (status, before, after) => {
    const move = async (id: string) => {
      await scene.service.call("PATCH", `/v1/webhooks/${id}`, { url: `${scene.sink.url}/moved` });
      await scene.service.app.db.write([{ sql: "UPDATE webhooks SET failing_since = ?", args: [after] }]);
    };
    await late(status, move, before);
    const row = await scene.service.app.db.first("SELECT failing_since FROM webhooks");
    expect(row).toEqual({ failing_since: after });
  });
});
