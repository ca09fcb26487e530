import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { HOUR_MS } from "../../src/core/time/units.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
let relay: TestMx;

beforeEach(async () => {
  relay = startMx();
  service = await startService({
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
    DELIVERY_RETRY_SECONDS: "0.05",
    PUBLIC_URL: "https://mail.example",
  });
  await verifiedDomain(service, "sender.test");
});
afterEach(async () => {
  await service.stop();
  relay.stop();
});

const TEMPLATE = {
  name: "Welcome",
  subject: "Hello {{ user.name }}",
  html: "<p>{{ user.name }} {{ missing }}</p>",
  text: "Hi {{ user.name }}",
};

async function template(change: Record<string, unknown> = {}): Promise<string> {
  const made = await service.call("POST", "/v1/templates", { ...TEMPLATE, ...change });
  expect(made.status).toBe(201);
  return made.body.id;
}

function mail(more: Record<string, unknown>) {
  return { from: { email: "news@sender.test" }, to: [{ email: "a@one.test" }], ...more };
}

const send = (more: Record<string, unknown>) => service.send(mail(more));

describe("a templated send", () => {
  test("a templated send is rendered once, however many recipients need it at a time", async () => {
    const to = Array.from({ length: 20 }, (_, n) => ({ email: `${n}@one.test` }));
    const sent = await send({ to, templateId: await template(), data: { user: { name: "Ada" } } });
    await service.message(sent, "sent");
    const copies = relay.messages.items.map(({ data }) => data.toString());
    expect(copies).toHaveLength(20);
    for (const copy of copies) expect(copy).toContain("\r\nHi Ada\r\n");
    const metrics = await service.metrics();
    expect(metrics).toContain(
      'postrider_rendering_duration_seconds_count{kind="template",outcome="made"} 1\n',
    );
  });

  test("a templated send does not read properties that every object inherits", async () => {
    const templateId = await template({ text: "{{ __proto__ }} {{ o.toString }} {{ o }} [{{ valueOf }}]" });
    const data = JSON.parse('{"__proto__": "own", "o": {"toString": "its"}}');
    const sent = await send({ templateId, data });
    const record = await service.message(sent, "sent");
    expect(record.text).toBe("own its [object Object] []");
    expect(JSON.stringify(record.data)).toBe(JSON.stringify(data));
  });

  test("a templated send that is previewed before its time is sent by the template of its time", async () => {
    const scheduledAt = new Date(Date.now() + HOUR_MS).toISOString();
    const sent = await send({ scheduledAt, templateId: await template(), data: { user: { name: "Ada" } } });
    const raw = async () => (await service.call("GET", `/v1/emails/${sent}/raw`)).body;
    expect(await raw()).toContain("\r\nHi Ada\r\n");
    await service.call("PATCH", "/v1/templates/welcome", { text: "Dear {{ user.name }}" });
    expect(await raw()).toContain("\r\nDear Ada\r\n");
    await service.call("PATCH", `/v1/emails/${sent}`, { scheduledAt: new Date().toISOString() });
    expect((await service.message(sent, "sent")).text).toBe("Dear Ada");
  });

  test("a templated send that cannot be rendered is tried once, however many recipients it has, until it is changed", async () => {
    const id = await template({ html: "{% for a in (1..100000000) %}{% assign b = a %}{% endfor %}" });
    const to = Array.from({ length: 10 }, (_, at) => ({ email: `r${at}@one.test` }));
    const sent = await send({ to, templateId: id, data: { user: { name: "Ada" } } });
    await service.message(sent, "rendering_failure");
    const metrics = await service.metrics();
    const count = 'postrider_rendering_duration_seconds_count{kind="template",outcome="refused"} 1\n';
    expect(metrics).toContain(count);
    const raw = async () => await service.call("GET", `/v1/emails/${sent}/raw`);
    expect(await raw()).toMatchObject({
      status: 404,
      body: {
        error: {
          type: "not_found",
          code: "rendering_failure",
          message: expect.stringMatching(/cannot be rendered: html: /),
        },
      },
    });
    expect(await service.metrics()).toContain(count);
    await service.call("PATCH", `/v1/templates/${id}`, { html: "<p>x</p>" });
    expect((await raw()).status).toBe(200);
  });

  test.each(["id", "slug"])(
    "by %s is rendered while sending, and its record shows the rendered text",
    async (by) => {
      const id = await template();
      const data = { user: { name: "<Ada>" } };
      const sent = await send({ templateId: by === "id" ? id : "welcome", data });
      const record = await service.message(sent, "sent");
      expect(record).toMatchObject({
        subject: "Hello <Ada>",
        html: "<p>&lt;Ada&gt; </p>",
        text: "Hi <Ada>",
        data,
      });
      const wire = (await relay.messages.reached(1)).data.toString();
      expect(wire).toContain("Subject: Hello <Ada>");
    },
  );

  test("a templated send uses inline parts instead of the template's, unrendered", async () => {
    await template();
    const sent = await send({
      templateId: "welcome",
      subject: "Own {{ x }}",
      data: { user: { name: "Ada" } },
    });
    expect(await service.message(sent, "sent")).toMatchObject({ text: "Hi Ada", subject: "Own {{ x }}" });
  });

  test.each([{ html: "" }, { text: "" }, { subject: "", html: "", text: "" }])(
    "treats an empty inline part as absent: %j",
    async (inline) => {
      const templateId = await template({ html: "<p>{{ user.name }}</p>" });
      const sent = await send({ templateId, data: { user: { name: "Ada" } }, ...inline });
      const shown = { subject: "Hello Ada", html: "<p>Ada</p>", text: "Hi Ada" };
      expect(await service.message(sent, "sent")).toMatchObject(shown);
      const wire = (await relay.messages.reached(1)).data.toString();
      expect(wire).toContain("<p>Ada</p>");
      expect(wire).toContain("\r\nHi Ada\r\n");
    },
  );

  test("a templated send that becomes nothing is a rendering failure, and nothing is sent", async () => {
    const templateId = await template({ html: null, text: "{% if shown %}Hi{% endif %} " });
    const sent = await send({ templateId, data: {} });
    const { recipients } = await service.message(sent, "rendering_failure");
    expect(recipients[0].diagnostic).toContain("neither html nor text");
    expect(await service.message(await send({ templateId, data: { shown: true } }), "sent")).toMatchObject({
      text: "Hi ",
    });
  });

  test("a templated send keeps its rendered text over a retry, even if the template has changed", async () => {
    const id = await template();
    relay.set({ RCPT: ["451 4.3.0 Later", "250 ok"] });
    const sent = await send({ templateId: "welcome", data: { user: { name: "Ada" } } });
    await service.message(sent, "delivery_delayed");
    await service.call("PATCH", `/v1/templates/${id}`, { subject: "Changed" });
    expect((await service.message(sent, "sent")).subject).toBe("Hello Ada");
  });

  test("a templated send that is unrendered when the service stops is released, not deferred", async () => {
    const slowly =
      "{% for a in (1..1000000) %}{% for b in (1..1000) %}{% assign c = b %}{% endfor %}{% endfor %}";
    const later = { DELIVERY_RETRY_SECONDS: "3600" };
    await service.restart(later);
    const sent = await send({ templateId: await template({ text: slowly }), data: {} });
    await service.message(sent, "sending");
    const graceMs = 1;
    await service.app.stop(graceMs);
    await service.restart(later);
    const { events } = await service.message(sent, "rendering_failure");
    expect(events.map(({ type }: { type: string }) => type)).not.toContain("delivery_delayed");
  });

  test("a templated send whose template is deleted before its time is a rendering failure", async () => {
    const id = await template();
    const sent = await send({ templateId: id, scheduledAt: new Date(Date.now() + 300).toISOString() });
    await service.call("DELETE", `/v1/templates/${id}`);
    const record = await service.message(sent, "rendering_failure");
    expect(record.events.at(-1)).toMatchObject({ type: "rendering_failure", email: "a@one.test" });
    expect(relay.messages.items.length).toBe(0);
    const raw = await service.call("GET", `/v1/emails/${sent}/raw`);
    expect([raw.status, raw.body.error.type]).toEqual([404, "not_found"]);
    expect(raw.body.error.message).toContain("the template is gone");
  });

  test("a templated send with an unknown template is refused", async () => {
    const refused = await service.call("POST", "/v1/emails", mail({ templateId: "nope" }));
    expect(refused.status).toBe(422);
    expect(refused.body.error).toMatchObject({ code: "template_not_found", param: "templateId" });
  });
});

