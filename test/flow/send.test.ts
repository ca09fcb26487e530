import { afterEach, describe, expect, test } from "bun:test";
import { startMx, type TestMx } from "../support/mx.ts";
import { OWNER, SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
const peers: TestMx[] = [];

afterEach(async () => {
  await service.stop();
  for (const peer of peers.splice(0)) peer.stop();
});

const types = (record: { events: { type: string }[] }) => record.events.map((event) => event.type);

/**
 * An independent mail server, and the zone that points to it. All peers of a test share the port, on different
 * addresses.
 */
function mxFor(domain: string, options: Parameters<typeof startMx>[0] = {}, preference = 10): TestMx {
  const peer = startMx(options);
  peers.push(peer);
  const host = `mx${preference}.${domain}`;
  service.dns.add(
    { name: domain, type: "MX", data: { preference, exchange: host } },
    { name: host, type: "A", data: peer.ip },
  );
  return peer;
}

const mail = (to: string, more: Record<string, unknown> = {}) => ({
  from: { email: "news@sender.test", name: "News" },
  to: [{ email: to }],
  subject: "Grüße",
  text: "Hello\n.dot\n",
  ...more,
});

describe("capture", () => {
  test("the first send needs no domain: from the onboarding domain to the owner", async () => {
    service = await startService();
    const sent = await service.call(
      "POST",
      "/v1/emails",
      mail(OWNER, { from: { email: `hi@onboarding.${SERVICE_DOMAIN}` } }),
    );
    expect(sent.status).toBe(202);
    expect(sent.body).toEqual({ id: sent.body.id, status: "queued" });
    const record = await service.message(sent.body.id, "delivered");
    expect(types(record)).toEqual(["accepted", "queued", "sending", "delivery"]);
    expect(record.text).toBe("Hello\n.dot\n");
    expect(record.recipients).toMatchObject([
      { email: OWNER, status: "delivered", attempts: 1, mx: "capture" },
    ]);
  });

  test("test mode delivers only to the owner and the simulator", async () => {
    service = await startService();
    const refused = await service.call(
      "POST",
      "/v1/emails",
      mail("stranger@example.com", { from: { email: `hi@onboarding.${SERVICE_DOMAIN}` } }),
    );
    expect(refused.status).toBe(403);
    expect(refused.body.error).toMatchObject({
      type: "permission_error",
      code: "test_mode_recipient",
      param: "to",
    });
  });

  test("an unverified domain is refused", async () => {
    service = await startService();
    const refused = await service.call("POST", "/v1/emails", mail("a@example.com"));
    expect(refused.status).toBe(403);
    expect(refused.body.error).toMatchObject({ code: "domain_not_verified", param: "from.email" });
  });
});

describe("relay", () => {
  test("all mail goes to the smarthost, one transaction for each recipient, with its own return path", async () => {
    const relay = startMx();
    peers.push(relay);
    service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
    await verifiedDomain(service, "sender.test");
    const sent = await service.call(
      "POST",
      "/v1/emails",
      mail("a@one.test", { cc: [{ email: "b@two.test" }], bcc: [{ email: "c@three.test" }] }),
    );
    const record = await service.message(sent.body.id, "sent");
    await relay.messages.reached(3);
    const messages = relay.messages.items;
    expect(messages.flatMap((message) => message.rcptTo).sort()).toEqual([
      "a@one.test",
      "b@two.test",
      "c@three.test",
    ]);
    const paths = messages.map((message) => message.mailFrom);
    expect(new Set(paths).size).toBe(3);
    for (const path of paths) expect(path).toMatch(new RegExp(`^b\\+[0-9a-z]+@bounce\\.${SERVICE_DOMAIN}$`));
    for (const { data } of messages) {
      const text = data.toString();
      expect(text).not.toContain("c@three.test");
      expect(text).toContain("DKIM-Signature: v=1; a=rsa-sha256");
      expect(text).toMatch(/^Subject: =\?UTF-8\?/im);
    }
    expect(record.recipients.map((recipient: { status: string }) => recipient.status)).toEqual([
      "sent",
      "sent",
      "sent",
    ]);
    expect(types(record).filter((type) => type === "sent").length).toBe(3);
  });
});

describe("mx", () => {
  async function startMxService(env: Record<string, string> = {}): Promise<TestMx> {
    const peer = startMx();
    peers.push(peer);
    service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(peer.port), ...env });
    await verifiedDomain(service, "sender.test");
    return peer;
  }

  test("mail goes to the MX host of the recipient's domain and is delivered by its 250", async () => {
    const peer = await startMxService();
    service.dns.add(
      { name: "there.test", type: "MX", data: { preference: 10, exchange: "mx.there.test" } },
      { name: "mx.there.test", type: "A", data: "127.0.0.1" },
    );
    const sent = await service.call("POST", "/v1/emails", mail("a@there.test"));
    const record = await service.message(sent.body.id, "delivered");
    expect(record.recipients[0]).toMatchObject({ mx: "mx.there.test", smtpCode: 250, attempts: 1 });
    const { data } = await peer.messages.reached(1);
    expect(data.toString()).toContain("\r\nHello\r\n.dot\r\n");
  });

  test("the next host is used if the preferred one is unreachable", async () => {
    await startMxService();
    service.dns.add(
      { name: "two.test", type: "MX", data: { preference: 10, exchange: "dead.two.test" } },
      { name: "two.test", type: "MX", data: { preference: 20, exchange: "mx.two.test" } },
      // No server listens there on the port of the test's peer.
      { name: "dead.two.test", type: "A", data: "127.0.0.9" },
      { name: "mx.two.test", type: "A", data: "127.0.0.1" },
    );
    const sent = await service.call("POST", "/v1/emails", mail("a@two.test"));
    expect((await service.message(sent.body.id, "delivered")).recipients[0].mx).toBe("mx.two.test");
  });

  test("the next host is used if the preferred one defers, all in one attempt", async () => {
    const peer = await startMxService();
    const busy = startMx({ ip: "127.0.0.2", port: peer.port, answers: { RCPT: "450 4.2.1 busy" } });
    peers.push(busy);
    service.dns.add(
      { name: "two.test", type: "MX", data: { preference: 10, exchange: "busy.two.test" } },
      { name: "two.test", type: "MX", data: { preference: 20, exchange: "mx.two.test" } },
      { name: "busy.two.test", type: "A", data: "127.0.0.2" },
      { name: "mx.two.test", type: "A", data: "127.0.0.1" },
    );
    const sent = await service.call("POST", "/v1/emails", mail("a@two.test"));
    const record = await service.message(sent.body.id, "delivered");
    expect(record.recipients[0]).toMatchObject({ mx: "mx.two.test", attempts: 1 });
    const { data } = (await service.call("GET", `/v1/emails/${sent.body.id}/attempts`)).body;
    expect(data.map(({ lines }: { lines: string[] }) => lines.includes("S: 450 4.2.1 busy"))).toEqual([true]);
    expect(busy.messages.items).toHaveLength(0);
  });

  test("a domain with an address and no MX is its own mail host", async () => {
    await startMxService();
    service.dns.add({ name: "bare.test", type: "A", data: "127.0.0.1" });
    const sent = await service.call("POST", "/v1/emails", mail("a@bare.test"));
    expect((await service.message(sent.body.id, "delivered")).recipients[0].mx).toBe("bare.test");
  });

  test.each([
    ["that does not exist", "nowhere.test"],
    ["with a null MX", "null.test"],
  ])("a domain %s is a hard bounce at once, and its address is suppressed", async (_, domain) => {
    await startMxService();
    service.dns.add({ name: "null.test", type: "MX", data: { preference: 0, exchange: "." } });
    const sent = await service.call("POST", "/v1/emails", mail(`a@${domain}`));
    const record = await service.message(sent.body.id, "bounced");
    expect(record.events.at(-1)).toMatchObject({ type: "bounce", data: { bounce: { type: "hard" } } });
    const again = await service.call("POST", "/v1/emails", mail(`A@${domain}`));
    expect(again.body.status).toBe("queued");
    const rejected = await service.message(again.body.id, "rejected");
    expect(rejected.recipients[0]).toMatchObject({ status: "rejected", reason: "suppressed", attempts: 0 });
  });

  test("if DNS fails, mail is delayed, and sent once it answers", async () => {
    await startMxService({ DELIVERY_RETRY_SECONDS: "0.05" });
    service.dns.add({ name: "late.test", type: "A", data: "127.0.0.1" });
    service.dns.behave("servfail", "late.test");
    const sent = await service.call("POST", "/v1/emails", mail("a@late.test"));
    await service.message(sent.body.id, "delivery_delayed");
    service.dns.behave("answer", "late.test");
    const record = await service.message(sent.body.id, "delivered");
    expect(record.recipients[0].attempts).toBeGreaterThan(1);
    expect(types(record)).toContain("delivery_delayed");
  });

  test("a 4xx is retried by the schedule, a 5xx is final", async () => {
    const peer = await startMxService({ DELIVERY_RETRY_SECONDS: "0.05" });
    service.dns.add({ name: "moody.test", type: "A", data: "127.0.0.1" });
    peer.set({ RCPT: ["451 4.3.0 Later", "250 ok"] });
    const putOff = await service.call("POST", "/v1/emails", mail("a@moody.test"));
    const delivered = await service.message(putOff.body.id, "delivered");
    expect(delivered.recipients[0].attempts).toBe(2);
    const delayed = delivered.events.find((event: { type: string }) => event.type === "delivery_delayed");
    expect(delayed.data.delivery_delayed).toMatchObject({ attempt: 1, smtpCode: 451, enhancedCode: "4.3.0" });

    peer.set({ RCPT: "550 5.1.1 No such user" });
    const unknown = await service.call("POST", "/v1/emails", mail("b@moody.test"));
    const bounced = await service.message(unknown.body.id, "bounced");
    expect(bounced.recipients[0]).toMatchObject({ smtpCode: 550, enhancedCode: "5.1.1", attempts: 1 });

    peer.set({ RCPT: "250 ok", ".": "554 5.7.1 Content refused" });
    const refused = await service.call("POST", "/v1/emails", mail("c@moody.test"));
    expect((await service.message(refused.body.id, "failed")).recipients[0].enhancedCode).toBe("5.7.1");
    peer.set({ ".": "250 ok" });
    const next = await service.call("POST", "/v1/emails", mail("c@moody.test"));
    expect((await service.message(next.body.id, "delivered")).status).toBe("delivered");
  });

  test("a recipient deferred for too long is given up as a soft bounce", async () => {
    const peer = await startMxService({ DELIVERY_RETRY_SECONDS: "0.02", DELIVERY_GIVE_UP_SECONDS: "0.1" });
    service.dns.add({ name: "full.test", type: "A", data: "127.0.0.1" });
    peer.set({ RCPT: "452 4.2.2 Mailbox full" });
    const sent = await service.call("POST", "/v1/emails", mail("a@full.test"));
    const record = await service.message(sent.body.id, "bounced");
    expect(record.events.at(-1).data.bounce).toMatchObject({ type: "soft", reason: "retries_exhausted" });
  });

  test("recipients are settled one by one, and the message shows the worst of them", async () => {
    const peer = await startMxService();
    service.dns.add({ name: "mixed.test", type: "A", data: "127.0.0.1" });
    peer.set({ RCPT: (argument) => (argument.includes("bad@") ? "550 5.1.1 Unknown" : "250 ok") });
    const sent = await service.call(
      "POST",
      "/v1/emails",
      mail("good@mixed.test", { cc: [{ email: "bad@mixed.test" }] }),
    );
    const record = await service.message(sent.body.id, "bounced");
    expect(record.recipients.map((one: { status: string }) => one.status)).toEqual(["delivered", "bounced"]);
  });

  test("the hosts of a domain are tried in the order of their preference", async () => {
    await startMxService();
    const backup = mxFor("order.test", { ip: "127.0.0.3", port: peers[0]?.port ?? 0 }, 20);
    const first = mxFor("order.test", { ip: "127.0.0.2", port: peers[0]?.port ?? 0 }, 10);
    const sent = await service.call("POST", "/v1/emails", mail("a@order.test"));
    await service.message(sent.body.id, "delivered");
    expect(first.messages.items.length).toBe(1);
    expect(backup.messages.items.length).toBe(0);
  });
});

