import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { type DiskSpace, isLow, SPACE_FRESH_MS, watchSpace } from "../../src/flows/free-space.ts";
import { startSink } from "../support/https-sink.ts";
import { deliver, delivered, smtpSession } from "../support/mail-in.ts";
import { manualClock } from "../support/manual-clock.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

const MIB = 1024 ** 2;
const ROOMY: DiskSpace = { free: 50_000 * MIB, total: 100_000 * MIB };
const LOW: DiskSpace = { free: 100 * MIB, total: 100_000 * MIB };

describe("a disk is low", () => {
  test.each([
    ["with 512 MiB free of 10 GiB", 512, 10_240, false],
    ["with one byte less", 512 - 1 / MIB, 10_240, true],
    ["with a twentieth of 100 GiB free", 5120, 102_400, false],
    ["with one byte less than that", 5120 - 1 / MIB, 102_400, true],
  ])("%s: %p of %p MiB, %p", (_name, free, total, low) => {
    expect(isLow({ free: free * MIB, total: total * MIB }, 512 * MIB)).toBe(low);
  });

  test("a disk is low never if it is not watched", () => {
    expect(isLow({ free: 0, total: 1 }, 0)).toBe(false);
  });
});

test("the disk is asked once a second at most, and one that does not say counts as low", () => {
  const clock = manualClock();
  let asked = 0;
  let answer: () => DiskSpace = () => ROOMY;
  const space = watchSpace(
    clock,
    () => {
      asked++;
      return answer();
    },
    512 * MIB,
  );
  for (let at = 0; at < 100; at++) expect(space.low()).toBe(false);
  clock.advance(SPACE_FRESH_MS - 1);
  space.low();
  expect(asked).toBe(1);
  answer = () => {
    throw new Error("no such disk");
  };
  clock.advance(1);
  expect(space.low()).toBe(true);
  answer = () => ROOMY;
  clock.advance(SPACE_FRESH_MS);
  expect(space.low()).toBe(false);
  expect(asked).toBe(3);
});

describe("a service whose disk is low", () => {
  let disk = ROOMY;
  let service: TestService;
  let sink: Awaited<ReturnType<typeof startSink>>;
  let inboxId = "";
  const clock = manualTime();
  beforeAll(async () => {
    sink = await startSink();
    service = await startService({}, clock, { disk: () => disk });
    [inboxId = ""] = await receivingInboxes(service, "in.test", ["box@in.test"]);
    await delivered(service, { to: "box@in.test" });
  });
  afterAll(async () => {
    await service.stop();
    await sink.stop();
  });
  beforeEach(() => become(LOW));
  afterEach(() => become(ROOMY));

  /** Time advances by more than an answer of the disk is cached. */
  function become(space: DiskSpace): void {
    disk = space;
    clock.skip(SPACE_FRESH_MS);
  }

  const from = { email: `x@onboarding.${SERVICE_DOMAIN}` };
  const to = [{ email: `delivered@simulator.${SERVICE_DOMAIN}` }];
  const send = { from, to, subject: "Hi", text: "Hi" };
  const storing: readonly [method: string, path: string, body: unknown][] = [
    ["POST", "/v1/emails", send],
    ["POST", "/v1/emails/batch", { emails: [send] }],
    ["POST", "/v1/inbound/simulate", { to: "box@in.test", text: "x" }],
    ["POST", "/v1/templates", { name: "t", subject: "s", text: "t" }],
    ["POST", "/v1/contacts", { email: "c@x.test" }],
    ["POST", "/v1/suppressions", { email: "s@x.test" }],
    ["POST", "/v1/webhooks", { url: "http://127.0.0.1:9/", eventTypes: ["bounce"] }],
    ["POST", "/v1/inboxes", { address: "other@in.test" }],
    ["POST", "/v1/domains", { domain: "d.example" }],
  ];
  test.each([...storing])(
    "answers %s %s 503, and takes it once there is room",
    async (method, path, body) => {
      const refused = await service.call(method, path, body);
      expect(refused).toMatchObject({ status: 503, body: { error: { type: "service_unavailable" } } });
      expect(refused.headers.get("retry-after")).toBe("60");
      become(ROOMY);
      expect((await service.call(method, path, body)).status).toBeLessThan(300);
    },
  );

  test("answers mail 452 4.3.1 at RCPT and after DATA, and takes it once there is room", async () => {
    expect(await deliver(service, { to: "box@in.test" })).toStartWith("452 4.3.1 ");
    become(ROOMY);
    const session = await smtpSession(service.smtpPort);
    await session.say("MAIL FROM:<a@x.test>");
    expect(await session.say("RCPT TO:<box@in.test>")).toStartWith("250 ");
    await session.say("DATA");
    become(LOW);
    expect(await session.say("Subject: x\r\n\r\nHi\r\n.")).toStartWith("452 4.3.1 ");
    session.end();
    become(ROOMY);
    await delivered(service, { to: "box@in.test" });
  });

  test("a service whose disk is low delivers, pushes, reads and deletes on", async () => {
    become(ROOMY);
    const hook = await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["*"] });
    const soon = new Date(clock.now() + 300).toISOString();
    const { body } = await service.call("POST", "/v1/emails", { ...send, scheduledAt: soon });
    become(LOW);
    expect((await service.message(body.id, "delivered")).status).toBe("delivered");
    expect((await service.call("GET", `/v1/inboxes/${inboxId}`)).status).toBe(200);
    expect((await service.call("DELETE", `/v1/webhooks/${hook.body.id}`)).status).toBe(204);
  });

  test("a service whose disk is low says so at /readyz, which stays 200, and in its health", async () => {
    expect(await service.call("GET", "/readyz")).toMatchObject({
      status: 200,
      body: { status: "ok", checks: { disk: "low" } },
    });
    become(ROOMY);
    expect((await service.call("GET", "/readyz")).body.checks.disk).toBeUndefined();
  });
});

/** The machine's time, which a test moves on. */
function manualTime() {
  let ahead = 0;
  return {
    now: () => systemClock.now() + ahead,
    elapsed: () => systemClock.elapsed() + ahead,
    after: systemClock.after,
    skip(ms: number) {
      ahead += ms;
    },
  };
}
