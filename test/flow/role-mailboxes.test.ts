import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { createInboundHandler } from "../../src/flows/receive/inbound-handler.ts";
import type { Envelope } from "../../src/smtp/session/envelope.ts";
import { publish } from "../support/dns.ts";
import { startSink } from "../support/https-sink.ts";
import { deliver, delivered, deliveredRecord, smtpSession } from "../support/mail-in.ts";
import {
  receivingInboxes,
  SERVICE_DOMAIN,
  startService,
  type TestService,
  verifiedDomain,
} from "../support/service.ts";
import { limitsOf } from "../../src/flows/deliver/reputation.ts";

let service: TestService;
const start = async (): Promise<void> => {
  service = await startService();
};
/** Gives each test of a group its own service. */
function startedForEach(): void {
  beforeEach(start);
  afterEach(() => service.stop());
}

/** The reply to RCPT for a path in this spelling. */
async function rcpt(path: string): Promise<string> {
  const session = await smtpSession(service.smtpPort);
  await session.say("MAIL FROM:<>");
  const reply = await session.say(`RCPT TO:${path}`);
  session.end();
  return reply;
}

const OK = "250 2.1.5";
const NOBODY = "550 5.1.1";
const ELSEWHERE = "550 5.1.2";

describe("RCPT TO at the service's own names", () => {
  beforeAll(start);
  afterAll(() => service.stop());
  const rows: [string, string][] = [
    ["<postmaster>", OK],
    ["<Postmaster>", OK],
    ["<POSTMASTER>", OK],
    ...["postmaster", "abuse", "hostmaster", "dmarc", "tls-reports"].map((local): [string, string] => [
      `<${local}@${SERVICE_DOMAIN}>`,
      OK,
    ]),
    [`<PostMaster@${SERVICE_DOMAIN.toUpperCase()}>`, OK],
    [`<"postmaster"@${SERVICE_DOMAIN}>`, OK],
    [`<"post\\master"@${SERVICE_DOMAIN}>`, OK],
    [`<dmarc+2026@${SERVICE_DOMAIN}>`, OK],
    [`<@relay.test:postmaster@${SERVICE_DOMAIN}>`, OK],
    ...["mx", "bounce", "onboarding"].flatMap((host): [string, string][] => [
      [`<postmaster@${host}.${SERVICE_DOMAIN}>`, OK],
      [`<abuse@${host}.${SERVICE_DOMAIN}>`, OK],
      [`<hostmaster@${host}.${SERVICE_DOMAIN}>`, NOBODY],
      [`<dmarc@${host}.${SERVICE_DOMAIN}>`, NOBODY],
      [`<hello@${host}.${SERVICE_DOMAIN}>`, NOBODY],
    ]),
    [`<root@${SERVICE_DOMAIN}>`, NOBODY],
    [`<postmaster.@${SERVICE_DOMAIN}>`, "501 5.1.3"],
    [`<postmasters@${SERVICE_DOMAIN}>`, NOBODY],
    [`<"post master"@${SERVICE_DOMAIN}>`, NOBODY],
    [`<+postmaster@${SERVICE_DOMAIN}>`, NOBODY],
    [`<postmaster@spf.${SERVICE_DOMAIN}>`, ELSEWHERE],
    [`<postmaster@simulator.${SERVICE_DOMAIN}>`, ELSEWHERE],
    [`<postmaster@x.mx.${SERVICE_DOMAIN}>`, ELSEWHERE],
    [`<postmaster@evil${SERVICE_DOMAIN}>`, ELSEWHERE],
    ["<postmaster@elsewhere.test>", ELSEWHERE],
    [`<postmaster%elsewhere.test@${SERVICE_DOMAIN}>`, NOBODY],
    [`<"postmaster@elsewhere.test"@${SERVICE_DOMAIN}>`, NOBODY],
  ];
  test.each(rows)("%s: %s", async (path, reply) => {
    expect(await rcpt(path)).toStartWith(reply);
  });
});

