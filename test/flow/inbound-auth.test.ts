import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sealMessage } from "mailauth/lib/arc";
import { createTransport } from "nodemailer";
import { compose } from "../../src/mail/composing/compose.ts";
import {
  type DkimKey,
  dkimPrivateKey,
  dkimRecord,
  generateDkimKey,
  signDkim,
} from "../../src/mail/auth/dkim.ts";
import { systemClock } from "../../src/clock.ts";
import { DUPLICATE_WINDOW_MS } from "../../src/flows/receive/arrival-facts.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import {
  receivingInboxes,
  SERVICE_DOMAIN,
  startService,
  type TestService,
  verifiedDomain,
} from "../support/service.ts";

const HOST = `mx.${SERVICE_DOMAIN}`;
let service: TestService;
let sink: HttpsSink;
let key: DkimKey;
let inboxes: string[];

beforeAll(async () => {
  service = await startService();
  inboxes = await receivingInboxes(service, "in.test", ["a@in.test", "b@in.test"]);
  sink = startSink();
  const eventTypes = ["inbound_received", "inbound_rejected"];
  await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes });
  key = await generateDkimKey();
});
afterAll(async () => {
  await service.stop();
  await sink.stop();
});

let domains = 0;

interface Author {
  domain: string;
  /** The records of its domain, `_dmarc` without its version. */
  dmarc?: string;
  spf?: string;
  key?: boolean;
}

/** A new domain with its records, because names are cached. */
function author({ domain = `d${++domains}.test`, dmarc, spf, key: hasKey }: Partial<Author>): string {
  if (dmarc !== undefined)
    service.dns.add({ name: `_dmarc.${domain}`, type: "TXT", data: `v=DMARC1; ${dmarc}` });
  if (spf !== undefined) service.dns.add({ name: domain, type: "TXT", data: `v=spf1 ${spf}` });
  if (hasKey)
    service.dns.add({
      name: `k._domainkey.${domain}`,
      type: "TXT",
      data: inStrings(dkimRecord(key.publicKeyBase64)),
    });
  return domain;
}

/** A TXT record's text in strings of at most 255 bytes. */
function inStrings(text: string): string[] {
  return text.match(/.{1,255}/g) ?? [];
}

let mails = 0;

function mailOf(domain: string, text = "Hello"): Buffer {
  return compose({
    from: { email: `ann@${domain}`, name: "Ann" },
    to: [{ email: "a@in.test" }],
    subject: "Hi",
    text,
    messageId: `<m${++mails}@${domain}>`,
    date: 0,
  }).raw;
}

function signed(raw: Buffer, domain: string): Promise<Buffer> {
  return signDkim({ raw, domain, keys: [{ selector: "k", privateKey: dkimPrivateKey(key.privateKeyPem) }] });
}

/** Delivers a message to the listener as another server does. Returns its last reply. */
async function deliver(
  raw: Buffer,
  from: string,
  to: string[] = ["a@in.test"],
  port = service.smtpPort,
): Promise<string> {
  const transport = createTransport({
    host: "127.0.0.1",
    port,
    ignoreTLS: true,
    name: "out.test",
  });
  try {
    return (await transport.sendMail({ envelope: { from, to }, raw })).response;
  } catch (error) {
    return error instanceof Error && "response" in error ? String(error.response) : String(error);
  } finally {
    transport.close();
  }
}

/** The webhook's payload for a message. */
async function pushedOf(messageId: string) {
  for (let at = 1; ; at++) {
    const said = JSON.parse((await sink.requests.reached(at)).body);
    if (said.data.messageId === messageId) return said;
  }
}

/** The newest inbound record that has this sender. */
async function record(email: string) {
  const list = await service.call("GET", `/v1/emails?direction=inbound&from=${encodeURIComponent(email)}`);
  const [newest] = list.body.data;
  return newest === undefined ? null : (await service.call("GET", `/v1/emails/${newest.id}`)).body;
}

async function raw(id: string): Promise<string> {
  return (await service.call("GET", `/v1/emails/${id}/raw`)).body;
}

