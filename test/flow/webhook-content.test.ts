import { beforeEach, describe, expect, test } from "bun:test";
import { EVENT_TYPES } from "../../src/core/messages/events.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, SERVICE_DOMAIN } from "../support/service.ts";
import { webhookService } from "../support/webhook-service.ts";

const scene = webhookService();

/** A key that may make webhooks but read no messages. */
let narrow: string;
beforeEach(async () => {
  const body = { name: "hooks", senderId: await projectId(), scopes: ["webhooks:read", "webhooks:write"] };
  narrow = (await scene.service.call("POST", "/v1/api-keys", body)).body.secret;
});

async function projectId(): Promise<string> {
  const { data } = (await scene.service.call("GET", "/v1/api-keys")).body;
  return data[0].senderId;
}

const callNarrow = (method: string, path: string, body?: unknown) =>
  scene.service.call(method, path, body, { key: narrow });

async function subscribeNarrow(more = {}) {
  const made = await callNarrow("POST", "/v1/webhooks", { url: scene.sink.url, eventTypes: ["*"], ...more });
  expect([made.status, made.body.content]).toEqual([201, false]);
  return made.body.id as string;
}

interface Pushed {
  id: string;
  type: string;
  data: Record<string, Record<string, unknown>>;
}
const pushes = (): Pushed[] => scene.sink.requests.items.map(({ body }) => JSON.parse(body));

/** Simulates a message to a new inbox, and returns the inbox's id. */
async function arrival(): Promise<string> {
  const [inboxId = ""] = await receivingInboxes(scene.service, "in.test", ["desk@in.test"]);
  const body = {
    inboxId,
    from: { email: "ada@client.test" },
    subject: "Secret subject",
    text: "Secret text",
  };
  expect((await scene.service.call("POST", "/v1/inbound/simulate", body)).status).toBe(202);
  return inboxId;
}

/** The details of each event without content. */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  sending: ["attempt"],
  sent: ["mx", "smtpCode", "tls"],
  delivery: ["mx", "smtpCode", "tls"],
  delivery_delayed: ["attempt", "category", "enhancedCode", "mx", "nextAttemptAt", "smtpCode"],
  bounce: ["category", "enhancedCode", "mx", "reason", "smtpCode", "type"],
  complaint: ["feedbackType"],
  rejected: ["reason"],
  rendering_failure: [],
  failed: ["category", "enhancedCode", "mx", "reason", "smtpCode"],
  open: ["first", "ip", "machine", "userAgent"],
  click: ["ip", "machine", "userAgent"],
  unsubscribed: ["how"],
  inbound_received: ["inboxId", "spam", "threadId"],
  inbound_rejected: ["inboxId", "reason"],
};

test("a sample of every type has no content for a webhook of a key that reads no message", async () => {
  const id = await subscribeNarrow();
  for (const type of EVENT_TYPES) await callNarrow("POST", `/v1/webhooks/${id}/test`, { type });
  await scene.sink.requests.reached(EVENT_TYPES.length);
  const shown = pushes().map(({ type, data }) => [type, Object.keys(data[type] ?? {}).sort()]);
  expect(Object.fromEntries(shown)).toEqual(
    Object.fromEntries(EVENT_TYPES.map((type) => [type, SHOWN[type] ?? []])),
  );
  const text = scene.sink.requests.items.map(({ body }) => body).join("\n");
  for (const content of ['Sample"', "Hello", "ada@", "support@", "https://", "5.1.1 No such", "2.0.0"])
    expect([content, text.includes(content)]).toEqual([content, false]);
});

