import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { MAX_USER_AGENT_CHARS, PREFETCH_WINDOW_MS } from "../../src/core/machine-agents.ts";
import { sealUrl } from "../../src/core/crypto/tracking-token.ts";
import { recipientToken } from "../../src/flows/mime/recipient-token.ts";
import { createHitRecorder, MAX_PENDING_HITS, RECORD_WAIT_MS } from "../../src/flows/deliver/track.ts";
import { parseMail } from "../../src/mail/reading/parse.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { type EngagementCounter, engagedRecipient, MAX_RECORDED } from "../../src/store/events/engagement.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { around } from "../support/around.ts";
import { manualClock } from "../support/manual-clock.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

const PUBLIC_URL = "https://mail.example";
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const TARGET = "https://shop.example/a?b=1&c=%2F#d";
const HTML = `<html><body><p>Hi</p><a href="https://shop.example/a?b=1&amp;c=%2F#d">shop</a></body></html>`;
const ONE = `delivered@simulator.${SERVICE_DOMAIN}`;
const TWO = `delivered+two@simulator.${SERVICE_DOMAIN}`;

let service: TestService;
beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
});
afterAll(() => service.stop());

const key = () => openKeys(null, service.folder).tracking;

/** Sends a test message and returns its id, once it has its final state. */
async function send(item: Record<string, unknown> = {}, status = "delivered"): Promise<string> {
  const from = `shop@onboarding.${SERVICE_DOMAIN}`;
  const id = await service.send({ from, to: ONE, subject: "Hello", html: HTML, ...item });
  await service.message(id, status);
  return id;
}

/** Sends a message that was delivered long enough ago for a person to open it. */
async function sendEarlier(item: Record<string, unknown> = {}): Promise<string> {
  const id = await send(item);
  await setDelivered(id, systemClock.now() - PREFETCH_WINDOW_MS);
  return id;
}

async function setDelivered(id: string, at: number): Promise<void> {
  await service.app.db.write([
    { sql: "UPDATE recipients SET last_event_at = ? WHERE message_id = ?", args: [at, id] },
  ]);
}

async function bodies(id: string): Promise<{ html: string; text: string }> {
  const { body } = await service.call("GET", `/v1/emails/${id}/raw`);
  const parsed = await parseMail(Buffer.from(body));
  return { html: parsed.html ?? "", text: parsed.text ?? "" };
}

/** The paths of a recipient's pixel and link in the message. */
const pixelOf = (id: string, ord = 0): string => `/o/${tokenOf(id, ord)}`;
const linkOf = (id: string, ord = 0, url = TARGET): string =>
  `/c/${tokenOf(id, ord)}.${sealUrl(key(), tokenOf(id, ord), url)}`;
const tokenOf = (messageId: string, ord: number): string => recipientToken(key(), { messageId, ord });

function visit(
  path: string,
  init: RequestInit & { headers?: Record<string, string> } = {},
): Promise<Response> {
  const headers = { "user-agent": BROWSER, ...init.headers };
  return fetch(`${service.url}${path}`, { redirect: "manual", ...init, headers });
}

interface ShownEvent {
  type: string;
  email: string;
  data: Record<string, Record<string, unknown>>;
}

/** The opens and clicks of a message, oldest first. */
async function hits(id: string): Promise<ShownEvent[]> {
  const { body } = await service.call("GET", `/v1/emails/${id}`);
  expect(["delivered", "accepted"]).toContain(body.status);
  return body.events.filter(({ type }: ShownEvent) => type === "open" || type === "click");
}

