import { describe, expect, test } from "bun:test";
import Stripe from "stripe";
import { MAX_DELIVERIES_IN_WRITE } from "../../src/flows/webhooks/announce.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, verifiedDomain } from "../support/service.ts";
import { webhookService } from "../support/webhook-service.ts";

const scene = webhookService();
const { subscribe } = scene;

const send = (to = "a@one.test") =>
  scene.service.send({ from: "a@sender.test", to, tags: [{ name: "k", value: "v" }] });

interface PushedEvent {
  id: string;
  type: string;
  createdAt: string;
  data: Record<string, unknown>;
}

/** Verifies a delivery as a customer would, with an independent library for the same kind of signature. */
async function verified(body: string, signature: string, secret: string): Promise<PushedEvent> {
  return (await Stripe.webhooks.constructEventAsync(body, signature, secret)) as unknown as PushedEvent;
}

test("an independent implementation accepts the signature of a delivery, and of no altered one", async () => {
  await verifiedDomain(scene.service, "sender.test");
  const { signingSecret, id } = await subscribe(["delivery"]);
  const messageId = await send();
  const request = await scene.sink.requests.reached(1);
  const signature = request.headers.get("Service-Signature") ?? "";
  const event = await verified(request.body, signature, signingSecret);
  expect(event.id).toMatch(/^dlv_/);
  expect(event.type).toBe("delivery");
  expect(event.data).toMatchObject({
    messageId,
    email: "a@one.test",
    tags: [{ name: "k", value: "v" }],
    delivery: { mx: "capture" },
  });
  expect(String(Date.parse(event.createdAt) / 1000)).toBe(/^t=(\d+),/.exec(signature)?.[1] ?? "");
  const altered = request.body.replace("delivery", "deliverY");
  await expect(verified(altered, signature, signingSecret)).rejects.toThrow("No signatures found");
  await expect(verified(request.body, signature, `${signingSecret}x`)).rejects.toThrow("No signatures found");
  expect((await scene.service.call("GET", `/v1/webhooks/${id}`)).body.signingSecret).toBe("");
});

test("each step of a message makes one delivery for each subscribed event", async () => {
  await verifiedDomain(scene.service, "sender.test");
  await subscribe(["*"]);
  await send();
  await scene.sink.requests.reached(4);
  expect(scene.sink.requests.items.map((request) => JSON.parse(request.body).type).sort()).toEqual([
    "accepted",
    "delivery",
    "queued",
    "sending",
  ]);
});

test("a failing endpoint is retried with the same id and a new signature", async () => {
  await verifiedDomain(scene.service, "sender.test");
  const { signingSecret } = await subscribe(["delivery"]);
  scene.sink.answer(500, 503, 200);
  await send();
  await scene.sink.requests.reached(3);
  const events = await Promise.all(
    scene.sink.requests.items.map(({ body, headers }) =>
      verified(body, headers.get("Service-Signature") ?? "", signingSecret),
    ),
  );
  expect(new Set(events.map((event) => event.id)).size).toBe(1);
});

test("after the last attempt of the schedule the delivery is given up", async () => {
  await verifiedDomain(scene.service, "sender.test");
  await subscribe(["delivery"]);
  scene.sink.answer(500);
  await send();
  await scene.sink.requests.reached(4);
  const status = async () =>
    (await scene.service.app.db.first<{ status: string }>("SELECT status FROM webhook_deliveries"))?.status;
  await until(async () => (await status()) !== "pending");
  expect(await status()).toBe("failed");
  expect(scene.sink.requests.items.length).toBe(4);
});

test("410 disables the webhook with a reason", async () => {
  await verifiedDomain(scene.service, "sender.test");
  const { id } = await subscribe(["delivery"]);
  scene.sink.answer(410);
  await send();
  await scene.sink.requests.reached(1);
  const read = async () => (await scene.service.call("GET", `/v1/webhooks/${id}`)).body;
  await until(async () => !(await read()).enabled);
  expect((await read()).disabledReason).toContain("410");
});

test("a disabled webhook gets nothing, an enabled one gets events again", async () => {
  await verifiedDomain(scene.service, "sender.test");
  const { id } = await subscribe(["delivery"]);
  await scene.service.call("PATCH", `/v1/webhooks/${id}`, { enabled: false });
  await scene.service.message(await send(), "delivered");
  await scene.service.call("PATCH", `/v1/webhooks/${id}`, { enabled: true });
  const heard = await send("b@one.test");
  const request = await scene.sink.requests.reached(1);
  expect(JSON.parse(request.body).data.messageId).toBe(heard);
});

test("another project's events are not pushed", async () => {
  await verifiedDomain(scene.service, "sender.test");
  const other = await scene.service.call(
    "POST",
    "/v1/senders",
    { name: "Other" },
    { key: scene.service.accountKey },
  );
  const foreign = await scene.service.call(
    "POST",
    "/v1/webhooks",
    { url: `${scene.sink.url}/foreign`, eventTypes: ["*"] },
    { key: scene.service.accountKey, headers: { "X-Service-Product": other.body.id } },
  );
  expect(foreign.status).toBe(201);
  await subscribe(["delivery"], `${scene.sink.url}/own`);
  await scene.service.message(await send(), "delivered");
  await scene.sink.requests.reached(1);
  expect(scene.sink.requests.items.map((request) => request.path)).toEqual(["/own"]);
});