test("attachments, headers and tags arrive as they were posted", async () => {
  const relay = startMx();
  peers.push(relay);
  service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
  await verifiedDomain(service, "sender.test");
  const bytes = crypto.getRandomValues(new Uint8Array(5000));
  const sent = await service.call(
    "POST",
    "/v1/emails",
    mail("a@one.test", {
      html: "<p>Hi</p>",
      headers: { "X-Campaign": "spring" },
      tags: [{ name: "kind", value: "news" }],
      replyTo: [{ email: "answer@sender.test" }],
      // An override would show the name's end reversed.
      attachments: [{ filename: "Über\u202esicht.bin", content: Buffer.from(bytes).toString("base64") }],
    }),
  );
  const record = await service.message(sent.body.id, "sent");
  expect(record).toMatchObject({
    tags: [{ name: "kind", value: "news" }],
    headers: { "X-Campaign": "spring" },
    replyTo: ["answer@sender.test"],
    attachments: [{ filename: "Übersicht.bin", size: 5000, disposition: "attachment" }],
  });
  const { default: PostalMime } = await import("postal-mime");
  const parsed = await PostalMime.parse((await relay.messages.reached(1)).data);
  expect(parsed.attachments[0]?.filename).toBe("Übersicht.bin");
  expect(new Uint8Array(parsed.attachments[0]?.content as ArrayBuffer)).toEqual(bytes);
  expect(parsed.headers.find((header) => header.key === "x-campaign")?.value).toBe("spring");
  expect(parsed.replyTo?.[0]?.address).toBe("answer@sender.test");
});

