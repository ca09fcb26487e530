import { expect, test } from "bun:test";
import { EVENT_TYPES } from "../../src/core/messages/events.ts";
import { until } from "../support/poll.ts";
import { faultsOf, undocumentedIn } from "../support/json-schema.ts";
import { type Document, webhookSchemaOf } from "../support/openapi-document.ts";
import { receivingInboxes, SERVICE_DOMAIN } from "../support/service.ts";
import { webhookService } from "../support/webhook-service.ts";

const scene = webhookService();

async function reference(): Promise<(pushed: string) => string[]> {
  const document: Document = (await scene.service.call("GET", "/docs/json")).body;
  const schema = webhookSchemaOf(document);
  return (pushed) => {
    const event: unknown = JSON.parse(pushed);
    return [...faultsOf(document, schema, event), ...undocumentedIn(document, schema, event)];
  };
}

/** Faults of the pushes by the reference, once each of the types has come. */
async function faultsOnceCame(types: readonly string[]): Promise<string[]> {
  const faults = await reference();
  const pushed = () => scene.sink.requests.items.map(({ body }) => body);
  const came = () => new Set(pushed().map((body): string => JSON.parse(body).type));
  await until(async () => types.every((type) => came().has(type)));
  return pushed().flatMap(faults);
}

test("a sample of every type fits the reference", async () => {
  const { id } = await scene.subscribe(["*"]);
  for (const type of EVENT_TYPES) await scene.service.call("POST", `/v1/webhooks/${id}/test`, { type });
  expect(await faultsOnceCame(EVENT_TYPES)).toEqual([]);
});

test("pushes about real messages fit the reference", async () => {
  const { service } = scene;
  const [inboxId] = await receivingInboxes(service, "in.test", ["desk@in.test"]);
  await scene.subscribe(["*"]);
  const mail = {
    from: { email: "desk@in.test" },
    subject: "s",
    text: "t",
    tags: [{ name: "a", value: "b" }],
  };
  const send = async (to: string, more = {}) => {
    const sent = await service.call("POST", "/v1/emails", { ...mail, to: [{ email: to }], ...more });
    expect(sent.status).toBe(202);
    return sent.body.id;
  };
  for (const name of ["bounced", "complained", "delayed", "rejected"])
    await send(`${name}@simulator.${SERVICE_DOMAIN}`);
  const hour = new Date(Date.now() + 3_600_000).toISOString();
  const canceled = await send("ada@example.com", { scheduledAt: hour });
  await service.call("POST", `/v1/emails/${canceled}/cancel`);
  const template = { name: "t", subject: "s", text: "{% for a in (1..100000000) %}{% endfor %}" };
  const { id: templateId } = (await service.call("POST", "/v1/templates", template)).body;
  await send("ada@example.com", { templateId, text: undefined });
  await service.call("POST", "/v1/inbound/simulate", {
    inboxId,
    text: "x",
    attachments: [{ filename: "a.txt", content: "aGk=" }],
  });
  const types = [
    "accepted",
    "queued",
    "sending",
    "delivery",
    "bounce",
    "complaint",
    "delivery_delayed",
    "rejected",
    "failed",
    "rendering_failure",
    "inbound_received",
  ];
  expect(await faultsOnceCame(types)).toEqual([]);
});