test("an arriving message is pushed with its body, thread and inbox", async () => {
  const [inboxId] = await receivingInboxes(scene.service, "in.test", ["support@in.test"]);
  const { signingSecret } = await subscribe(["inbound_received"]);
  const child = Bun.spawn(
    [
      "swaks",
      "--server",
      `127.0.0.1:${scene.service.smtpPort}`,
      "--from",
      "ada@client.test",
      "--to",
      "support@in.test",
      "--body",
      "Hello",
    ],
    { stdout: "ignore" },
  );
  expect(await child.exited).toBe(0);
  const request = await scene.sink.requests.reached(1);
  const event = await verified(request.body, request.headers.get("Service-Signature") ?? "", signingSecret);
  expect(event.data).toMatchObject({
    inbound_received: {
      inboxId,
      from: { email: "ada@client.test" },
      text: expect.stringMatching(/^Hello\n+$/),
      html: null,
      truncated: false,
      attachments: [],
    },
  });
});

describe("the delivery log", () => {
  const log = async (id: string) => (await scene.service.call("GET", `/v1/webhooks/${id}/deliveries`)).body;
  const over = async (id: string) => {
    for (;;) {
      const { data } = await log(id);
      if (data.length > 0 && data[0].status !== "pending") return data;
      await Bun.sleep(5);
    }
  };

  test("the delivery log shows the endpoint's answers, and a replay pushes the same id again", async () => {
    await verifiedDomain(scene.service, "sender.test");
    const { id } = await subscribe(["delivery"]);
    scene.sink.answer(() => new Response("no thanks", { status: 400 }));
    const messageId = await send();
    const [failed] = await over(id);
    expect(failed).toMatchObject({
      type: "delivery",
      messageId,
      status: "failed",
      attempts: 4,
      httpStatus: 400,
      response: "no thanks",
      nextAttemptAt: null,
    });
    scene.sink.answer(200);
    const replayed = await scene.service.call("POST", `/v1/webhooks/${id}/deliveries/${failed.id}/replay`);
    expect(replayed.status).toBe(202);
    const [done] = await over(id);
    expect(done).toMatchObject({ id: failed.id, status: "succeeded", attempts: 1, httpStatus: 200 });
    expect(JSON.parse(scene.sink.requests.items.at(-1)?.body ?? "").id).toBe(failed.id);
  });

  test("the delivery log of a foreign or absent webhook or delivery is 404", async () => {
    const { id } = await subscribe(["delivery"]);
    for (const path of [`whk_${"0".repeat(26)}/deliveries`, "x/deliveries"])
      expect((await scene.service.call("GET", `/v1/webhooks/${path}`)).status).toBe(404);
    expect(
      (await scene.service.call("POST", `/v1/webhooks/${id}/deliveries/dlv_${"0".repeat(26)}/replay`)).status,
    ).toBe(404);
    expect((await log(id)).data).toEqual([]);
  });

  test("a sample is signed and flagged like a real event of its type", async () => {
    const { id, signingSecret } = await subscribe(["open", "bounce"]);
    const first = await scene.service.call("POST", `/v1/webhooks/${id}/test`);
    expect(first.body).toMatchObject({ type: "open", testMode: true });
    const named = await scene.service.call("POST", `/v1/webhooks/${id}/test`, { type: "bounce" });
    expect(named.body.type).toBe("bounce");
    await scene.sink.requests.reached(2);
    for (const { body, headers } of scene.sink.requests.items) {
      const event = await verified(body, headers.get("Service-Signature") ?? "", signingSecret);
      expect(event.data).toMatchObject({ testMode: true });
    }
    await scene.service.call("PATCH", `/v1/webhooks/${id}`, { enabled: false });
    expect((await scene.service.call("POST", `/v1/webhooks/${id}/test`)).status).toBe(409);
    expect((await scene.service.call("POST", `/v1/webhooks/${id}/test`, { type: "nonsense" })).status).toBe(
      422,
    );
  });
});

test("a batch of more deliveries than a write makes reaches every webhook, each event once", async () => {
  const [messages, endpoints] = [100, 3];
  expect(messages * endpoints * 2).toBeGreaterThan(MAX_DELIVERIES_IN_WRITE);
  await verifiedDomain(scene.service, "sender.test");
  const paths = Array.from({ length: endpoints }, (_, at) => `/${at}`);
  for (const path of paths) await subscribe(["accepted", "queued"], `${scene.sink.url}${path}`);
  const emails = Array.from({ length: messages }, (_, at) => ({
    from: { email: "a@sender.test" },
    to: [{ email: `r${at}@one.test` }],
    subject: "Hi",
    text: "x",
  }));
  const { body } = await scene.service.call("POST", "/v1/emails/batch", { emails });
  const wanted = body.data.flatMap(({ id }: { id: string }) => [`${id} accepted`, `${id} queued`]).sort();
  await scene.sink.requests.reached(wanted.length * endpoints);
  for (const path of paths) {
    const pushed = scene.sink.requests.items.filter((request) => request.path === path);
    const told = pushed.map((request) => JSON.parse(request.body));
    expect(told.map(({ type, data }) => `${data.messageId} ${type}`).sort()).toEqual(wanted);
  }
});

describe("an endpoint that hangs", () => {
  test("an endpoint that hangs delays no other", async () => {
    await verifiedDomain(scene.service, "sender.test");
    const held: (() => void)[] = [];
    scene.sink.answer((request) =>
      request.path.startsWith("/hangs")
        ? new Promise<Response>((resolve) => held.push(() => resolve(new Response(null, { status: 200 }))))
        : new Response(null, { status: 200 }),
    );
    await subscribe(["*"], `${scene.sink.url}/hangs`);
    await subscribe(["delivery"], `${scene.sink.url}/works`);
    for (let at = 0; at < 10; at++) await send(`r${at}@one.test`);
    while (scene.sink.requests.items.filter((request) => request.path === "/works").length < 10)
      await scene.sink.requests.reached(scene.sink.requests.items.length + 1);
    for (const release of held) release();
  });
});
