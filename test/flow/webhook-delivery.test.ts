import { describe, expect, test } from "bun:test";
import { MAX_LOGGED_ATTEMPTS } from "../../src/store/webhooks/delivery-results.ts";
import { until } from "../support/poll.ts";
import { webhookService } from "../support/webhook-service.ts";

const scene = webhookService();

const detail = async (webhookId: string, id: string, key = scene.service.projectKey) =>
  scene.service.call("GET", `/v1/webhooks/${webhookId}/deliveries/${id}`, undefined, { key });

/** Waits until a delivery has ended. */
async function ended(webhookId: string, id: string) {
  let body = (await detail(webhookId, id)).body;
  await until(async () => {
    body = (await detail(webhookId, id)).body;
    return body.status !== "pending";
  });
  return body;
}

describe("the log of a webhook delivery", () => {
  test("the log of a webhook delivery has every attempt and the body of the last one", async () => {
    const { id } = await scene.subscribe(["bounce"]);
    let tries = 0;
    scene.sink.answer(async () =>
      ++tries < 3 ? new Response(`no ${"x".repeat(1000)}`, { status: 503 }) : new Response("yes"),
    );
    const sample = (await scene.service.call("POST", `/v1/webhooks/${id}/test`)).body;
    const { attemptLog, request, ...delivery } = await ended(id, sample.id);
    expect(delivery).toMatchObject({ id: sample.id, status: "succeeded", attempts: 3, response: "yes" });
    expect(attemptLog).toMatchObject([
      { httpStatus: 503, response: `no ${"x".repeat(509)}`, error: null },
      { httpStatus: 503, error: null },
      { httpStatus: 200, response: "yes", error: null },
    ]);
    expect(attemptLog.at(-1).at).toBe(delivery.lastAttemptAt);
    await scene.sink.requests.reached(3);
    expect(request).toEqual({
      url: `${scene.sink.url}/`,
      body: scene.sink.requests.items.at(-1)?.body ?? "",
    });
  });

  test("the log of a webhook delivery keeps the attempts before a replay, and the last twenty of many", async () => {
    const { id } = await scene.subscribe(["bounce"]);
    const sample = (await scene.service.call("POST", `/v1/webhooks/${id}/test`)).body;
    expect((await ended(id, sample.id)).attemptLog).toHaveLength(1);
    await scene.service.call("POST", `/v1/webhooks/${id}/deliveries/${sample.id}/replay`);
    await scene.sink.requests.reached(2);
    expect((await ended(id, sample.id)).attemptLog).toHaveLength(2);
    for (let replays = 3; replays <= MAX_LOGGED_ATTEMPTS + 1; replays++) {
      await scene.service.call("POST", `/v1/webhooks/${id}/deliveries/${sample.id}/replay`);
      await scene.sink.requests.reached(replays);
      await ended(id, sample.id);
    }
    expect((await ended(id, sample.id)).attemptLog).toHaveLength(MAX_LOGGED_ATTEMPTS);
  });

  test("the log of a webhook delivery shows the error of an attempt without an answer", async () => {
    await scene.service.restart({ WEBHOOK_RETRY_SECONDS: "0", ALLOW_PRIVATE_WEBHOOKS: "1" });
    const { id } = await scene.subscribe(["bounce"], "http://127.0.0.1:1/");
    const sample = (await scene.service.call("POST", `/v1/webhooks/${id}/test`)).body;
    expect((await ended(id, sample.id)).attemptLog).toMatchObject([
      { httpStatus: null, response: null, error: expect.stringContaining("ECONNREFUSED") },
    ]);
  });

  test("the log of a webhook delivery shows no content to a key that may not read messages, and no body once the message is gone", async () => {
    const { id } = await scene.subscribe(["delivery"]);
    const sent = await scene.service.call("POST", "/v1/emails", {
      from: "hello@onboarding.mail.test",
      to: "owner@example.com",
      subject: "Hi",
      text: "Hello",
    });
    const { id: delivery } = JSON.parse((await scene.sink.requests.reached(1)).body);
    const { project } = (await scene.service.call("GET", "/v1/me")).body;
    const wanted = { name: "narrow", senderId: project.id, scopes: ["webhooks:read"] };
    const key = (await scene.service.call("POST", "/v1/api-keys", wanted)).body.secret;
    const { data } = JSON.parse((await ended(id, delivery)).request.body);
    expect(data).toMatchObject({ messageId: sent.body.id, delivery: { response: expect.any(String) } });
    const narrow = JSON.parse((await detail(id, delivery, key)).body.request.body).data;
    expect(narrow.messageId).toBe(sent.body.id);
    expect(narrow.delivery).not.toHaveProperty("response");
    await scene.service.app.db.write([
      { sql: "DELETE FROM events WHERE message_id = ?", args: [sent.body.id] },
    ]);
    expect((await detail(id, delivery)).body).toMatchObject({ status: "succeeded", request: { body: null } });
  });
});

test("a delivery of another webhook is 404", async () => {
  const [one, other] = [await scene.subscribe(["bounce"]), await scene.subscribe(["bounce"])];
  const sample = (await scene.service.call("POST", `/v1/webhooks/${one.id}/test`)).body;
  expect((await detail(other.id, sample.id)).status).toBe(404);
  expect((await detail(one.id, "dlv_none")).status).toBe(404);
});