describe("the authentication result of a message", () => {
  test("the authentication result of a message is in the record, in its event, and on top of the raw bytes", async () => {
    const domain = author({ dmarc: "p=reject", spf: "ip4:127.0.0.1 -all", key: true });
    const mail = await signed(mailOf(domain), domain);
    expect(await deliver(mail, `ann@${domain}`)).toStartWith("250");
    const shown = await record(`ann@${domain}`);
    const auth = {
      spf: { result: "pass", domain },
      dkim: [{ result: "pass", domain, selector: "k" }],
      dmarc: { result: "pass", policy: "reject", domain },
      arc: { result: "none" },
    };
    expect(shown).toMatchObject({ status: "delivered", auth, from: `ann@${domain}` });
    expect(await pushedOf(shown.id)).toMatchObject({
      type: "inbound_received",
      data: { inbound_received: { auth } },
    });
    const kept = await raw(shown.id);
    const lines = kept.split("\r\n").filter((line) => /^\S/.test(line));
    expect(lines[0]).toBe(`Return-Path: <ann@${domain}>`);
    expect(lines[1]).toStartWith(`Authentication-Results: ${HOST};`);
    expect(lines[2]).toStartWith("Received: from out.test ([127.0.0.1])");
    expect(kept.endsWith(mail.toString("latin1"))).toBe(true);
    expect(kept.length - mail.length).toBeLessThan(2000);
  });

  test("the authentication result of a message is our own result, whatever the message claims about itself", async () => {
    const domain = author({ dmarc: "p=none", spf: "-all" });
    const forged = `Authentication-Results: ${HOST}; dmarc=pass header.from=${domain}; spf=pass\r\n`;
    const honest = mailOf(domain);
    const mail = Buffer.concat([Buffer.from(forged), honest]);
    expect(await deliver(mail, `ann@${domain}`)).toStartWith("250");
    const shown = await record(`ann@${domain}`);
    expect(shown.auth).toMatchObject({ spf: { result: "fail" }, dmarc: { result: "fail", policy: "none" } });
    expect(shown.headers["Authentication-Results"]).toContain("dmarc=fail");
    expect(shown.headers["Authentication-Results"]).not.toContain("pass");
    // The rest of the bytes stays as it came.
    const kept = await raw(shown.id);
    expect(kept.endsWith(honest.toString("latin1"))).toBe(true);
    expect(kept.match(/^Authentication-Results:/gim)).toHaveLength(1);
  });

  test("the authentication result of a message follows the domain's current records, even if its last message had another result", async () => {
    const domain = `d${++domains}.test`;
    const publish = (spf: string): void => {
      service.dns.remove(domain);
      service.dns.add({ name: domain, type: "TXT", ttl: 0, data: `v=spf1 ${spf}` });
    };
    service.dns.add({ name: `_dmarc.${domain}`, type: "TXT", ttl: 0, data: "v=DMARC1; p=reject" });
    const [here, nowhere] = ["ip4:127.0.0.1 -all", "-all"];
    const replies: string[] = [];
    for (const spf of [here, here, nowhere, nowhere, here]) {
      publish(spf);
      replies.push((await deliver(mailOf(domain), `ann@${domain}`)).slice(0, 3));
    }
    expect(replies).toEqual(["250", "250", "550", "550", "250"]);
  });

  test("the authentication result of a message is empty for a simulated message", async () => {
    const simulated = await service.call("POST", "/v1/inbound/simulate", { inboxId: inboxes[0], text: "x" });
    const { body } = await service.call("GET", `/v1/emails/${simulated.body.messageId}`);
    expect(body.auth).toMatchObject({ spf: { result: "none" }, dmarc: { result: "none", policy: null } });
    expect(body.headers["Authentication-Results"]).toBe(`${HOST}; none`);
  });
});