test("if a message's domain was deleted, its bytes can still be read, but are not signed", async () => {
  const relay = startMx();
  peers.push(relay);
  service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
  const id = await verifiedDomain(service, "sender.test");
  // A small message is composed on the event loop, a large one in a thread.
  const texts = ["Hi", "large".repeat(12_000)];
  const sent = texts.map((text) => service.call("POST", "/v1/emails", mail("a@one.test", { text })));
  const ids = (await Promise.all(sent)).map(({ body }) => body.id);
  for (const one of ids) await service.message(one, "sent");
  expect((await service.call("DELETE", `/v1/domains/${id}`)).status).toBe(204);
  for (const [at, one] of ids.entries()) {
    const raw = await service.call("GET", `/v1/emails/${one}/raw`);
    expect(raw.status).toBe(200);
    expect(raw.body).toStartWith("From: ");
    expect(raw.body.replaceAll("=\r\n", "")).toContain(texts[at] ?? "");
  }
});

describe("batch", () => {
  test("valid items are sent, invalid ones say why, in their order", async () => {
    service = await startService();
    await verifiedDomain(service, "sender.test");
    const answer = await service.call("POST", "/v1/emails/batch", {
      emails: [
        mail("a@one.test"),
        { ...mail("b@one.test"), to: [{ email: "nobody" }] },
        mail("c@one.test", { from: { email: "x@other.test" } }),
        null,
        ["d@one.test"],
        mail("e@one.test", { text: " ", html: "" }),
      ],
    });
    expect(answer.status).toBe(207);
    expect(answer.body.data[0].id).toMatch(/^msg_/);
    expect(answer.body.data[1].error).toMatchObject({ code: "invalid_email", param: "to[0].email" });
    expect(answer.body.data[2].error).toMatchObject({ code: "domain_not_verified" });
    for (const at of [3, 4])
      expect(answer.body.data[at].error).toMatchObject({
        code: "invalid_item",
        param: "",
        type: "validation_error",
      });
    expect(answer.body.data[5].error).toMatchObject({ code: "missing_field", param: "html" });
    expect((await service.message(answer.body.data[0].id, "delivered")).status).toBe("delivered");
  });

  test("101 items are refused as a whole", async () => {
    service = await startService();
    const answer = await service.call("POST", "/v1/emails/batch", {
      emails: Array.from({ length: 101 }, () => ({})),
    });
    expect(answer.status).toBe(422);
    expect(answer.body.error.param).toBe("emails");
  });
});