test("an arrival and its replay have no content for such a webhook", async () => {
  const id = await subscribeNarrow({ eventTypes: ["inbound_received"] });
  const inboxId = await arrival();
  const first = await scene.sink.requests.reached(1);
  const { data } = JSON.parse(first.body);
  expect(Object.keys(data).sort()).toEqual(
    ["inbound_received", "messageId", "occurredAt", "senderId", "tags", "testMode"].sort(),
  );
  expect(data.inbound_received).toEqual({
    inboxId,
    threadId: expect.stringMatching(/^thr_/),
    spam: null,
  });
  const log = () => callNarrow("GET", `/v1/webhooks/${id}/deliveries`);
  await until(async () => (await log()).body.data[0].status === "succeeded");
  const rotated = await callNarrow("POST", `/v1/webhooks/${id}/rotate-secret`, {});
  expect(rotated.body.content).toBe(false);
  await callNarrow("POST", `/v1/webhooks/${id}/deliveries/${pushes()[0]?.id}/replay`);
  await scene.sink.requests.reached(2);
  expect(pushes()[1]?.data).toEqual(data);
});

test("outbound mail is reported without the words of other servers, and with its own recipient", async () => {
  await receivingInboxes(scene.service, "in.test", ["desk@in.test"]);
  await subscribeNarrow({ eventTypes: ["bounce"] });
  const email = `bounced@simulator.${SERVICE_DOMAIN}`;
  const cc = [{ email: "other@example.com" }];
  const from = { email: "desk@in.test" };
  await scene.service.call("POST", "/v1/emails", { from, to: [{ email }], cc, subject: "s", text: "t" });
  await scene.sink.requests.reached(1);
  const data = pushes()[0]?.data ?? {};
  expect(data).toMatchObject({ email });
  expect(Object.keys(data.bounce ?? {}).sort()).toEqual([...(SHOWN.bounce ?? [])]);
  expect(JSON.stringify(data)).not.toContain("other@");
});

describe("the right to content", () => {
  test("the right to content cannot be requested or restored by a key without emails:read", async () => {
    const body = { url: scene.sink.url, eventTypes: ["*"], content: true };
    const made = await callNarrow("POST", "/v1/webhooks", body);
    expect([made.status, made.body.error.code, made.body.error.param]).toEqual([
      403,
      "missing_scope",
      "emails:read",
    ]);
    const id = await subscribeNarrow();
    expect((await callNarrow("PATCH", `/v1/webhooks/${id}`, { content: true })).status).toBe(403);
    expect((await scene.service.call("PATCH", `/v1/webhooks/${id}`, { content: true })).body.content).toBe(
      true,
    );
    await arrival();
    await until(async () => pushes().some(({ type }) => type === "inbound_received"));
    expect(pushes().at(-1)?.data.inbound_received).toMatchObject({ text: "Secret text\n" });
  });

  const patches: [what: string, patch: object, content: boolean][] = [
    ["nothing but the switch", { enabled: true }, true],
    ["its own types", { eventTypes: ["inbound_received"] }, true],
    ["other types", { eventTypes: ["*"] }, false],
    ["another URL", { url: "https://elsewhere.example/" }, false],
    ["less", { content: false }, false],
  ];
  test.each(patches)("after a patch of %s by such a key", async (_what, patch, content) => {
    const { id } = await scene.subscribe(["inbound_received"]);
    const patched = await callNarrow("PATCH", `/v1/webhooks/${id}`, patch);
    expect([patched.status, patched.body.content]).toEqual([200, content]);
    const again = await scene.service.call("PATCH", `/v1/webhooks/${id}`, { eventTypes: ["*"] });
    expect(again.body.content).toBe(content);
  });

  test("the right to content is lost if the URL changes: pending deliveries go to the new one without content", async () => {
    scene.sink.answer((request) => new Response(null, { status: request.path === "/new" ? 200 : 500 }));
    const { id } = await scene.subscribe(["inbound_received"], `${scene.sink.url}/old`);
    await arrival();
    await scene.sink.requests.reached(4);
    const url = `${scene.sink.url}/new`;
    expect((await callNarrow("PATCH", `/v1/webhooks/${id}`, { url })).body.content).toBe(false);
    const log = () => callNarrow("GET", `/v1/webhooks/${id}/deliveries`);
    await until(async () => (await log()).body.data[0].status === "failed");
    await callNarrow("POST", `/v1/webhooks/${id}/deliveries/${pushes()[0]?.id}/replay`);
    await scene.sink.requests.reached(5);
    expect(scene.sink.requests.items.at(-1)?.body).not.toContain("Secret");
  });
});