describe("a message that fails DMARC", () => {
  const REFUSED = "550 5.7.1";
  const cases: [
    name: string,
    published: Partial<Author>,
    from: (domain: string) => string,
    reply: string,
    dmarc: object,
  ][] = [
    ["p=reject is refused", { dmarc: "p=reject" }, (d) => d, REFUSED, { result: "fail", policy: "reject" }],
    [
      "p=quarantine is taken",
      { dmarc: "p=quarantine" },
      (d) => d,
      "250",
      { result: "fail", policy: "quarantine" },
    ],
    ["p=none is taken", { dmarc: "p=none" }, (d) => d, "250", { result: "fail", policy: "none" }],
    ["and has no policy is accepted", {}, (d) => d, "250", { result: "none", policy: null }],
    [
      "pct=50 is not ready to refuse",
      { dmarc: "p=reject; pct=50" },
      (d) => d,
      "250",
      { policy: "quarantine" },
    ],
    ["pct=100 is p=reject", { dmarc: "p=reject; pct=100" }, (d) => d, REFUSED, { policy: "reject" }],
    ["t=y is being tried out", { dmarc: "p=reject; t=y" }, (d) => d, "250", { policy: "quarantine" }],
    [
      "sp=reject is for domains below",
      { dmarc: "p=none; sp=reject" },
      (d) => `x.${d}`,
      REFUSED,
      { policy: "reject" },
    ],
    [
      "sp=none lets domains below off",
      { dmarc: "p=reject; sp=none" },
      (d) => `x.${d}`,
      "250",
      { policy: "none" },
    ],
    [
      "p=reject holds below without sp",
      { dmarc: "p=reject" },
      (d) => `x.${d}`,
      REFUSED,
      { policy: "reject" },
    ],
  ];
  test.each(cases)("%s", async (_, published, from, reply, dmarc) => {
    const domain = from(author({ spf: "-all", ...published }));
    expect(await deliver(mailOf(domain), `bounce@${domain}`)).toStartWith(reply);
    const shown = await record(`ann@${domain}`);
    expect(shown.auth.dmarc).toMatchObject(dmarc);
    expect(shown.status).toBe(reply === REFUSED ? "inbound_rejected" : "delivered");
  });

  test("a message refused by DMARC is recorded with its header, once in each project, and announced", async () => {
    const domain = author({ dmarc: "p=reject", spf: "-all" });
    const counted = (await service.call("GET", "/v1/emails?direction=inbound&status=inbound_rejected")).body
      .data.length;
    expect(await deliver(mailOf(domain), `x@${domain}`, ["a@in.test", "b@in.test"])).toStartWith(REFUSED);
    const listed = await service.call("GET", "/v1/emails?direction=inbound&status=inbound_rejected");
    expect(listed.body.data.length).toBe(counted + 1);
    const shown = await record(`ann@${domain}`);
    expect(shown).toMatchObject({
      status: "inbound_rejected",
      subject: "Hi",
      text: null,
      html: null,
      threadId: null,
      attachments: [],
      envelope: { rcptTo: ["a@in.test", "b@in.test"] },
      auth: { dmarc: { result: "fail", policy: "reject", domain } },
      headers: { Subject: "Hi", "Authentication-Results": expect.stringContaining("dmarc=fail") },
      events: [{ type: "inbound_rejected", data: { inbound_rejected: { reason: "dmarc" } } }],
    });
    expect((await service.call("GET", `/v1/emails/${shown.id}/raw`)).status).toBe(404);
    expect(await pushedOf(shown.id)).toMatchObject({
      type: "inbound_rejected",
      data: { messageId: shown.id, inbound_rejected: { subject: "Hi", auth: { dmarc: { result: "fail" } } } },
    });
    // A refused message is not part of a conversation.
    const threads = await service.call("GET", `/v1/inboxes/${inboxes[0]}/threads`);
    expect(
      threads.body.data.every((thread: { lastMessageId: string }) => thread.lastMessageId !== shown.id),
    ).toBe(true);
  });

  test("a message refused by DMARC is recorded in each addressed project, which sees only its own addresses", async () => {
    const domain = author({ dmarc: "p=reject", spf: "-all" });
    const account = { key: service.accountKey };
    const sender = await service.call("POST", "/v1/senders", { name: "Other" }, account);
    const { secret } = (
      await service.call("POST", "/v1/api-keys", { name: "Other", senderId: sender.body.id }, account)
    ).body;
    const other = await verifiedDomain(service, "other.test", secret);
    await service.call("PATCH", `/v1/domains/${other}/receiving`, { enabled: true }, { key: secret });
    await service.call("POST", "/v1/inboxes", { address: "c@other.test" }, { key: secret });
    expect(await deliver(mailOf(domain), `x@${domain}`, ["a@in.test", "c@other.test"])).toStartWith(REFUSED);
    expect((await record(`ann@${domain}`)).envelope.rcptTo).toEqual(["a@in.test"]);
    const [theirs, ...rest] = (await service.call("GET", "/v1/emails", undefined, { key: secret })).body.data;
    expect(rest).toEqual([]);
    const shown = await service.call("GET", `/v1/emails/${theirs.id}`, undefined, { key: secret });
    expect(shown.body).toMatchObject({ status: "inbound_rejected", envelope: { rcptTo: ["c@other.test"] } });
  });

  test("a message that fails DMARC is refused whatever its ARC chain says, because no sealer is trusted", async () => {
    const domain = author({ dmarc: "p=reject", spf: "-all" });
    const sealer = author({ key: true });
    const mail = mailOf(domain);
    const seal = await sealMessage(mail, {
      signingDomain: sealer,
      selector: "k",
      privateKey: key.privateKeyPem,
      authResults: `${sealer}; dmarc=pass`,
      cv: "none",
    });
    expect(await deliver(Buffer.concat([seal, mail]), `x@${domain}`)).toStartWith(REFUSED);
    expect((await record(`ann@${domain}`)).auth).toMatchObject({
      arc: { result: "pass" },
      dmarc: { result: "fail" },
    });
  });
});

