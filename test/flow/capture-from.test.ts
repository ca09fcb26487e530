import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startService, type TestService } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({ CAPTURE_STRICT: "0" });
});
afterAll(() => service.stop());

const ITEM = { from: "Shop <hello@mysaas.com>", to: "ana@example.com", subject: "Hi", text: "Hello" };

async function captured(id: string): Promise<void> {
  const message = await service.message(id, "delivered");
  expect(message.recipients[0]).toMatchObject({ mx: "capture" });
  expect([message.testMode, message.from]).toEqual([true, "hello@mysaas.com"]);
  const raw = await service.call("GET", `/v1/emails/${id}/raw`);
  expect(raw.body).toContain("From: Shop <hello@mysaas.com>");
}

describe("in capture mode, a From of any domain", () => {
  test("is captured, and counts in no quota", async () => {
    const sent = await service.call("POST", "/v1/emails", ITEM);
    expect(sent.status).toBe(202);
    await captured(sent.body.id);
    expect((await service.call("GET", "/v1/quota")).body.used).toBe(0);
  });

  test("is captured in a batch and over /resend", async () => {
    const batch = await service.call("POST", "/v1/emails/batch", { emails: [ITEM] });
    await captured(batch.body.data[0].id);
    const resend = await service.call("POST", "/resend/emails", ITEM);
    expect(resend.status).toBe(200);
    await captured(resend.body.id);
  });

  test("passes the check of a send", async () => {
    expect((await service.call("POST", "/v1/emails/check", ITEM)).body.wouldAccept).toBe(true);
  });

  test("needs no domain, as the answer to a new one says", async () => {
    const { status, body } = await service.call("POST", "/v1/domains", { domain: "mysaas.com" });
    expect([status, body.status]).toEqual([201, "pending"]);
    expect(body.warnings).toMatchObject([
      { param: "domain", message: expect.stringContaining("none of the records") },
    ]);
    await captured((await service.call("POST", "/v1/emails", ITEM)).body.id);
    const { body: own } = await service.call("POST", "/v1/domains", { domain: "mysaas.test" });
    expect([own.status, own.warnings]).toEqual(["verified", undefined]);
  });

  test("must still be an address", async () => {
    const { status, body } = await service.call("POST", "/v1/emails", { ...ITEM, from: "hello" });
    expect([status, body.error.param]).toEqual([422, "from"]);
  });

  test("reaches only the owner and the simulator if it is the onboarding domain", async () => {
    const { status, body } = await service.call("POST", "/v1/emails", {
      ...ITEM,
      from: "hello@onboarding.mail.test",
    });
    expect([status, body.error.code]).toEqual([403, "test_mode_recipient"]);
  });

  test("never leaves after the mode was changed", async () => {
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await service.call("POST", "/v1/emails", { ...ITEM, scheduledAt });
    await service.restart({ DELIVERY: "mx" });
    const now = new Date(Date.now()).toISOString();
    await service.call("PATCH", `/v1/emails/${body.id}`, { scheduledAt: now });
    const message = await service.message(body.id, "rejected");
    expect(message.recipients[0]).toMatchObject({ reason: "capture_only" });
    await service.restart({});
  });
});

test("CAPTURE_STRICT refuses a From whose domain is not verified", async () => {
  await service.restart({ CAPTURE_STRICT: "1" });
  const { status, body } = await service.call("POST", "/v1/emails", ITEM);
  expect([status, body.error.code]).toEqual([403, "domain_not_verified"]);
});