describe("an unsubscribe link", () => {
  const own = (wire: string): string =>
    /^List-Unsubscribe:\s+<https:\/\/mail\.example(\/u\/\S+)>/m.exec(wire)?.[1] ?? "";

  test("an unsubscribe link is separate for each recipient, signed with the message, and takes effect only by POST", async () => {
    await template({
      subject: "Stop by {{ unsubscribeUrl }}",
      html: '<a href="{{ unsubscribeUrl }}">stop</a>',
      text: "{{ unsubscribeUrl }}",
    });
    const sent = await send({
      templateId: "welcome",
      unsubscribeLink: true,
      to: [{ email: "a@one.test" }, { email: "b@one.test" }],
    });
    await service.message(sent, "sent");
    await relay.messages.reached(2);
    const [first, second] = relay.messages.items.toSorted((a, b) =>
      (a.rcptTo[0] ?? "").localeCompare(b.rcptTo[0] ?? ""),
    );
    const wire = first?.data.toString().replaceAll("=\r\n", "") ?? "";
    const path = own(wire);
    expect(path).toMatch(/^\/u\/[0-9a-z]{40,}$/);
    expect(own(second?.data.toString() ?? "")).not.toBe(path);
    expect(wire).toContain("List-Unsubscribe-Post: List-Unsubscribe=One-Click");
    expect(wire.match(new RegExp(`mail\\.example${path}`, "g"))?.length).toBe(4);
    expect(wire).toMatch(/^Subject: Stop by\s+https:\/\/mail\.example/m);
    expect(wire).toMatch(/h=[^;]*list-unsubscribe:[^;]*list-unsubscribe-post/is);

    const shown = await fetch(`${service.url}${path}`);
    expect(shown.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await shown.text()).toContain('<form method="post" action="?by=page&amp;topic=');
    expect((await service.call("GET", "/v1/contacts")).body.data).toEqual([]);

    for (let times = 0; times < 2; times++) {
      const taken = await fetch(`${service.url}${path}`, {
        method: "POST",
        body: "List-Unsubscribe=One-Click",
        headers: { "content-type": "application/x-www-form-urlencoded" },
      });
      expect(taken.status).toBe(200);
    }
    expect((await service.call("GET", "/v1/contacts")).body.data).toMatchObject([
      { email: "a@one.test", subscribed: false },
    ]);

    const again = await send({ templateId: "welcome", unsubscribeLink: true });
    expect((await service.message(again, "rejected")).recipients[0].reason).toBe("unsubscribed");
    const plain = await send({ templateId: "welcome" });
    expect((await service.message(plain, "sent")).status).toBe("sent");
  });

  test("an unsubscribe link is separate for each recipient even if a filter has made it part of another link", async () => {
    await template({
      html: '<a data-no-track href="https://prefs.test/?stop={{ unsubscribeUrl | url_encode }}">settings</a>',
      text: "https://prefs.test/?stop={{ unsubscribeUrl | url_encode }}&last={{ unsubscribeUrl | split: '/' | last }}",
    });
    const seen = relay.messages.items.length;
    await service.message(await send({ templateId: "welcome", unsubscribeLink: true }), "sent");
    await relay.messages.reached(seen + 1);
    const wire = relay.messages.items.at(-1)?.data.toString().replaceAll("=\r\n", "") ?? "";
    const path = own(wire);
    const encoded = encodeURIComponent(`https://mail.example${path}`);
    expect(path).not.toBe("");
    expect(wire.split(`https://prefs.test/?stop=3D${encoded}`)).toHaveLength(3);
    expect(wire).toContain(`&last=3D${path.slice("/u/".length)}`);
  });

  test("an unsubscribe link replaces its merge variable in inline subject, html and text, too, but only on request", async () => {
    const inline = {
      subject: "stop: {{unsubscribeUrl}}",
      html: "<a href='{{ unsubscribeUrl }}'>stop</a>",
      text: "stop: {{unsubscribeUrl}}",
    };
    for (const unsubscribeLink of [true, false]) {
      const seen = relay.messages.items.length;
      await service.message(await send({ ...inline, unsubscribeLink }), "sent");
      await relay.messages.reached(seen + 1);
      const wire = relay.messages.items.at(-1)?.data.toString().replaceAll("=\r\n", "") ?? "";
      const link = unsubscribeLink ? `https://mail.example${own(wire)}` : null;
      expect(wire).toContain(`\r\nstop: ${link ?? "{{unsubscribeUrl}}"}\r\n`);
      expect(wire.replaceAll("\r\n ", " ")).toContain(`Subject: stop: ${link ?? "{{unsubscribeUrl}}"}\r\n`);
      expect(wire).toContain(`'${link ?? "{{ unsubscribeUrl }}"}'`);
    }
  });

  test.each(["msg_00000000000000000000000000", "x", "0".repeat(48), "..%2f..%2fv1"])(
    "with the token %s is 404",
    async (token) => {
      for (const method of ["GET", "POST"])
        expect((await fetch(`${service.url}/u/${token}`, { method })).status).toBe(404);
      expect((await service.call("GET", "/v1/contacts")).body.data).toEqual([]);
    },
  );
});
