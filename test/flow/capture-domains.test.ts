import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startService, type TestService } from "../support/service.ts";
import { delivered } from "../support/mail-in.ts";

const PROJECT = { "x-service-product": "default" };
let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const add = (domain: string) => service.call("POST", "/v1/domains", { domain });
const newInbox = (address: string, options = {}) => service.call("POST", "/v1/inboxes", { address }, options);

describe("in capture mode", () => {
  test.each(["shop.test", "shop.example", "shop.localhost"])(
    "the domain %s is verified at once, without a question to the DNS, and can send",
    async (domain) => {
      const { status, body } = await add(domain);
      expect([status, body.status, body.verifiedBy]).toEqual([201, "verified", "capture"]);
      const verified = (await service.call("POST", `/v1/domains/${body.id}/verify`)).body;
      expect(verified).toMatchObject({ status: "verified", verifiedBy: "capture" });
      expect(verified.records.map((record: { status: string }) => record.status)).toEqual(
        Array(3).fill("verified"),
      );
      expect(service.dns.count(domain)).toBe(0);
      const item = { from: `Shop <hello@${domain}>`, to: "ana@example.com", subject: "Hi", text: "Hello" };
      const sent = await service.call("POST", "/v1/emails", item);
      expect((await service.message(sent.body.id, "delivered")).from).toBe(`hello@${domain}`);
    },
  );

  test.each(["shop.example.com", "test.shop.dev"])(
    "the domain %s is pending until its DNS is right",
    async (domain) => {
      expect((await add(domain)).body).toMatchObject({ status: "pending", verifiedBy: null });
    },
  );

  test("a rotated key signs at the next check", async () => {
    const { id } = (await add("rotated.test")).body;
    await service.call("POST", `/v1/domains/${id}/rotate-dkim`);
    const { records } = (await service.call("POST", `/v1/domains/${id}/verify`)).body;
    expect(records[0]).toMatchObject({ name: "pr2._domainkey.rotated.test", verified: true });
  });
});

describe("an inbox at inbox. + service domain", () => {
  test("an inbox at inbox. + service domain needs no domain, and takes mail by SMTP and from simulate, and its replies go out", async () => {
    const made = await newInbox("support@inbox.mail.test");
    expect([made.status, made.body.warnings]).toEqual([201, undefined]);
    const from = "delivered@simulator.mail.test";
    await delivered(service, {
      to: "support+web@inbox.mail.test",
      headers: [`From: ${from}`, "Subject: By SMTP"],
    });
    const simulated = await service.call("POST", "/v1/inbound/simulate", {
      to: "support@inbox.mail.test",
      text: "x",
    });
    expect(simulated.status).toBe(202);
    const threads = (await service.call("GET", "/v1/threads")).body.data;
    expect(threads.map(({ subject }: { subject: string }) => subject)).toContain("By SMTP");
    const reply = await service.call("POST", `/v1/threads/${threads[0].id}/reply`, { text: "Yes." });
    expect((await service.message(reply.body.id, "delivered")).from).toBe("support@inbox.mail.test");
  });

  test("an inbox at inbox. + service domain is made once if two are asked for at once, and the domain is listed", async () => {
    const made = await Promise.all([newInbox("a@x.inbox.mail.test"), newInbox("b@x.inbox.mail.test")]);
    expect(made.map(({ status }) => status)).toEqual([201, 201]);
    const { data } = (await service.call("GET", "/v1/domains")).body;
    expect(data.filter(({ domain }: { domain: string }) => domain === "x.inbox.mail.test")).toMatchObject([
      { verifiedBy: "capture", receiving: true },
    ]);
  });

  test("belongs to one project; another uses a name below it", async () => {
    await newInbox("first@inbox.mail.test");
    const key = service.accountKey;
    await service.call("POST", "/v1/senders", { name: "Second", externalId: "second" }, { key });
    const headers = { "x-service-product": "second" };
    expect(await newInbox("other@inbox.mail.test", { key, headers })).toMatchObject({
      status: 409,
      body: { error: { code: "duplicate", message: expect.stringContaining(".inbox.mail.test") } },
    });
    expect((await newInbox("other@second.inbox.mail.test", { key, headers })).status).toBe(201);
    expect((await newInbox("mine@second.inbox.mail.test", { key, headers: PROJECT })).status).toBe(409);
  });
});

test("an inbox on a domain that does not receive is made with a warning that says how to switch it on", async () => {
  const { id } = (await add("quiet.test")).body;
  const { body } = await newInbox("box@quiet.test");
  expect(body.warnings).toEqual([
    {
      param: "address",
      message: `quiet.test does not receive mail yet. Switch it on with PATCH /v1/domains/${id}/receiving {"enabled":true}.`,
    },
  ]);
  await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true });
  expect((await newInbox("two@quiet.test")).body.warnings).toBeUndefined();
});

test("outside capture mode there are no such domains", async () => {
  const { id } = (await add("later.test")).body;
  await newInbox("later@inbox.mail.test");
  await service.restart({ DELIVERY: "mx" });
  expect((await add("other.test")).body).toMatchObject({ status: "pending", verifiedBy: null });
  expect((await newInbox("x@y.inbox.mail.test")).status).toBe(422);
  const { authHealth } = (await service.call("POST", `/v1/domains/${id}/verify`)).body;
  expect(authHealth).toEqual({ dkim: "failing", spf: "failing", dmarc: "failing" });
});
