import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { Orphans } from "../../src/flows/sweep/orphaned-claims.ts";
import { ORPHANS_PAUSE_MS } from "../../src/wiring/workers.ts";
import { startSink } from "../support/https-sink.ts";
import { startMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;

beforeEach(async () => {
  service = await startService();
  await verifiedDomain(service, "sender.test");
});
afterEach(() => service.stop());

test("a claim without running work is freed when it is seen twice, and one with running work is not", async () => {
  const body = {
    from: { email: "a@sender.test" },
    subject: "Hi",
    text: "x",
    scheduledAt: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const [lost, held] = await Promise.all(
    ["lost@one.test", "held@one.test"].map(
      async (email) => (await service.call("POST", "/v1/emails", { ...body, to: [{ email }] })).body.id,
    ),
  );
  const { db } = service.app;
  await db.write([
    {
      sql: "UPDATE recipients SET status = 'sending', attempts = 1, due_at = NULL, claimed_by = 'ins_test'",
      args: [],
    },
  ]);
  const orphans = new Orphans(
    { db, clock: { ...systemClock, after: () => () => undefined } },
    "ins_test",
    (key) => key === `${held}.0`,
  );
  const claimed = async () =>
    (await db.all<{ message_id: string }>("SELECT message_id FROM recipients WHERE claimed_by IS NOT NULL"))
      .map((row) => row.message_id)
      .sort();
  await orphans.turn();
  expect(await claimed()).toEqual([lost, held].sort());
  await orphans.turn();
  expect(await claimed()).toEqual([held]);
  expect((await service.message(lost, "delivered")).recipients[0].attempts).toBe(2);
});

test("a push without running work is freed in the same way", async () => {
  const { db } = service.app;
  await service.call("POST", "/v1/webhooks", { url: "https://hook.test", eventTypes: ["delivery"] });
  const claimed = (id: string) => ({
    sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, status, claimed_by, created_at)
      SELECT ?, id, sender_id, 'delivery', 'pending', 'ins_test', 0 FROM webhooks`,
    args: [id],
  });
  await db.write([claimed("dlv_lost"), claimed("dlv_held")]);
  const orphans = new Orphans({ db, clock: systemClock }, "ins_test", (key) => key === "dlv_held");
  const held = async () =>
    (await db.all<{ id: string }>("SELECT id FROM webhook_deliveries WHERE claimed_by = 'ins_test'"))
      .map(({ id }) => id)
      .sort();
  await orphans.turn();
  expect(await held()).toEqual(["dlv_held", "dlv_lost"]);
  await orphans.turn();
  expect(await held()).toEqual(["dlv_held"]);
});

test("a worker frees its own orphaned claims within seconds, without waiting for its heartbeats", async () => {
  // If this takes over five seconds, it fails. Everything else runs fifty times as fast.
  const after = (ms: number, fire: () => void) => systemClock.after(ms > 5000 ? ms : ms / 50, fire);
  const hurried = await startService({}, { ...systemClock, after });
  try {
    const sent = await hurried.call("POST", "/v1/emails", {
      from: { email: "a@onboarding.mail.test" },
      to: [{ email: "delivered@simulator.mail.test" }],
      subject: "Hi",
      text: "x",
      scheduledAt: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const sql = `UPDATE recipients SET status = 'sending', attempts = 1, due_at = NULL,
      claimed_by = (SELECT id FROM instances)`;
    await hurried.app.db.write([{ sql, args: [] }]);
    expect((await hurried.message(sent.body.id, "delivered")).recipients[0].attempts).toBe(2);
  } finally {
    await hurried.stop();
  }
});

test("a worker leaves running messages and pushes alone, however often it checks while their peers wait", async () => {
  let looks = 0;
  const after = (ms: number, fire: () => void) =>
    systemClock.after(ms > 5000 ? ms : ms / 50, () => {
      if (ms === ORPHANS_PAUSE_MS) looks++;
      fire();
    });
  const [mx, sink] = [startMx(), startSink()];
  const [taken, heard] = [Promise.withResolvers<string>(), Promise.withResolvers<Response>()];
  const handed = Promise.withResolvers<void>();
  mx.set({
    ".": () => {
      handed.resolve();
      return taken.promise;
    },
  });
  sink.answer(() => heard.promise);
  const env = { DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port) };
  const hurried = await startService(env, { ...systemClock, after });
  try {
    await verifiedDomain(hurried, "sender.test");
    hurried.dns.add({ name: "one.test", type: "A", data: "127.0.0.1" });
    const { body: webhook } = await hurried.call("POST", "/v1/webhooks", {
      url: sink.url,
      eventTypes: ["delivery"],
    });
    await hurried.call("POST", `/v1/webhooks/${webhook.id}/test`, {});
    const { body: sent } = await hurried.call("POST", "/v1/emails", {
      from: { email: "a@sender.test" },
      to: [{ email: "a@one.test" }],
      subject: "Hi",
      text: "x",
    });
    await Promise.all([handed.promise, sink.requests.reached(1)]);
    const before = looks;
    await until(() => looks >= before + 4);
    const claims = await hurried.app.db.all(
      `SELECT status FROM recipients WHERE claimed_by IS NOT NULL
       UNION ALL SELECT status FROM webhook_deliveries WHERE claimed_by IS NOT NULL`,
    );
    expect(claims).toEqual([{ status: "sending" }, { status: "pending" }]);
    taken.resolve("250 2.0.0 taken");
    heard.resolve(new Response());
    expect((await hurried.message(sent.id, "delivered")).recipients[0].attempts).toBe(1);
    expect(mx.messages.items).toHaveLength(1);
  } finally {
    taken.resolve("250 2.0.0 taken");
    heard.resolve(new Response());
    await hurried.stop();
    await sink.stop();
    mx.stop();
  }
});