describe("a message", () => {
  test("carries one pixel and tracked links, and its text and other links stay", async () => {
    const text = `Shop: ${TARGET}`;
    const html = `<body><a href="https://shop.example/a?b=1&amp;c=%2F#d">shop</a><a href="mailto:a@b.test">m</a>
      <img src="cid:logo"><a href="{{unsubscribeUrl}}">stop</a></body>`;
    const id = await send({ html, text });
    const marked = await bodies(id);
    expect(marked.text.trim()).toBe(text);
    expect(marked.html).toContain(
      `<a href="${PUBLIC_URL}${linkOf(id)}">shop</a><a href="mailto:a@b.test">m</a>`,
    );
    expect(marked.html).toContain(`<img src="cid:logo">`);
    expect(marked.html.split(`<img src="${PUBLIC_URL}${pixelOf(id)}"`)).toHaveLength(2);
    expect((await service.call("GET", `/v1/emails/${id}`)).body.html).toBe(html);
  });

  test.each([
    [{ opens: false }, false, true],
    [{ clicks: false }, true, false],
    [{ opens: false, clicks: false }, false, false],
    [{}, true, true],
  ])("a message is tracked as it asks for: %j", async (tracking, opens, clicks) => {
    const { html } = await bodies(await send({ tracking }));
    expect(html.includes(`${PUBLIC_URL}/o/`)).toBe(opens);
    expect(html.includes(`${PUBLIC_URL}/c/`)).toBe(clicks);
  });

  test("a message is tracked by its project's setting if it has none of its own", async () => {
    const { body } = await service.call("GET", "/v1/senders", undefined, { key: service.accountKey });
    const path = `/v1/senders/${body.data[0].id}`;
    const set = (tracking: object) => service.call("PATCH", path, { tracking }, { key: service.accountKey });
    await set({ opens: false, clicks: false });
    const unmarked = await bodies(await send());
    const marked = await bodies(await send({ tracking: { clicks: true } }));
    await set({ opens: true, clicks: true });
    expect(unmarked.html.trim()).toBe(HTML);
    expect(marked.html).toContain(`${PUBLIC_URL}/c/`);
    expect(marked.html).not.toContain(`${PUBLIC_URL}/o/`);
  });

  test("a message with an empty html shows its text, and no pixel instead", async () => {
    const id = await send({ html: "", text: "It works." });
    const { body } = await service.call("GET", `/v1/emails/${id}/raw`);
    expect(body).toContain("Content-Type: text/plain");
    expect(body).not.toContain("Content-Type: text/html");
    expect((await bodies(id)).text.trim()).toBe("It works.");
  });

  test("a message keeps its unsubscribe link working", async () => {
    const id = await send({
      unsubscribeLink: true,
      html: `<a href="${PUBLIC_URL}/u/own">stop</a><a href="${TARGET}">shop</a>`,
    });
    const { body } = await service.call("GET", `/v1/emails/${id}/raw`);
    const { html } = await bodies(id);
    const link = /^List-Unsubscribe:\s+<https:\/\/mail\.example(\/u\/\S+)>/m.exec(body)?.[1] ?? "";
    expect(html).toContain(`<a href="${PUBLIC_URL}/u/own">stop</a><a href="${PUBLIC_URL}/c/`);
    expect((await visit(link)).status).toBe(200);
  });

  test("a message is not tracked for addresses it was not sent to", async () => {
    const scheduledAt = new Date(systemClock.now() + 3_600_000).toISOString();
    const id = await send({ scheduledAt }, "accepted");
    expect((await bodies(id)).html.trim()).toBe(HTML);
  });
});

