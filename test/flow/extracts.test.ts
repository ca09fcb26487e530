import { afterAll, beforeAll, expect, test } from "bun:test";
import { receivingInboxes, startService, type TestService, verifiedDomain } from "../support/service.ts";

const HTML = '<p>Your code: 493817</p><a href="https://app.example/verify?t=1&amp;u=2">Verify</a>';
const WANTED = { links: [{ url: "https://app.example/verify?t=1&u=2", text: "Verify" }], codes: ["493817"] };

let capturing: TestService;
let sending: TestService;

beforeAll(async () => {
  capturing = await startService();
  // No worker runs, so nothing leaves.
  sending = await startService({ DELIVERY: "mx", ROLES: "api" });
  for (const service of [capturing, sending]) await verifiedDomain(service, "codes.example");
});
afterAll(async () => {
  await capturing.stop();
  await sending.stop();
});

const send = (service: TestService, item: Record<string, unknown> = {}) =>
  service.send({
    from: "shop@codes.example",
    to: "ana@example.com",
    subject: "Sign in",
    html: HTML,
    ...item,
  });
const record = async (service: TestService, id: string) =>
  (await service.call("GET", `/v1/emails/${id}`)).body;

test("captured mail shows its links and codes at once, and as they were before tracking", async () => {
  const id = await send(capturing, { trackClicks: true });
  expect(await record(capturing, id)).toMatchObject(WANTED);
  await capturing.message(id, "delivered");
  expect(await record(capturing, id)).toMatchObject(WANTED);
});

test("received mail shows its links and codes", async () => {
  const [inboxId] = await receivingInboxes(capturing, "in.codes.example", ["help@in.codes.example"]);
  const { body } = await capturing.call("POST", "/v1/inbound/simulate", {
    inboxId,
    html: HTML,
    subject: "Code",
  });
  expect(await record(capturing, body.messageId)).toMatchObject(WANTED);
});

test("mail in test mode shows them, and mail that goes out does not", async () => {
  const testing = { from: { email: "me@onboarding.mail.test" }, to: [{ email: "owner@example.com" }] };
  expect(await record(sending, await send(sending, testing))).toMatchObject(WANTED);
  const out = await record(sending, await send(sending));
  expect([out.links, out.codes]).toEqual([undefined, undefined]);
});

test("a message without any has empty lists", async () => {
  const id = await send(capturing, { html: "<p>Hello</p>" });
  expect(await record(capturing, id)).toMatchObject({ links: [], codes: [] });
});