describe("an Idempotency-Key", () => {
  const headers = { "Idempotency-Key": "once" };

  test("an Idempotency-Key sends once and gives the same answer again; another body is a conflict", async () => {
    service = await startService();
    await verifiedDomain(service, "sender.test");
    const first = await service.call("POST", "/v1/emails", mail("a@one.test"), { headers });
    const again = await service.call("POST", "/v1/emails", mail("a@one.test"), { headers });
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("Idempotent-Replayed")).toBe("true");
    const other = await service.call("POST", "/v1/emails", mail("b@one.test"), { headers });
    expect(other.status).toBe(409);
    expect(other.body.error.code).toBe("idempotency_mismatch");
    expect((await service.call("GET", "/v1/emails")).body.data.length).toBe(1);
  });

  test("if twenty are sent at once, exactly one sends", async () => {
    service = await startService();
    await verifiedDomain(service, "sender.test");
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => service.call("POST", "/v1/emails", mail("a@one.test"), { headers })),
    );
    expect(new Set(answers.map((answer) => answer.status)).isSubsetOf(new Set([202, 409]))).toBe(true);
    expect((await service.call("GET", "/v1/emails")).body.data.length).toBe(1);
  });

  test("a refused request leaves the key free", async () => {
    service = await startService();
    await verifiedDomain(service, "sender.test");
    const refused = await service.call("POST", "/v1/emails", mail("nobody"), { headers });
    expect(refused.status).toBe(422);
    expect((await service.call("POST", "/v1/emails", mail("a@one.test"), { headers })).status).toBe(202);
  });
});

test("a scheduled send waits as accepted and is sent at its time", async () => {
  service = await startService();
  await verifiedDomain(service, "sender.test");
  const at = new Date(Date.now() + 1500).toISOString();
  const sent = await service.call("POST", "/v1/emails", mail("a@one.test", { scheduledAt: at }));
  expect(sent.body).toMatchObject({ status: "accepted", scheduledAt: at });
  const record = await service.message(sent.body.id, "delivered");
  expect(types(record)).toEqual(["accepted", "queued", "sending", "delivery"]);
  expect(record.events[1].createdAt >= at).toBe(true);
});