describe("an open", () => {
  test("an open is answered with a pixel that must not be cached, and reported once as the first", async () => {
    const id = await sendEarlier();
    const answer = await visit(pixelOf(id));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("image/gif");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const gif = Buffer.from(await answer.arrayBuffer());
    expect(gif.subarray(0, 10)).toEqual(Buffer.from("GIF89a\x01\x00\x01\x00", "latin1"));
    await visit(pixelOf(id));
    const open = { ip: "127.0.0.1", userAgent: BROWSER, machine: false };
    expect(await hits(id)).toMatchObject([
      { type: "open", email: ONE, data: { open: { ...open, first: true } } },
      { type: "open", email: ONE, data: { open: { ...open, first: false } } },
    ]);
  });

  test("an open of many at once is the first only once", async () => {
    const id = await sendEarlier();
    await Promise.all(Array.from({ length: 20 }, () => visit(pixelOf(id))));
    const firsts = (await hits(id)).map(({ data }) => data.open?.first);
    expect(firsts).toHaveLength(20);
    expect(firsts.filter((first) => first === true)).toHaveLength(1);
  });

  test("an open is recorded for each recipient", async () => {
    const id = await sendEarlier({ to: [{ email: ONE }, { email: TWO }] });
    await visit(pixelOf(id, 1));
    await visit(pixelOf(id, 0));
    expect((await hits(id)).map(({ email, data }) => [email, data.open?.first])).toEqual([
      [TWO, true],
      [ONE, true],
    ]);
  });

  test("an open reaches the webhooks that want it, and so does a click", async () => {
    const pushed = Promise.withResolvers<void>();
    const bodies = new Map<string, unknown>();
    const sink = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const { type, data } = JSON.parse(await request.text());
        bodies.set(type, data);
        if (bodies.size === 2) pushed.resolve();
        return new Response();
      },
    });
    const url = `http://127.0.0.1:${sink.port}/`;
    const hook = await service.call("POST", "/v1/webhooks", { url, eventTypes: ["open", "click"] });
    const id = await sendEarlier({ tags: [{ name: "a", value: "b" }] });
    await visit(pixelOf(id));
    await visit(linkOf(id));
    await pushed.promise;
    await service.call("DELETE", `/v1/webhooks/${hook.body.id}`);
    await sink.stop(true);
    const seen = { ip: "127.0.0.1", userAgent: BROWSER, machine: false };
    const common = { messageId: id, email: ONE, tags: [{ name: "a", value: "b" }] };
    expect(bodies.get("open")).toMatchObject({ ...common, open: { ...seen, first: true } });
    expect(bodies.get("click")).toMatchObject({ ...common, click: { ...seen, url: TARGET } });
  });
});

describe("a click", () => {
  test("leads to exactly the URL, sends the page no Referer, and is reported", async () => {
    const id = await sendEarlier();
    const answer = await visit(linkOf(id));
    expect(answer.status).toBe(302);
    expect(answer.headers.get("location")).toBe(TARGET);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(await answer.text()).toBe("");
    expect(await hits(id)).toMatchObject([
      {
        type: "click",
        email: ONE,
        data: { click: { url: TARGET, ip: "127.0.0.1", userAgent: BROWSER, machine: false } },
      },
    ]);
  });

  test.each([
    ["beyond ASCII", "https://münchen.test/ä", "https://xn--mnchen-3ya.test/%C3%A4"],
    ["of the greatest length", `https://a.test/${"x".repeat(2033)}`, `https://a.test/${"x".repeat(2033)}`],
  ])("a click on a URL %s leads there", async (_what, url, location) => {
    const id = await sendEarlier();
    expect((await visit(linkOf(id, 0, url))).headers.get("location")).toBe(location);
    expect((await hits(id))[0]?.data.click?.url).toBe(url);
  });

  test("still redirects when the message is removed, and after a restart", async () => {
    const id = await sendEarlier();
    await service.app.db.write([{ sql: "DELETE FROM messages WHERE id = ?", args: [id] }]);
    expect((await visit(linkOf(id))).headers.get("location")).toBe(TARGET);
    expect((await visit(pixelOf(id))).status).toBe(200);
    await service.restart();
    expect((await visit(linkOf(id))).headers.get("location")).toBe(TARGET);
  });
});

describe("a visit of a machine is reported as one", () => {
  test.each([
    ["HEAD", { method: "HEAD" }],
    ["Gmail's proxy", { headers: { "user-agent": "Mozilla/5.0 (via ggpht.com GoogleImageProxy)" } }],
    ["a prefetch", { headers: { "sec-purpose": "prefetch" } }],
    ["an older prefetch", { headers: { purpose: "prefetch" } }],
    ["Firefox's prefetch", { headers: { "x-moz": "prefetch" } }],
  ])("%s", async (_who, init) => {
    const id = await sendEarlier();
    for (const [path, status] of [
      [pixelOf(id), 200],
      [linkOf(id), 302],
    ] as const) {
      const answer = await visit(path, init);
      expect(answer.status).toBe(status);
      if ("method" in init) expect(await answer.text()).toBe("");
    }
    const told = await hits(id);
    expect(told.map(({ data }) => (data.open ?? data.click)?.machine)).toEqual([true, true]);
  });

  test("a visitor within seconds of the delivery", async () => {
    const id = await send();
    await setDelivered(id, systemClock.now());
    await visit(linkOf(id));
    expect((await hits(id))[0]?.data.click?.machine).toBe(true);
  });

  test("no visitor of a message delivered while the clock was ahead", async () => {
    const id = await send();
    await setDelivered(id, systemClock.now() + 3_600_000);
    await visit(linkOf(id));
    expect((await hits(id))[0]?.data.click?.machine).toBe(false);
  });
});

