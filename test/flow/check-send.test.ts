import { afterAll, beforeAll, expect, test } from "bun:test";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await verifiedDomain(service, "check.example");
});
afterAll(() => service.stop());

const GOOD = {
  from: { email: "shop@check.example" },
  to: [{ email: "ana@example.com" }],
  subject: "Hello",
  text: "Hi. Unsubscribe: {{unsubscribeUrl}}",
  unsubscribeLink: true,
};
const check = (item: Record<string, unknown> = {}) =>
  service.call("POST", "/v1/emails/check", { ...GOOD, ...item });
const codesOf = async (item: Record<string, unknown>) =>
  (await check(item)).body.findings.map(({ code }: { code: string }) => code);

test("a good message would be accepted, and is neither stored nor sent", async () => {
  const { status, body } = await check();
  expect(status).toBe(200);
  expect(body).toEqual({ wouldAccept: true, size: expect.any(Number), clipped: false, findings: [] });
  expect((await service.call("GET", "/v1/emails")).body.data).toEqual([]);
  expect((await service.call("GET", "/v1/quota")).body.used).toBe(0);
});

test("a message that would be refused says why, as a send does", async () => {
  const item = { from: { email: "shop@other.example" } };
  const { body } = await check(item);
  const sent = await service.call("POST", "/v1/emails", { ...GOOD, ...item });
  expect(body.wouldAccept).toBe(false);
  expect(body.error).toMatchObject({ code: "domain_not_verified", message: sent.body.error.message });
});

test("what breaks the schema is 422 as for a send", async () => {
  const { status, body } = await check({ to: [] });
  expect([status, body.error.param]).toEqual([422, "to"]);
});

test("html alone lacks a text part only if the project makes none from it", async () => {
  const item = { text: undefined, html: "<p>Hi</p> Unsubscribe" };
  expect(await codesOf(item)).toEqual([]);
  expect(await codesOf({ ...item, text: " " })).toEqual(["missing_text"]);
  const key = { key: service.accountKey };
  const { id } = (await service.call("GET", "/v1/senders", undefined, key)).body.data[0];
  const setting = (textFromHtml: boolean) =>
    service.call("PATCH", `/v1/senders/${id}`, { textFromHtml }, key);
  await setting(false);
  expect(await codesOf(item)).toEqual(["missing_text"]);
  await setting(true);
});

test.each([
  ["replaced_header", { headers: { "List-Unsubscribe": "<mailto:out@check.example>" } }],
  ["html_clipped", { html: `<p>${"x".repeat(102 * 1024)}</p>` }],
  [
    "html_clipped",
    { html: "Sale" + '<a href="https://shop.example/a">Buy</a>'.repeat(450) + "x".repeat(60_000) },
  ],
  ["no_visible_unsubscribe", { text: "Hi" }],
  ["no_unsubscribe", { unsubscribeLink: false, text: "Hi" }],
  ["mistyped_domain", { to: ["ana@gmial.com"] }],
  ["role_address", { to: ["sales@shop.example"] }],
  ["no_preheader", { html: "<p>View this email in your browser</p><p>Sale</p>" }],
  ["no_preheader", { html: '<img src="https://check.example/logo.png" alt="Logo"><p>Spring is here</p>' }],
  ["no_preheader", { html: '<a href="https://check.example/">Our shop</a><p>Spring is here</p>' }],
  ["no_preheader", { subject: "Spring is here", html: "<h1>Spring is here!</h1><p>Read on.</p>" }],
  ["no_preheader", { html: '<img src="https://check.example/spring.png">' }],
  ["link_text_mismatch", { html: 'Log in: <a href="https://evil.example/">https://bank.example/login</a>' }],
  ["insecure_link", { html: 'News: <a href="http://check.example/">Read</a>' }],
  ["long_subject", { subject: "x".repeat(79) }],
  [
    "refused_attachment",
    { attachments: [{ filename: "setup.exe", content: "TVo=", contentType: "application/octet-stream" }] },
  ],
  [
    "large_image",
    { attachments: [{ filename: "a.png", content: "A".repeat(1_500_000), contentType: "image/png" }] },
  ],
])("%s is found", async (code, item) => {
  expect(await codesOf(item)).toEqual([code]);
});

test.each([
  [
    "an address at a real neighbour of a large domain",
    { to: ["ana@gmx.com", "ana@mail.com", "ana@yahoo.ca"] },
  ],
  [
    "a hidden preheader before the picture of a logo",
    {
      html: '<div style="display:none">Two days of offers.</div><img src="https://check.example/l.png" alt="Logo">',
    },
  ],
  [
    "a hidden preheader before a link to the browser",
    {
      html: '<span style="display: none">Two days of offers.&zwnj;&nbsp;</span><a href="https://check.example/v">View this email in your browser</a>',
    },
  ],
  ["a role address of a message that is not bulk", { to: ["sales@shop.example"], stream: "transactional" }],
])("%s is fine", async (_, item) => {
  expect(await codesOf(item)).toEqual([]);
});

test("a send whose html is clipped once it is tracked says so, and not without tracking", async () => {
  const html = '<a href="https://shop.example/a">Buy</a>'.repeat(450) + "x".repeat(60_000);
  const paramsOf = async (item: Record<string, unknown>) =>
    ((await service.call("POST", "/v1/emails", { ...GOOD, html, ...item })).body.warnings ?? []).map(
      ({ param }: { param: string }) => param,
    );
  expect(await paramsOf({})).toEqual(["html"]);
  expect(await paramsOf({ tracking: { opens: false, clicks: false } })).toEqual([]);
});

test("a link to the host that its text names, or to one below it, is fine", async () => {
  const links = ["shop.example", "https://www.shop.example/a", "Read more"].map(
    (text) => `<a href="https://mail.shop.example/">${text}</a>`,
  );
  expect(await codesOf({ html: `Links: ${links.join("")}` })).toEqual([]);
});

test("suppressed recipients and missing variables of a template are found", async () => {
  await service.call("POST", "/v1/suppressions", { email: "no@example.com" });
  const template = await service.call("POST", "/v1/templates", {
    name: "Hello",
    slug: "hello",
    subject: "Hi {{ name }}",
    text: "Hi {{ name }}, {{ greeting }}. Unsubscribe: {{ unsubscribeUrl }}",
  });
  const item = {
    to: [{ email: "no@example.com" }],
    subject: undefined,
    text: undefined,
    templateId: template.body.id,
    data: { name: "Ana" },
  };
  const { body } = await check(item);
  expect(body.findings.map(({ code }: { code: string }) => code)).toEqual([
    "suppressed_recipient",
    "missing_variable",
  ]);
  expect(body.findings[1].message).toContain("greeting");
});
