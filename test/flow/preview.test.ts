import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { DRAFT_MS } from "../../src/http/dashboard/drafts.ts";
import { HOSTILE_HTML } from "../support/hostile-html.ts";
import { deliveredRecord } from "../support/mail-in.ts";
import { shiftedClock } from "../support/shifted-clock.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

setDefaultTimeout(60_000);

const POLICY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";
/** A picture of one point. */
const DOT = "R0lGODlhAQABAIAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==";

const clock = shiftedClock();
let service: TestService;
beforeAll(async () => {
  service = await startService({}, clock);
});
afterAll(() => service.stop());

const send = (content: object) =>
  service.send({ from: `hello@onboarding.${SERVICE_DOMAIN}`, to: "owner@example.com", ...content });

const preview = (id: string, query = "") => service.call("GET", `/v1/emails/${id}/preview${query}`);

describe("the preview of a message", () => {
  test("the preview of a message is a page with a policy that lets it load and run nothing", async () => {
    const { status, headers, body } = await preview(await send({ html: "<p>Hello</p>" }));
    expect(status).toBe(200);
    expect(body).toEndWith("<p>Hello</p>");
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": POLICY,
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-dns-prefetch-control": "off",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
    });
  });

  test("loads remote images only if it is asked to, and nothing else then", async () => {
    const id = await send({
      html: "<style>:root{color-scheme:light dark}</style><img src=https://a.example/x.png>",
    });
    expect((await preview(id, "?images=0")).headers.get("content-security-policy")).toBe(POLICY);
    expect((await preview(id, "?images=1")).headers.get("content-security-policy")).toBe(
      POLICY.replace("img-src data:", "img-src data: https: http:"),
    );
    expect((await preview(id, "?images=2")).status).toBe(422);
    expect((await preview(id, "?theme=pink")).status).toBe(422);
    expect((await preview(id, "?theme=dark")).body).toContain(":root{color-scheme:dark;");
  });

  test.each(HOSTILE_HTML)(
    "of %s has the same policy, and no tag that acts by itself",
    async (_name, html) => {
      const { status, headers, body } = await preview(await send({ html }));
      expect([status, headers.get("content-security-policy")]).toEqual([200, POLICY]);
      const own = (await preview(await send({ html: "x" }))).body.length - 1;
      expect(body.slice(own)).not.toMatch(/<(?:link|meta|base|i?frame|object|embed|portal)[\s/>]/i);
    },
  );

  test("the preview of a message has the images that the message carries, sent or received", async () => {
    const html = '<img src="cid:dot@x"><img src="cid:vector"><img src="cid:none">';
    const picture = { filename: "dot.gif", content: DOT, contentType: "image/gif", contentId: "dot@x" };
    const vector = { filename: "v.svg", content: DOT, contentType: "image/svg+xml", contentId: "vector" };
    const sent = await preview(await send({ html, attachments: [picture, vector] }));
    expect(sent.body).toEndWith(
      `<img src="data:image/gif;base64,${DOT}"><img src="data:,"><img src="data:,">`,
    );
    await receivingInboxes(service, "in.test", ["a@in.test"]);
    const received = await deliveredRecord(service, {
      to: "a@in.test",
      headers: ["MIME-Version: 1.0", "Content-Type: multipart/related; boundary=b"],
      body: [
        "--b",
        "Content-Type: text/html",
        "",
        '<img src="cid:dot@x">',
        "--b",
        "Content-Type: image/gif",
        "Content-ID: <dot@x>",
        "Content-Transfer-Encoding: base64",
        "",
        DOT,
        "--b--",
      ].join("\r\n"),
    });
    expect((await preview(received.id)).body).toContain(`<img src="data:image/gif;base64,${DOT}">`);
  });

  test("the preview of a message of ten megabytes that were received shows their first part", async () => {
    await receivingInboxes(service, "large.test", ["a@large.test"]);
    const line = `<p>${"words ".repeat(100)}</p>`;
    const body = Array(16_500).fill(line).join("\r\n");
    const { id } = await deliveredRecord(service, {
      to: "a@large.test",
      headers: ["MIME-Version: 1.0", "Content-Type: text/html"],
      body,
    });
    const shown = await preview(id);
    expect(body.length).toBeGreaterThan(10_000_000);
    expect(shown.body.length).toBeLessThan(1_100_000);
    expect(shown.body).toContain("too large for a preview");
  });

  test("the preview of a message does not exist without html, or for another project", async () => {
    expect((await preview(await send({ text: "x" }))).status).toBe(404);
    expect((await preview("msg_none")).status).toBe(404);
    const id = await send({ html: "secret" });
    const wide = { key: service.accountKey };
    const other = await service.call("POST", "/v1/senders", { externalId: "other", name: "Other" }, wide);
    const headers = { "X-Service-Product": other.body.id };
    expect(
      (await service.call("GET", `/v1/emails/${id}/preview`, undefined, { ...wide, headers })).status,
    ).toBe(404);
  });
});

describe("the preview of a draft", () => {
  const draft = (html: string) => service.call("POST", "/ui/preview", { html });

  test("the preview of a draft has a URL of its own, and the same policy", async () => {
    const made = await draft("<script>x</script><style>:root{color-scheme:dark light}</style><p>Hi</p>");
    expect([made.status, made.body.url]).toEqual([201, expect.stringMatching(/^\/ui\/preview\/\w{16}$/)]);
    const { status, headers, body } = await service.call("GET", `${made.body.url}?theme=dark`);
    expect([status, headers.get("content-security-policy")]).toEqual([200, POLICY]);
    expect(body).toContain(":root{color-scheme:dark;");
    expect(body).toEndWith("<p>Hi</p>");
  });

  test("the preview of a draft is shown to no other key, and without a key to none", async () => {
    const { url } = (await draft("x")).body;
    expect((await service.call("GET", url, undefined, { key: service.accountKey })).status).toBe(404);
    expect((await fetch(`${service.url}${url}`)).status).toBe(401);
  });

  test("the preview of a draft works for five minutes", async () => {
    const { url } = (await draft("x")).body;
    clock.shift(DRAFT_MS - 10_000);
    expect((await service.call("GET", url)).status).toBe(200);
    clock.shift(10_000);
    expect((await service.call("GET", url)).status).toBe(404);
  });

  test("the preview of a draft is forgotten when 32 newer ones were made, and has at most 1 MiB", async () => {
    const { url } = (await draft("first")).body;
    for (let count = 0; count < 31; count++) await draft("x");
    expect((await service.call("GET", url)).status).toBe(200);
    await draft("x");
    expect((await service.call("GET", url)).status).toBe(404);
    expect((await draft("x".repeat(1024 * 1024))).status).toBe(413);
  });
});