describe("a message to a role mailbox of the service", () => {
  startedForEach();

  test.each([
    [`postmaster@${SERVICE_DOMAIN}`],
    [`abuse@bounce.${SERVICE_DOMAIN}`],
    [`dmarc+x@${SERVICE_DOMAIN}`],
    ["postmaster"],
  ])("a message to a role mailbox of the service is a message of the first project: %s", async (to) => {
    const record = await deliveredRecord(service, {
      to,
      mailFrom: "",
      headers: ["Subject: Report domain: news.test", `To: ${to}`, "Message-ID: <r1@reporter.test>"],
      body: "What has happened",
    });
    expect(record).toMatchObject({
      direction: "inbound",
      status: "delivered",
      inboxId: null,
      threadId: null,
      subject: "Report domain: news.test",
      text: expect.stringMatching(/^What has happened/),
      envelope: { mailFrom: "", rcptTo: [to.includes("@") ? to : `postmaster@mx.${SERVICE_DOMAIN}`] },
      events: [{ type: "inbound_received" }],
      auth: { dmarc: expect.anything() },
    });
    const list = await service.call("GET", "/v1/emails?direction=inbound&q=Report%20domain");
    expect(list.body.data.map(({ id }: { id: string }) => id)).toEqual([record.id]);
    const raw = await service.call("GET", `/v1/emails/${record.id}/raw`);
    expect(raw.body).toContain("What has happened");
  });

  test("a message to a role mailbox of the service does not appear in another project", async () => {
    const made = await service.call("POST", "/v1/senders", { name: "Other" }, { key: service.accountKey });
    const id = await delivered(service, { to: `abuse@${SERVICE_DOMAIN}` });
    const other = { key: service.accountKey, headers: { "x-service-product": made.body.id } };
    expect((await service.call("GET", `/v1/emails/${id}`, undefined, other)).status).toBe(404);
    expect((await service.call("GET", "/v1/emails", undefined, other)).body.data).toEqual([]);
  });

  test("a message to a role mailbox of the service is one message for all its addresses there, which names each", async () => {
    const { id, envelope } = await deliveredRecord(service, {
      to: [`postmaster@${SERVICE_DOMAIN}`, `postmaster+x@${SERVICE_DOMAIN}`],
    });
    expect(envelope.rcptTo).toEqual([`postmaster@${SERVICE_DOMAIN}`, `postmaster+x@${SERVICE_DOMAIN}`]);
    const list = await service.call("GET", "/v1/emails?direction=inbound");
    expect(list.body.data.map((summary: { id: string }) => summary.id)).toEqual([id]);
  });

  test("a message to a role mailbox of the service is pushed with neither inbox nor thread", async () => {
    const sink = startSink();
    await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["inbound_received"] });
    const id = await delivered(service, { to: `abuse@${SERVICE_DOMAIN}`, headers: ["Subject: Spam"] });
    const pushed = await sink.requests.reached(1);
    const { data } = JSON.parse(pushed.body);
    expect(data).toMatchObject({
      messageId: id,
      inbound_received: { inboxId: null, threadId: null, subject: "Spam" },
    });
    await sink.stop();
  });

  test("exists next to an inbox's copy of the same message, whose content is stored once", async () => {
    const [inboxId] = await receivingInboxes(service, "in.test", ["a@in.test"]);
    await deliver(service, { to: ["a@in.test", `postmaster@${SERVICE_DOMAIN}`], body: "To both" });
    const list = await service.call("GET", "/v1/emails?direction=inbound");
    const records = await Promise.all(
      list.body.data.map(
        async ({ id }: { id: string }) => (await service.call("GET", `/v1/emails/${id}`)).body,
      ),
    );
    expect(records.map((record) => [record.inboxId, record.text.trim()]).sort()).toEqual([
      [null, "To both"],
      [inboxId, "To both"],
    ]);
  });
});

describe("a customer's domain that receives", () => {
  startedForEach();

  test("a customer's domain that receives has a postmaster without an inbox of that name, for the customer's project, and no other role mailbox", async () => {
    const made = await service.call("POST", "/v1/senders", { name: "Shop" }, { key: service.accountKey });
    const key = (
      await service.call(
        "POST",
        "/v1/api-keys",
        { name: "k", senderId: made.body.id },
        { key: service.accountKey },
      )
    ).body.secret;
    const id = await verifiedDomain(service, "shop.test", key);
    expect(await rcpt("<postmaster@shop.test>")).toStartWith(ELSEWHERE);
    const on = await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true }, { key });
    publish(service.dns, on.body.records);
    expect(await rcpt("<Postmaster+x@SHOP.test>")).toStartWith(OK);
    for (const local of ["abuse", "hostmaster", "dmarc", "tls-reports"])
      expect(await rcpt(`<${local}@shop.test>`)).toStartWith(NOBODY);
    expect(await rcpt("<postmaster@sub.shop.test>")).toStartWith(ELSEWHERE);
    const message = await delivered(service, { to: "postmaster@shop.test" });
    const read = await service.call("GET", `/v1/emails/${message}`, undefined, { key });
    expect(read.body).toMatchObject({ senderId: made.body.id, inboxId: null, threadId: null });
    expect((await service.call("GET", `/v1/emails/${message}`)).status).toBe(404);
  });

  test("a customer's domain that receives gives its postmaster's mail to the inbox of that name if it exists", async () => {
    const [inboxId] = await receivingInboxes(service, "in.test", ["postmaster@in.test"]);
    expect(await deliveredRecord(service, { to: "PostMaster@in.test" })).toMatchObject({
      inboxId,
      threadId: expect.stringMatching(/^thr_/),
    });
  });
});

