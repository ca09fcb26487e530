import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { startService, type TestService } from "../support/service.ts";

let service: TestService;
let sink: HttpsSink;

const FAST = { WEBHOOK_RETRY_SECONDS: "0,0.02,0.02,0.02" };

beforeEach(async () => {
  sink = startSink();
  service = await startService(FAST);
});
afterEach(async () => {
  await service.stop();
  await sink.stop();
});

async function subscribe(eventTypes: string[]): Promise<{ id: string }> {
  const made = await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes });
  expect(made.status).toBe(201);
  return made.body;
}

/** What the data of each type has under its own name; types not named here have nothing. */
const DETAILS: [type: string, details: string[]][] = [
  ["bounce", ["type", "category", "smtpCode", "enhancedCode", "diagnostic", "mx"]],
  ["open", ["ip", "userAgent", "first", "machine"]],
  ["click", ["url", "ip", "userAgent", "machine"]],
  ["delivery", ["mx", "tls", "smtpCode", "response"]],
  ["delivery_delayed", ["attempt", "nextAttemptAt", "smtpCode", "diagnostic"]],
  [
    "inbound_received",
    [...["inboxId", "threadId", "from", "to", "subject", "text", "html", "truncated", "attachments"], "auth"],
  ],
  ["inbound_rejected", ["reason", "inboxId", "from", "to", "subject", "auth"]],
  ["rejected", ["reason"]],
  ["failed", ["reason"]],
  ["rendering_failure", ["reason"]],
  ["complaint", ["feedbackType"]],
];

test.each(DETAILS)("a sample of %s has the details of a real one", async (type, details) => {
  const { id } = await subscribe(["*"]);
  await service.call("POST", `/v1/webhooks/${id}/test`, { type });
  const { data } = JSON.parse((await sink.requests.reached(1)).body);
  for (const detail of details) expect(data[type]).toHaveProperty(detail);
  expect(Object.hasOwn(data, "email")).toBe(!type.startsWith("inbound_"));
});

test("the delay before the first attempt is waited for, as those before the others", async () => {
  await service.restart({ ...FAST, WEBHOOK_RETRY_SECONDS: "1.5,0.02" });
  const { id } = await subscribe(["delivery"]);
  const { body } = await service.call("POST", `/v1/webhooks/${id}/test`);
  const request = await sink.requests.reached(1);
  const [delivery] = (await service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data;
  expect(delivery).toMatchObject({ id: body.id, attempts: 1 });
  expect(Date.parse(delivery.lastAttemptAt) - Date.parse(delivery.createdAt)).toBeGreaterThanOrEqual(1500);
  expect(JSON.parse(request.body).id).toBe(body.id);
});

test("of an answer no part of a character is kept", async () => {
  const { id } = await subscribe(["delivery"]);
  sink.answer(() => new Response(`x${"é".repeat(4096)}`));
  await service.call("POST", `/v1/webhooks/${id}/test`);
  const read = async () => (await service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data[0];
  while ((await read()).status === "pending") await Bun.sleep(5);
  expect((await read()).response).toBe(`x${"é".repeat(2047)}`);
});

describe("an attempt that fails late", () => {
  /** Holds the first request, lets `meanwhile` happen, and answers it then. Returns the webhook after it. */
  async function late(status: number, meanwhile: (id: string) => Promise<unknown>) {
    const { id } = await subscribe(["delivery"]);
    await service.app.db.write([{ sql: "UPDATE webhooks SET failing_since = 1", args: [] }]);
    const held = Promise.withResolvers<Response>();
    let requests = 0;
    sink.answer(() => (requests++ === 0 ? held.promise : new Response(null, { status: 200 })));
    const { body } = await service.call("POST", `/v1/webhooks/${id}/test`);
    await sink.requests.reached(1);
    await meanwhile(id);
    held.resolve(new Response(null, { status }));
    const read = async () =>
      (await service.call("GET", `/v1/webhooks/${id}/deliveries`)).body.data.find(
        (one: { id: string }) => one.id === body.id,
      );
    while ((await read()).httpStatus !== status) await Bun.sleep(5);
    return (await service.call("GET", `/v1/webhooks/${id}`)).body;
  }

  test("switches off a webhook that has only failed", async () => {
    expect(await late(500, async () => undefined)).toMatchObject({
      enabled: false,
      disabledReason: expect.stringContaining("failed"),
    });
  });

  test("does not where another has succeeded meanwhile", async () => {
    const succeed = async (id: string) => {
      await service.call("POST", `/v1/webhooks/${id}/test`);
      const failing = () =>
        service.app.db.first<{ failing_since: number | null }>("SELECT failing_since FROM webhooks");
      while ((await failing())?.failing_since !== null) await Bun.sleep(5);
    };
    expect(await late(500, succeed)).toMatchObject({ enabled: true, disabledReason: null });
  });

  test("with 410 from where the webhook no longer goes does not either", async () => {
    const move = (id: string) => service.call("PATCH", `/v1/webhooks/${id}`, { url: `${sink.url}/moved` });
    expect(await late(410, move)).toMatchObject({ enabled: true, disabledReason: null });
  });
});