test("a contact keeps when a message last left, and when a person, not a machine, last opened and clicked", async () => {
  const to = `delivered+kept@simulator.${SERVICE_DOMAIN}`;
  const { body: contact } = await service.call("POST", "/v1/contacts", { email: to });
  const times = async () => {
    const { body } = await service.call("GET", `/v1/contacts/${contact.id}`);
    return [body.lastSentAt, body.lastOpenedAt, body.lastClickedAt].map((time) => typeof time);
  };
  const none = "object";
  expect(await times()).toEqual([none, none, none]);
  const id = await sendEarlier({ to });
  expect(await times()).toEqual(["string", none, none]);
  await visit(pixelOf(id), { headers: { "user-agent": "curl/8.5.0" } });
  expect(await times()).toEqual(["string", none, none]);
  await visit(pixelOf(id));
  expect(await times()).toEqual(["string", "string", none]);
  await visit(linkOf(id));
  expect(await times()).toEqual(["string", "string", "string"]);
});

describe("a stranger", () => {
  let mine = "";
  let other = "";
  beforeAll(async () => {
    mine = await sendEarlier();
    other = await sendEarlier();
  });

  const sealed = (id: string, url = TARGET): string => sealUrl(key(), tokenOf(id, 0), url);
  const attacks: readonly [string, () => string][] = [
    ["a URL altered", () => `/c/${tokenOf(mine, 0)}.${sealed(mine).slice(0, -2)}QQ`],
    ["another message's URL", () => `/c/${tokenOf(mine, 0)}.${sealed(other)}`],
    ["another message's token", () => `/c/${tokenOf(other, 0)}.${sealed(mine)}`],
    ["another recipient's token", () => `/c/${tokenOf(mine, 1)}.${sealed(mine)}`],
    ["javascript, sealed by ourselves", () => linkOf(mine, 0, "javascript:alert(1)")],
    ["javascript after a slash pair", () => linkOf(mine, 0, "javascript://shop.example/%0aalert(1)")],
    ["data", () => linkOf(mine, 0, "data:text/html,<script>alert(1)</script>")],
    ["no scheme", () => linkOf(mine, 0, "//evil.test/")],
    ["a header field", () => linkOf(mine, 0, "https://a.test/\r\nSet-Cookie: a=b")],
    ["a URL in the open", () => `/c/${tokenOf(mine, 0)}.https:%2f%2fevil.test`],
    ["a URL as a path", () => `/c/${tokenOf(mine, 0)}.https://evil.test/`],
    ["a URL in the query", () => `/c/${tokenOf(mine, 0)}?url=https://evil.test/`],
    ["two slashes", () => `//evil.test/c/${tokenOf(mine, 0)}.${sealed(mine)}`],
    ["padding", () => `/c/${tokenOf(mine, 0)}.${sealed(mine)}=`],
    ["a newline at the end", () => `/c/${tokenOf(mine, 0)}.${sealed(mine)}%0d%0a`],
    ["a NUL at the end", () => `/c/${tokenOf(mine, 0)}.${sealed(mine)}%00`],
    ["a broken escape", () => `/c/${tokenOf(mine, 0)}.%zz`],
    ["no target", () => `/c/${tokenOf(mine, 0)}.`],
    ["a picture of no message", () => `/o/${"0".repeat(48)}`],
    ["a picture of a message id", () => `/o/${mine}`],
    ["a picture altered", () => `/o/${tokenOf(mine, 0).slice(0, -1)}!`],
    ["an endless token", () => `/o/${"0".repeat(8000)}`],
  ];
  test.each(attacks)("a stranger gets 404 and no redirect with %s", async (_what, path) => {
    const answer = await visit(path());
    expect(answer.status).toBe(404);
    expect(answer.headers.get("location")).toBeNull();
    expect(await answer.json()).toMatchObject({ error: { type: "not_found" } });
  });

  test("a stranger leaves no event behind", async () => {
    expect([await hits(mine), await hits(other)]).toEqual([[], []]);
  });

  test.each(["POST", "PUT", "DELETE", "PATCH"])("a stranger cannot %s", async (method) => {
    for (const path of [pixelOf(mine), linkOf(mine)]) {
      const answer = await visit(path, { method });
      expect([answer.status, answer.headers.get("location")]).toEqual([405, null]);
    }
  });

  test("records nothing with a name of endless length or of control characters", async () => {
    const id = await sendEarlier();
    await visit(pixelOf(id), {
      headers: { "user-agent": `a\u0085b\t${"x".repeat(2 * MAX_USER_AGENT_CHARS)}` },
    });
    const agent = (await hits(id))[0]?.data.open?.userAgent;
    expect(agent).toBe(`ab${"x".repeat(MAX_USER_AGENT_CHARS - 4)}`);
  });
});