describe("a DMARC policy of p=reject", () => {
  startedForEach();
  const forged = ["From: Boss <boss@bank.test>", "Subject: Why am I refused?"];
  beforeEach(() => {
    service.dns.add({ name: "_dmarc.bank.test", type: "TXT", data: "v=DMARC1; p=reject" });
    service.dns.add({ name: "bank.test", type: "TXT", data: "v=spf1 -all" });
  });

  test.each([
    [`postmaster@${SERVICE_DOMAIN}`, /^250 /],
    [`postmaster@mx.${SERVICE_DOMAIN}`, /^250 /],
    [`abuse@${SERVICE_DOMAIN}`, /^550 5\.7\.1/],
    [`dmarc@${SERVICE_DOMAIN}`, /^550 5\.7\.1/],
  ])("a DMARC policy of p=reject at %s: %p", async (to, reply) => {
    expect(await deliver(service, { to, mailFrom: "boss@bank.test", headers: forged })).toMatch(reply);
    const list = await service.call("GET", "/v1/emails?direction=inbound");
    const record = (await service.call("GET", `/v1/emails/${list.body.data[0].id}`)).body;
    expect(record).toMatchObject({
      inboxId: null,
      status: to.startsWith("postmaster") ? "delivered" : "inbound_rejected",
      auth: { dmarc: { result: "fail", policy: "reject" } },
    });
  });

  test("a DMARC policy of p=reject applies to a message that is also for an inbox", async () => {
    await receivingInboxes(service, "in.test", ["a@in.test"]);
    const to = [`postmaster@${SERVICE_DOMAIN}`, "a@in.test"];
    expect(await deliver(service, { to, mailFrom: "boss@bank.test", headers: forged })).toStartWith(
      "550 5.7.1",
    );
  });
});

describe("a role mailbox", () => {
  startedForEach();

  test("a role mailbox over its limit says so, for a while, at RCPT and at the end of DATA", async () => {
    const { db, queue } = service.app;
    const door = createInboundHandler({
      db,
      queue,
      clock: systemClock,
      hostname: `mx.${SERVICE_DOMAIN}`,
      serviceDomain: SERVICE_DOMAIN,
      verpKey: new Uint8Array(32),
      unsubscribeKey: new Uint8Array(32),
      // None is answered: what was accepted is in progress, and counted.
      inspect: async () => null,
      suspension: limitsOf(5),
      publicIps: [],
      dmarcReporters: [],
      roleLimits: { mails: 1, octets: 1000 },
    });
    const to = `dmarc@${SERVICE_DOMAIN}`;
    const session: Envelope = {
      mailFrom: "",
      rcptTo: [to],
      ip: "192.0.2.1",
      helo: "x",
      tls: null,
      smtpUtf8: false,
    };
    const mail = Buffer.from("From: a@b.test\r\n\r\nHi\r\n");
    expect(await door.recipient(to, session)).toBeNull();
    expect(await door.message(session, mail)).toMatchObject({ code: 451 });
    expect(await door.recipient(`dmarc+x@${SERVICE_DOMAIN}`, session)).toMatchObject({
      code: 452,
      enhanced: "4.2.2",
    });
    expect(await door.message(session, mail)).toMatchObject({ code: 452, enhanced: "4.2.2" });
    expect(await door.recipient(`abuse@${SERVICE_DOMAIN}`, session)).toBeNull();
  });

  test("a role mailbox without a project to read it, before the first start has finished: its mail is deferred and not lost", async () => {
    await service.app.db.write([
      { sql: "DELETE FROM start_tokens", args: [] },
      { sql: "DELETE FROM api_keys", args: [] },
      { sql: "DELETE FROM senders", args: [] },
    ]);
    expect(await rcpt(`<postmaster@${SERVICE_DOMAIN}>`)).toStartWith(NOBODY);
  });
});