describe("a message with the policy reject and a check delayed by name servers:", () => {
  const PUT_OFF = "451 4.7.0";
  const TROUBLES: readonly (readonly [check: string, name: (domain: string) => string])[] = [
    ["the policy", (domain) => `_dmarc.${domain}`],
    ["the key of a signature that would align", (domain) => `k._domainkey.${domain}`],
    ["the SPF record of a sender that would align", (domain) => domain],
  ];
  test.each(TROUBLES)(
    "a message with the policy reject and a check delayed by name servers is deferred, and nothing is recorded: %s",
    async (_, trouble) => {
      const domain = author({ dmarc: "p=reject", spf: "-all", key: true });
      service.dns.behave("servfail", trouble(domain));
      const mail = trouble(domain).startsWith("k.") ? await signed(mailOf(domain), domain) : mailOf(domain);
      expect(await deliver(mail, `ann@${domain}`)).toStartWith(PUT_OFF);
      const list = await service.call("GET", `/v1/emails?direction=inbound&from=ann@${domain}`);
      expect(list.body.data).toEqual([]);
    },
  );

  test("a message with the policy reject and a check delayed by name servers is accepted if the policy is quarantine, because the check would change nothing", async () => {
    const domain = author({ dmarc: "p=quarantine", spf: "-all" });
    service.dns.behave("servfail", domain);
    expect(await deliver(mailOf(domain), `ann@${domain}`)).toStartWith("250");
    expect((await record(`ann@${domain}`)).auth).toMatchObject({
      spf: { result: "temperror" },
      dmarc: { result: "temperror", policy: "quarantine" },
    });
  });

  test("a message to a postmaster is accepted even if a check is delayed (RFC 5321 §4.5.1)", async () => {
    const domain = author({ dmarc: "p=reject", spf: "-all" });
    service.dns.behave("servfail", `_dmarc.${domain}`);
    expect(await deliver(mailOf(domain), `ann@${domain}`, ["postmaster@in.test"])).toStartWith("250");
  });
});

describe("a From without a domain never passes", () => {
  test.each([
    ["a domain literal", (domain: string) => `ann@[127.0.0.1], x@${domain}`],
    ["a route", (domain: string) => `ceo%bank.example@${domain}`],
  ])("%s", async (_, from) => {
    const domain = author({ dmarc: "p=none", spf: "ip4:127.0.0.1 -all" });
    const mail = Buffer.from(`From: ${from(domain)}\r\nMessage-ID: <${domain}>\r\n\r\nx\r\n`);
    const reply = await deliver(mail, `x@${domain}`);
    expect(reply).toStartWith("250");
    const shown = await service.call("GET", `/v1/emails/${reply.split(" ").at(-1)}`);
    expect(shown.body.auth).toMatchObject({
      spf: { result: "pass" },
      dmarc: { result: "none", policy: null },
    });
  });
});

describe("a message that arrives again", () => {
  test("a message that arrives again is answered 250 with the same id, and stored once in each inbox", async () => {
    const domain = author({});
    const mail = mailOf(domain);
    const first = await deliver(mail, `x@${domain}`);
    expect(await deliver(mail, `x@${domain}`)).toBe(first);
    // The other inbox does not have it yet.
    expect(await deliver(mail, `x@${domain}`, ["a@in.test", "b@in.test"])).toBe(first);
    const list = await service.call("GET", `/v1/emails?direction=inbound&from=ann@${domain}`);
    expect(list.body.data.length).toBe(2);
  });

  test("a message that arrives twice at the same time is stored once too", async () => {
    const domain = author({});
    const mail = mailOf(domain);
    const replies = await Promise.all(Array.from({ length: 8 }, () => deliver(mail, `x@${domain}`)));
    expect(new Set(replies).size).toBe(1);
    expect(
      (await service.call("GET", `/v1/emails?direction=inbound&from=ann@${domain}`)).body.data.length,
    ).toBe(1);
  });

  test("a message that arrives again under the same Message-ID with other bytes is another message", async () => {
    const domain = author({});
    const mail = mailOf(domain, "one");
    await deliver(mail, `x@${domain}`);
    await deliver(Buffer.from(mail.toString().replace("one", "two")), `x@${domain}`);
    expect(
      (await service.call("GET", `/v1/emails?direction=inbound&from=ann@${domain}`)).body.data.length,
    ).toBe(2);
  });

  test("a message that arrives again without a Message-ID is another message, because nothing identifies it", async () => {
    const domain = author({});
    const mail = Buffer.from(`From: ann@${domain}\r\n\r\nx\r\n`);
    await deliver(mail, `x@${domain}`);
    await deliver(mail, `x@${domain}`);
    expect(
      (await service.call("GET", `/v1/emails?direction=inbound&from=ann@${domain}`)).body.data.length,
    ).toBe(2);
  });
});

