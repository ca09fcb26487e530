import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OWNER, startService, type TestService } from "../support/service.ts";

const PROJECT = { "x-service-product": "default" };
const ITEM = { from: "hello@onboarding.mail.test", to: OWNER, subject: "Hi", text: "Hello" };
let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const SUBJECT = {
  param: "Subject",
  message: '"Subject" is not a field, so it was ignored. Did you mean "subject"?',
};

describe("the answer to a write", () => {
  test("warns of a field that is not ours and resembles one", async () => {
    const body = { ...ITEM, Subject: "x" };
    expect(await service.call("POST", "/v1/emails", body)).toMatchObject({
      status: 202,
      body: { id: expect.stringMatching(/^msg_/), status: "queued", warnings: [SUBJECT] },
    });
  });

  test("the answer to a write has no warnings if all fields are ours, or resemble none", async () => {
    const { body } = await service.call("POST", "/v1/emails", { ...ITEM, future: 1 });
    expect(Object.keys(body)).toEqual(["id", "status"]);
  });

  test("the answer to a write has them again if it is repeated for its Idempotency-Key", async () => {
    const headers = { "idempotency-key": "warned" };
    const body = { ...ITEM, Tags: [] };
    const first = await service.call("POST", "/v1/emails", body, { headers });
    const again = await service.call("POST", "/v1/emails", body, { headers });
    expect(first.body.warnings).toMatchObject([{ param: "Tags" }]);
    expect([again.headers.get("idempotent-replayed"), again.body]).toEqual(["true", first.body]);
  });

  test("the answer to a batch has an item's warnings in its result, relative to the item", async () => {
    const emails = [ITEM, { ...ITEM, Subject: "x" }, { ...ITEM, subject: undefined, Subject: "x" }];
    const { status, body } = await service.call("POST", "/v1/emails/batch", { emails, Emails: [] });
    expect(status).toBe(207);
    expect(body.warnings).toMatchObject([{ param: "Emails" }]);
    expect(body.data).toEqual([
      { id: expect.any(String), status: "queued" },
      { id: expect.any(String), status: "queued", warnings: [SUBJECT] },
      {
        error: expect.objectContaining({ param: "subject" }),
        warnings: [{ param: "Subject", message: expect.stringContaining('Did you mean "subject"?') }],
      },
    ]);
  });

  test("warns of variables of the template for which the data has no value, in a batch too", async () => {
    await service.call("POST", "/v1/templates", {
      name: "Order",
      slug: "order",
      subject: "{{ user.name }} {{ unsubscribeUrl }} {{ items.size }}",
      text: "{% for item in items %}{{ item.name }}{% endfor %}{{ order.total }}{{ items[0].name }}{{ note }}",
    });
    const item = { ...ITEM, subject: undefined, text: undefined, templateId: "order", unsubscribeLink: true };
    const data = { user: {}, items: [], order: { total: 0 }, note: null };
    const message = "The template uses user.name, items[0].name, for which the data has no value.";
    const sent = await service.call("POST", "/v1/emails", { ...item, data });
    expect([sent.status, sent.body.warnings]).toEqual([202, [{ param: "data", message }]]);
    const { body } = await service.call("POST", "/v1/emails/batch", {
      emails: [{ ...item, data, Tags: [] }, ITEM],
    });
    expect(body.data).toMatchObject([{ warnings: [{ param: "data", message }, { param: "Tags" }] }, {}]);
    expect(body.data[1].warnings).toBeUndefined();
  });

  test("the answer to a write names ten of more missing variables", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `v${at}`);
    const text = names.map((name) => `{{ ${name} }}`).join("");
    await service.call("POST", "/v1/templates", { name: "Many", slug: "many", subject: "s", text });
    const item = { ...ITEM, subject: undefined, text: undefined, templateId: "many" };
    const { body } = await service.call("POST", "/v1/emails", item);
    expect(body.warnings[0].message).toContain("v8, v9 and 2 more,");
  });

  test("warns of an unsubscribe header that unsubscribeLink replaces", async () => {
    const headers = { "list-unsubscribe": "<mailto:out@sender.test>" };
    const { body } = await service.call("POST", "/v1/emails", { ...ITEM, headers, unsubscribeLink: true });
    expect(body.warnings).toMatchObject([{ param: "headers.list-unsubscribe" }]);
  });

  test.each<[string, string, Record<string, unknown>, string]>([
    ["POST", "/v1/templates", { name: "A", subject: "x", html: "x", subjet: "y" }, "subjet"],
    ["POST", "/v1/contacts", { email: "a@example.com", first_name: "A" }, "first_name"],
    ["POST", "/v1/suppressions", { email: "b@example.com", expires_at: "x" }, "expires_at"],
    ["POST", "/v1/domains", { domain: "example.com", Domains: 1 }, "Domains"],
    [
      "POST",
      "/v1/webhooks",
      { url: "http://127.0.0.1:9/", eventTypes: ["*"], event_types: [] },
      "event_types",
    ],
    ["POST", "/v1/api-keys", { name: "k", senderID: "x" }, "senderID"],
  ])("%s %s warns too", async (method, path, body, param) => {
    const answer = await service.call(method, path, body, { key: service.accountKey, headers: PROJECT });
    expect(answer.status).toBe(201);
    expect(answer.body.warnings.map((warning: { param: string }) => warning.param)).toContain(param);
  });
});