describe("visits of a recipient are bounded", () => {
  const rows: readonly [EngagementCounter, (id: string) => string, RequestInit][] = [
    ["opens", pixelOf, {}],
    ["machine_opens", pixelOf, { method: "HEAD" }],
    ["clicks", linkOf, {}],
    ["machine_clicks", linkOf, { method: "HEAD" }],
  ];
  test.each(rows)("by %s: one more is answered and not reported", async (counter, path, init) => {
    const id = await sendEarlier();
    const { db } = service.app;
    await db.write([
      {
        sql: `INSERT INTO engagement (message_id, ord, ${counter}) VALUES (?, 0, ?)`,
        args: [id, MAX_RECORDED - 1],
      },
    ]);
    const answers = await Promise.all([1, 2, 3].map(() => visit(path(id), init as object)));
    expect(new Set(answers.map(({ status }) => status)).size).toBe(1);
    expect(answers[0]?.status).toBeLessThan(400);
    expect(await hits(id)).toHaveLength(1);
    expect((await engagedRecipient(db, id, 0))?.counts[counter]).toBe(MAX_RECORDED);
    // Another kind of visit has its own limit.
    await visit(path(id), counter.startsWith("machine") ? {} : { method: "HEAD" });
    expect(await hits(id)).toHaveLength(2);
  });
});

describe("a database failure", () => {
  test("a database failure delays no visitor, and holds a limited number of visits", async () => {
    const id = await send();
    const clock = manualClock(systemClock.now());
    const { db, queue } = service.app;
    let asked = 0;
    const gate = Promise.withResolvers<null>();
    const stuck: Db = {
      ...around(db),
      first: () => {
        asked++;
        return gate.promise;
      },
    };
    const record = createHitRecorder({ db: stuck, clock, queue, publicUrl: PUBLIC_URL, trackingKey: key() });
    const hit = {
      recipient: { messageId: id, ord: 0 },
      url: null,
      visit: { method: "GET", ip: null, userAgent: BROWSER, purpose: null },
    };
    const answered = Array.from({ length: MAX_PENDING_HITS }, () => record(hit));
    await record(hit);
    expect(asked).toBe(MAX_PENDING_HITS);
    clock.advance(RECORD_WAIT_MS);
    await Promise.all(answered);
    gate.resolve(null);
    await new Promise((resolve) => setImmediate(resolve));
    await record(hit);
    expect(asked).toBe(MAX_PENDING_HITS + 1);
    expect(clock.pending()).toBe(0);
  });

  test("breaks neither link nor pixel", async () => {
    const id = await sendEarlier();
    await service.app.db.write([{ sql: "DROP TABLE engagement", args: [] }]);
    expect((await visit(linkOf(id))).headers.get("location")).toBe(TARGET);
    expect((await visit(pixelOf(id))).status).toBe(200);
    expect(await hits(id)).toEqual([]);
  });
});
