import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MAX_ITEM_FIELDS } from "../../src/core/messages/decisive-fields.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

const ITEM = {
  from: "hello@onboarding.mail.test",
  to: "delivered@simulator.mail.test",
  subject: "Hi",
  text: "Hello",
};
let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const NAMES: [given: string, ours: string][] = [
  ["scheduled_at", "scheduledAt"],
  ["scheduleAt", "scheduledAt"],
  ["send_at", "scheduledAt"],
  ["sendAt", "scheduledAt"],
  ["deliver_at", "scheduledAt"],
  ["reply_to", "replyTo"],
  ["reply-to", "replyTo"],
  ["Bcc", "bcc"],
  ["CC", "cc"],
  ["template", "templateId"],
  ["template_id", "templateId"],
  ["scheduled", "scheduledAt"],
  ["scheduled_for", "scheduledAt"],
  ["o:deliverytime", "scheduledAt"],
  ["delay", "scheduledAt"],
  ["recipients", "to"],
  ["personalizations", "to"],
  ["reply_to_address", "replyTo"],
  ["h:Reply-To", "replyTo"],
  ["TemplateAlias", "templateId"],
  ["TemplateModel", "data"],
  ["dynamic_template_data", "data"],
  ["substitution_data", "data"],
  ["merge_vars", "data"],
  ["MessageStream", "stream"],
  ["unsubscribe_link", "unsubscribeLink"],
];

describe("a field that decides when, whether or to whom a message leaves", () => {
  test.each(NAMES)(
    "a field that decides when, whether or to whom a message leaves is refused as %p, with its right name",
    async (given, ours) => {
      const { status, body } = await service.call("POST", "/v1/emails", { ...ITEM, [given]: "x" });
      expect([status, body.error]).toMatchObject([
        422,
        { code: "unknown_field", param: given, message: `"${given}" is not a field. Use "${ours}".` },
      ]);
    },
  );

  test("a field that decides when, whether or to whom a message leaves is refused in an item of a batch, and the others are sent", async () => {
    const { status, body } = await service.call("POST", "/v1/emails/batch", {
      emails: [ITEM, { ...ITEM, send_at: "x" }],
    });
    expect([status, body.data]).toMatchObject([
      207,
      [{ id: expect.any(String) }, { error: { code: "unknown_field", param: "send_at" } }],
    ]);
  });

  test("a field that decides when, whether or to whom a message leaves is refused in a check of a send", async () => {
    const { body } = await service.call("POST", "/v1/emails/check", { ...ITEM, sendAt: "x" });
    expect(body.error).toMatchObject({ code: "unknown_field", param: "sendAt" });
  });

  test("a field that decides when, whether or to whom a message leaves is refused in a reply, which cannot be scheduled", async () => {
    await receivingInboxes(service, "in.test", ["support@in.test"]);
    const made = await service.call("POST", "/v1/inbound/simulate", {
      to: "support@in.test",
      from: "ana@example.com",
      subject: "Help",
      text: "?",
    });
    const reply = (fields: object) =>
      service.call("POST", `/v1/threads/${made.body.threadId}/reply`, { text: "Yes", ...fields });
    expect((await reply({ scheduledAt: "x" })).body.error).toMatchObject({
      code: "unknown_field",
      param: "scheduledAt",
      message: '"scheduledAt" is not a field. There is no "scheduledAt" here.',
    });
    for (const [given, ours] of [
      ["Cc", "cc"],
      ["reply_all", "replyAll"],
      ["message_id", "messageId"],
    ])
      expect((await reply({ [`${given}`]: "x" })).body.error.message).toBe(
        `"${given}" is not a field. Use "${ours}".`,
      );
    expect((await service.call("POST", "/v1/emails", { ...ITEM, reply_all: true })).status).toBe(202);
  });

  test("a field that decides when, whether or to whom a message leaves does not take the place of an unknown one, which is ignored", async () => {
    const many = Object.fromEntries(Array.from({ length: MAX_ITEM_FIELDS - 4 }, (_, at) => [`x${at}`, 1]));
    expect((await service.call("POST", "/v1/emails", { ...ITEM, ...many })).status).toBe(202);
    const { body } = await service.call("POST", "/v1/emails", { ...ITEM, ...many, more: 1 });
    expect(body.error.message).toBe(`The body must have at most ${MAX_ITEM_FIELDS} fields.`);
  });
});