test("the same bytes after the window are another message", async () => {
  let ahead = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + ahead };
  const other = await startService({}, clock);
  await receivingInboxes(other, "in.test", ["a@in.test"]);
  const mail = mailOf(author({}));
  const count = async () => (await other.call("GET", "/v1/emails?direction=inbound")).body.data.length;
  for (const [later, stored] of [
    [0, 1],
    [DUPLICATE_WINDOW_MS - 1_000_000, 1],
    [1_000_001, 2],
  ] as const) {
    ahead += later;
    expect(await deliver(mail, "x@far.test", ["a@in.test"], other.smtpPort)).toStartWith("250");
    expect(await count()).toBe(stored);
  }
  await other.stop();
});

describe("a message that is hard to read", () => {
  const header = (domain: string) => `From: Ann <ann@${domain}>\r\nSubject: hostile\r\n`;
  const hostile: [name: string, mail: (domain: string) => string, read: boolean][] = [
    [
      "10 000 parts",
      (d) =>
        `${header(d)}Content-Type: multipart/mixed; boundary=b\r\n\r\n${"--b\r\n\r\nx\r\n".repeat(10_000)}`,
      true,
    ],
    [
      "500 levels of multiparts",
      (d) =>
        `${header(d)}${Array.from({ length: 500 }, (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\r\n\r\n--b${i}\r\n`).join("")}\r\nx`,
      false,
    ],
    ["a line of 1 MB in its header", (d) => `${header(d)}X: ${"a".repeat(1_000_000)}\r\n\r\nx`, true],
    ["100 000 header fields", (d) => `${header(d)}${"a: b\r\n".repeat(100_000)}\r\nx`, true],
    [
      "10 MB of encoded words",
      (d) => `${header(d)}X: ${"=?utf-8?q?=41?=\r\n ".repeat(580_000)}\r\n\r\nx`,
      false,
    ],
    ["1 MB of groups in To", (d) => `${header(d)}To: ${"a:".repeat(500_000)}\r\n\r\nx`, true],
    [
      "a signature over 4000 names",
      (d) =>
        `DKIM-Signature: v=1; a=rsa-sha256; d=${d}; s=k; bh=AA; b=AA; h=${"x:".repeat(4000)}from\r\n${header(d)}\r\nx`,
      true,
    ],
  ];
  test.each(hostile)("%s: is stored, shown and announced, and delays no other", async (_, mail, read) => {
    const domain = author({});
    const bytes = Buffer.from(mail(domain));
    const lag = longestTurn();
    expect(await deliver(bytes, `x@${domain}`)).toStartWith("250");
    expect(lag.end()).toBeLessThan(LONGEST_TURN_MS);
    const shown = await record(`ann@${domain}`);
    expect(shown).toMatchObject({
      status: "delivered",
      subject: "hostile",
      fromName: "Ann",
      events: [{ type: "inbound_received" }],
    });
    expect(shown.text === null).toBe(!read);
    expect((await raw(shown.id)).length).toBeGreaterThan(bytes.length);
    expect((await raw(shown.id)).trimEnd().endsWith(bytes.toString("latin1").trimEnd())).toBe(true);
  });

  test("a message that came over 100 hops is refused; one over 30 is stored", async () => {
    const domain = author({});
    const hops = (count: number) =>
      Buffer.from(`${"Received: by x\r\n".repeat(count)}${header(domain)}\r\nx`);
    expect(await deliver(hops(101), `x@${domain}`)).toStartWith("554 5.4.6");
    expect(await deliver(hops(100), `x@${domain}`)).toStartWith("250");
  });
});

/** A turn takes 100 ms on an idle machine. A test shares its thread with the client that sends, and its cores with other tests. */
const LONGEST_TURN_MS = 1500;

/** Measures the longest time for which this thread, which is also the listener's, was blocked. */
function longestTurn(): { end(): number } {
  let last = performance.now();
  let longest = 0;
  const turn = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(turn, 1);
  return {
    end() {
      turn();
      clearInterval(timer);
      return longest;
    },
  };
}
