import { afterAll, beforeAll, expect, test } from "bun:test";
import { OWNER, receivingInboxes, startService, type TestService } from "../support/service.ts";

const FROM = "hello@onboarding.mail.test";
const INBOX = "box@in.test";
const SIMULATED = "delivered@simulator.mail.test";
let service: TestService;

beforeAll(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", [INBOX]);
});
afterAll(() => service.stop());

const record = async (id: string) => (await service.call("GET", `/v1/emails/${id}`)).body;

test("a send takes addresses as strings, objects and lists, and its record shows them in one form", async () => {
  const sent = await service.call("POST", "/v1/emails", {
    from: `Ana Lee <${FROM}>`,
    to: `Owner <${OWNER}>`,
    cc: [{ email: SIMULATED, name: "Sim" }, `"Lee, Sim" <${SIMULATED.replace("@", "+cc@")}>`],
    bcc: { email: SIMULATED.replace("@", "+bcc@") },
    replyTo: "Help <help@example.com>",
    subject: "Hi",
    text: "Hello",
  });
  expect(sent.status).toBe(202);
  expect(await record(sent.body.id)).toMatchObject({
    from: FROM,
    fromName: "Ana Lee",
    to: [OWNER],
    cc: [SIMULATED, SIMULATED.replace("@", "+cc@")],
    bcc: [SIMULATED.replace("@", "+bcc@")],
    replyTo: ["help@example.com"],
  });
  const [listed] = (await service.call("GET", "/v1/emails?limit=1")).body.data;
  expect([listed.fromName, listed.to, listed.toName]).toEqual(["Ana Lee", [OWNER], "Owner"]);
  const raw = (await service.call("GET", `/v1/emails/${sent.body.id}/raw`)).body;
  expect(raw).toContain(`From: Ana Lee <${FROM}>`);
  expect(raw).toContain("Reply-To: Help <help@example.com>");
  expect(raw).toMatch(/^Cc: Sim <delivered@\S+>, "Lee, Sim"\s+<delivered\+cc@/m);
});

test("an item of a batch takes them too, and names the one at fault", async () => {
  const item = { from: FROM, subject: "Hi", text: "Hello" };
  const emails = [
    { ...item, to: OWNER },
    { ...item, to: [OWNER, "ana"] },
  ];
  const { body } = await service.call("POST", "/v1/emails/batch", { emails });
  expect(body.data).toMatchObject([
    { status: "queued" },
    { error: { param: "to[1]", code: "invalid_email" } },
  ]);
});

test("a simulated message and the reply to it take them too", async () => {
  const simulated = await service.call("POST", "/v1/inbound/simulate", {
    from: `Ben <${SIMULATED}>`,
    to: `Box <${INBOX.replace("@", "+web@")}>`,
    text: "Well?",
  });
  expect(await record(simulated.body.messageId)).toMatchObject({
    from: SIMULATED,
    fromName: "Ben",
    to: ["box+web@in.test"],
  });
  const reply = await service.call("POST", `/v1/threads/${simulated.body.threadId}/reply`, {
    text: "Yes.",
    cc: "delivered+c@simulator.mail.test",
    bcc: [{ email: OWNER }],
  });
  expect(reply.status).toBe(202);
  expect(await record(reply.body.id)).toMatchObject({
    to: [SIMULATED],
    cc: ["delivered+c@simulator.mail.test"],
    bcc: [OWNER],
  });
  const bad = (fields: object) => service.call("POST", "/v1/inbound/simulate", { to: INBOX, ...fields });
  expect(await bad({ from: "ben" })).toMatchObject({ status: 422, body: { error: { param: "from" } } });
  expect(await bad({ to: { email: "box" } })).toMatchObject({
    status: 422,
    body: { error: { param: "to.email" } },
  });
});

test("an address with a long local part is written to, received from and answered", async () => {
  const tag = "reply-0123456789".repeat(8);
  const long = SIMULATED.replace("@", `+${tag}@`);
  const sent = await service.call("POST", "/v1/emails", {
    from: FROM,
    to: `"Lee, Ana" <${long}>`,
    replyTo: long,
    subject: "Hi",
    text: "Hello",
  });
  expect(sent.status).toBe(202);
  const raw = (await service.call("GET", `/v1/emails/${sent.body.id}/raw`)).body;
  expect(raw.replace(/\r\n /g, " ")).toContain(`To: "Lee, Ana" <${long}>`);
  const inbox = INBOX.replace("@", `+${tag}@`);
  const simulated = await service.call("POST", "/v1/inbound/simulate", {
    from: long,
    to: inbox,
    text: "Well?",
  });
  expect(await record(simulated.body.messageId)).toMatchObject({ from: long, to: [inbox] });
  const reply = await service.call("POST", `/v1/threads/${simulated.body.threadId}/reply`, { text: "Yes." });
  expect(await record(reply.body.id)).toMatchObject({ to: [long] });
  const suppressed = await service.call("POST", "/v1/suppressions", { email: long });
  expect(suppressed.body).toMatchObject({ email: long });
  const contact = await service.call("POST", "/v1/contacts", { email: long });
  expect(contact.body).toMatchObject({ email: long });
});
