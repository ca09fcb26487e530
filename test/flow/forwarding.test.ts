import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { arc, sealMessage } from "mailauth/lib/arc";
import { dkimSign } from "mailauth/lib/dkim/sign";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { systemClock } from "../../src/clock.ts";
import { type DkimKey, dkimRecord, generateDkimKey } from "../../src/mail/auth/dkim.ts";
import { HOUR_MS } from "../../src/core/time/units.ts";
import { nodeStyleResolver } from "../../src/net/dns/node-style-resolver.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { FORWARD_FIELD, MAX_FORWARD_RECEIVED, MAX_FORWARDS } from "../../src/core/rules/forwarding.ts";
import { removeContents } from "../../src/store/messages/content-release.ts";
import { dueEffects, MAX_BOUNCES } from "../../src/store/rules/rule-effects.ts";
import { confirmedForward } from "../support/forwards.ts";
import { delivered, deliverRaw, type Letter } from "../support/mail-in.ts";
import { type MxMessage, startMx, type TestMx } from "../support/mx.ts";
import { interject } from "../support/interject.ts";
import { until } from "../support/poll.ts";
import { reportMail } from "../support/report-mail.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(30_000);

const BOX = "box@in.test";
const FAR = "team@far.test";
let service: TestService;
let relay: TestMx;
let clock: ShiftedClock;
let key: DkimKey;
const outside = { service: () => service, relay: () => relay };
const call: TestService["call"] = (...asked) => service.call(...asked);

beforeAll(async () => {
  relay = startMx();
  clock = shiftedClock(4);
  const settings = { DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` };
  service = await startService(settings, clock);
  await receivingInboxes(service, "in.test", [BOX, "loop@in.test", "two@in.test"]);
  service.dns.add(
    { name: "client.test", type: "TXT", data: "v=spf1 ip4:127.0.0.1 -all" },
    { name: "_dmarc.client.test", type: "TXT", data: "v=DMARC1; p=none" },
  );
  key = await generateDkimKey();
  const data = dkimRecord(key.publicKeyBase64).match(/.{1,255}/g) ?? [];
  service.dns.add({ name: "k._domainkey.client.test", type: "TXT", data });
  const own = await service.app.db.first<{ token: string; key: string }>(
    "SELECT k.token, k.public_key AS key FROM dkim_keys k JOIN domains d ON d.id = k.domain_id WHERE d.name = 'in.test'",
  );
  const published = dkimRecord(own?.key ?? "").match(/.{1,255}/g);
  service.dns.add({ name: `${own?.token}.dkim.mail.test`, type: "TXT", data: published });
  await confirmedForward(outside, call, FAR);
});
afterAll(async () => {
  await service.stop();
  relay.stop();
});
beforeEach(async () => {
  for (const { id } of (await call("GET", "/v1/rules?limit=100")).body.data)
    await call("DELETE", `/v1/rules/${id}`);
  relay.set({ RCPT: "250 ok", ".": "250 2.0.0 taken" });
});

async function newRule(forwardTo = FAR, more: Record<string, unknown> = {}) {
  const { status, body } = await call("POST", "/v1/rules", {
    name: "On",
    when: {},
    then: { forwardTo },
    ...more,
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}
const triedForwards = async (emailId: string) =>
  (await call("POST", "/v1/rules/try", { emailId })).body.outcome.forwards;
const record = async (id: string) => (await call("GET", `/v1/emails/${id}`)).body;
/** Lets the rules do what is due. */
const carriedOut = () => until(async () => (await dueEffects(service.app.db, clock.now(), 1)).length === 0);
/** Delivers a letter, and returns its record once its forwards have left. */
async function received(letter: Partial<Letter> = {}) {
  const id = await delivered(service, { to: BOX, ...letter });
  await carriedOut();
  const isOver = ({ status }: { status: string }) => !["waiting", "queued", "sending"].includes(status);
  await until(async () => (await record(id)).forwarded.every(isOver));
  return record(id);
}
/** Returns what the relay got for an address, the last first. */
const sentTo = (email: string): MxMessage[] =>
  relay.messages.items.filter(({ rcptTo }) => rcptTo.includes(email)).toReversed();

const signer = () => ({ signingDomain: "client.test", selector: "k", privateKey: key.privateKeyPem });
/** Signs a message as its author's server does. */
async function signed(raw: string): Promise<string> {
  const { signatures } = await dkimSign(Buffer.from(raw), {
    ...signer(),
    canonicalization: "relaxed/relaxed",
    signatureData: [signer()],
  });
  return signatures + raw;
}
/** Verifies a message as the server does that gets it next. */
async function verified({ data }: MxMessage) {
  const { ip, port } = service.dns;
  const node = nodeStyleResolver(createResolver({ clock: systemClock }, { servers: [{ ip, port }] }));
  const resolver = async (name: string, type: string) => (await node(name, type)) as string[][];
  const { results, arc: chain } = await dkimVerify(data, { resolver });
  const { status, i } = (await arc(chain as Parameters<typeof arc>[0], { resolver })) ?? {
    status: { result: "none" },
  };
  const dkim = results.filter(({ signingDomain }) => signingDomain === "client.test");
  return { dkim: dkim.map((one) => one.status.result), arc: status.result, sets: i };
}

const LONG = `${"long ".repeat(400)}end`;
const ORIGINALS: [what: string, body: string][] = [
  ["a plain text", "Hello\r\n"],
  ["octets beyond ASCII", "Grüße €\r\n"],
  ["a line of 2000 octets", `${LONG}\r\n`],
  ["lines that begin with dots", "..\r\n.x\r\n"],
];
test.each(ORIGINALS)(
  "a forward of %s has the same octets below our trace, its DKIM signature holds, and ARC says what we found",
  async (_, body) => {
    await newRule();
    const raw = await signed(
      `From: Ada <ada@client.test>\r\nTo: ${BOX}\r\nSubject: Hi\r\nMessage-ID: <${body.length}@client.test>\r\n\r\n${body}`,
    );
    const stuffed = raw.replace(/(^|\r\n)\./g, "$1..");
    const reply = await deliverRaw(service.smtpPort, { to: BOX }, stuffed);
    const id = /(msg_\w+)/.exec(reply)?.[1] ?? "";
    await carriedOut();
    await until(async () => (await record(id)).forwarded[0]?.status === "sent");
    const [sent] = sentTo(FAR);
    if (sent === undefined) throw new Error("nothing was sent");
    expect(sent.data.toString().endsWith(raw)).toBe(true);
    expect(await verified(sent)).toEqual({ dkim: ["pass"], arc: "pass", sets: 1 });
    const head = sent.data.toString().slice(0, -raw.length);
    expect(head.match(/^[\w-]+(?=:)/gm)).toEqual([
      "ARC-Seal",
      "ARC-Message-Signature",
      "ARC-Authentication-Results",
      FORWARD_FIELD,
      "Received",
    ]);
    expect(head).toContain("dmarc=pass");
    expect(sent.mailFrom).toMatch(/^b\+\w+@in\.test$/);
  },
);

test("a further seal follows those of the message, and no seal follows one that has failed", async () => {
  await newRule();
  const seal = async (raw: string, cv: "none" | "fail") => {
    const sealing = { ...signer(), cv, authResults: "mx.client.test; none" };
    return `${await sealMessage(Buffer.from(raw), sealing)}${raw}`;
  };
  const raw = await signed("From: ada@client.test\r\nSubject: Sealed\r\n\r\nHi\r\n");
  for (const [cv, sets] of [
    ["none", 2],
    ["fail", 1],
  ] as const) {
    await deliverRaw(service.smtpPort, { to: BOX }, await seal(raw, cv));
    await carriedOut();
    await until(async () => sentTo(FAR)[0]?.data.includes(cv === "none" ? "i=2; a=" : "cv=fail") === true);
    const [sent] = sentTo(FAR);
    expect(sent?.data.toString().match(/^ARC-Seal:/gm)).toHaveLength(sets);
    if (sent !== undefined && cv === "none")
      expect(await verified(sent)).toMatchObject({ arc: "pass", sets: 2 });
  }
});

test("records say what was forwarded where, and of what a message is the forward", async () => {
  const rule = await newRule();
  const before = await record(
    await delivered(service, {
      to: BOX,
      headers: ["From: Bo <bo@client.test>", "To: x@y.test", "Subject: Where"],
    }),
  );
  await carriedOut();
  const [{ emailId, ...forward }] = (await record(before.id)).forwarded;
  expect(forward).toMatchObject({ ruleId: rule.id, to: FAR, reason: null });
  const sent = await service.message(emailId, "sent");
  expect(sent).toMatchObject({
    forwardOf: { emailId: before.id, ruleId: rule.id },
    from: "bo@client.test",
    to: [FAR],
    subject: "Where",
    threadId: null,
    text: "Hi\n",
    stream: "transactional",
  });
  expect(sent.envelope.forward).toBeUndefined();
  expect((await record(before.id)).forwarded[0].status).toBe("sent");
  const { body } = await call("GET", `/v1/emails/${emailId}/explain`);
  expect(body.summary).toContain("A rule forwards a received message.");
  const raw = String((await call("GET", `/v1/emails/${emailId}/raw`)).body);
  expect(raw).toBe(sentTo(FAR)[0]?.data.toString() ?? "");
});

const UNFORWARDED: [what: string, letter: Partial<Letter>, reason: string | null][] = [
  [`with ${MAX_FORWARD_RECEIVED} Received fields`, { headers: receivedFields(MAX_FORWARD_RECEIVED) }, "loop"],
  ["with one less", { headers: receivedFields(MAX_FORWARD_RECEIVED - 1) }, null],
  ["that its inbox has forwarded", { headers: [`${FORWARD_FIELD}: a@x.test, ${BOX}`] }, "loop"],
  [
    "that three inboxes have forwarded",
    { headers: [`${FORWARD_FIELD}: a@x.test, b@x.test, c@x.test`] },
    "loop",
  ],
  ["that two have", { headers: [`${FORWARD_FIELD}: a@x.test, b@x.test`] }, null],
  ["with a forged field that names nobody", { headers: [`${FORWARD_FIELD}: ${"x".repeat(900)}, , ,`] }, null],
  ["of an answering machine", { headers: ["Auto-Submitted: Auto-Replied (vacation)"] }, "automatic"],
  ["of a monitor", { headers: ["Auto-Submitted: auto-generated"] }, null],
  ["with the null reverse path", { mailFrom: "" }, "automatic"],
];
function receivedFields(count: number): string[] {
  return Array.from(
    { length: count },
    (_, at) => `Received: from h${at} by h; Sun, 29 Nov 2026 12:00:00 +0000`,
  );
}
test.each(UNFORWARDED)(
  "of mail %s, the record and a trial say whether it is forwarded",
  async (_, letter, reason) => {
    await newRule();
    const { id, forwarded } = await received({ ...letter, body: `${Math.random()}` });
    expect(forwarded).toMatchObject([
      { to: FAR, status: reason === null ? "sent" : "not_forwarded", reason },
    ]);
    expect(await triedForwards(id)).toMatchObject([{ to: FAR, reason }]);
  },
);

test("a message that a rule drops or puts into spam is not forwarded, and one that it puts into trash is", async () => {
  await newRule();
  const sent = sentTo(FAR).length;
  for (const [then, outcome] of [
    [{ folder: "spam" }, "not_forwarded"],
    [{ folder: "trash" }, "sent"],
  ] as const) {
    const { body } = await call("POST", "/v1/rules", { name: "Last", when: {}, then });
    expect((await received({ body: then.folder })).forwarded).toMatchObject([{ status: outcome }]);
    await call("DELETE", `/v1/rules/${body.id}`);
  }
  await call("POST", "/v1/rules", { name: "Drop", when: {}, then: { drop: true } });
  await delivered(service, { to: BOX, body: "dropped" });
  await carriedOut();
  expect(sentTo(FAR).length - sent).toBe(1);
});

test("two inboxes that forward to each other stop after one round", async () => {
  for (const [at, [from, to]] of [
    [BOX, "loop@in.test"],
    ["loop@in.test", BOX],
  ].entries()) {
    await confirmedForward(outside, call, to ?? "");
    const inbox = (await call("GET", "/v1/inboxes")).body.data.find(
      ({ address }: { address: string }) => address === from,
    );
    await newRule(to, { inboxId: inbox.id, position: at });
  }
  /** The outside world brings each forward to the inbox that it is for. */
  const bring = async (mail: MxMessage | undefined, to: string) => {
    const reply = await deliverRaw(
      service.smtpPort,
      { to, mailFrom: "ada@client.test" },
      mail?.data.toString() ?? "",
    );
    await carriedOut();
    return /(msg_\w+)/.exec(reply)?.[1] ?? "";
  };
  const { forwarded } = await received({ body: "round" });
  expect(forwarded).toMatchObject([{ to: "loop@in.test", status: "sent" }]);
  const second = await bring(sentTo("loop@in.test")[0], "loop@in.test");
  await until(async () => (await record(second)).forwarded[0].status === "sent");
  const third = await bring(sentTo(BOX)[0], BOX);
  expect((await record(third)).forwarded).toMatchObject([{ status: "not_forwarded", reason: "loop" }]);
});

test(`a message is forwarded to at most ${MAX_FORWARDS} addresses, to each once`, async () => {
  const { id } = (await call("GET", "/v1/me")).body.project;
  const addresses = Array.from({ length: MAX_FORWARDS + 1 }, (_, at) => `one${at}@far.test`);
  await service.app.db.write(
    addresses.map((email) => ({
      sql: `INSERT INTO forward_addresses (id, sender_id, email, email_key, confirmed_at, asked_at, mails, created_at)
        VALUES (?, ?, ?, ?, 1, 0, 1, 0)`,
      args: [`fwd_${email}`, id, email, email],
    })),
  );
  for (const to of [...addresses, addresses[0]]) await newRule(to);
  const { forwarded } = await received({ body: "many" });
  expect(forwarded.map(({ to }: { to: string }) => to)).toEqual(addresses.slice(0, MAX_FORWARDS));
});

test("a message to two inboxes is forwarded once, and the copy of the second one says so", async () => {
  await newRule();
  const sent = sentTo(FAR).length;
  const first = await received({ to: [BOX, "two@in.test"], body: "both" });
  expect(sentTo(FAR).length - sent).toBe(1);
  expect(first.forwarded).toMatchObject([{ to: FAR, status: "sent" }]);
  const { data } = (await call("GET", "/v1/emails?direction=inbound&limit=2")).body;
  const second = data.find(({ id }: { id: string }) => id !== first.id).id;
  const reason = "already_forwarded";
  expect((await record(second)).forwarded).toMatchObject([{ to: FAR, status: "not_forwarded", reason }]);
  expect(await triedForwards(first.id)).toMatchObject([{ reason: null }]);
  expect(await triedForwards(second)).toMatchObject([{ reason }]);
});

// Bun fails a test with an unhandled rejection.
test("a trial whose forward cannot be checked fails as one request, and leaves no rejection unhandled", async () => {
  const { id } = await received({ body: "unchecked" });
  await call("POST", "/v1/templates", { name: "Away", slug: "away", subject: "Re", text: "Away" });
  await newRule(FAR, { then: { forwardTo: FAR, replyTemplateId: "away" } });
  void interject(service.app.db, { sql: /FROM rules WHERE sender_id = \? AND id/, when: "before" }, () =>
    Promise.reject(new Error("no answer")),
  );
  expect((await call("POST", "/v1/rules/try", { emailId: id })).status).toBe(500);
});

test("a rule forwards to a confirmed address alone, and no more once that is removed", async () => {
  const asked = { name: "x", when: {}, then: { forwardTo: "stranger@far.test" } };
  const refused = await call("POST", "/v1/rules", asked);
  expect([refused.status, refused.body.error.param]).toEqual([422, "then.forwardTo"]);
  expect(refused.body.error.message).toContain("POST /v1/forward-addresses");
  const address = await confirmedForward(outside, call, "brief@far.test");
  await newRule("Brief@far.test");
  expect((await received({ body: "b1" })).forwarded).toMatchObject([
    { to: "brief@far.test", status: "sent" },
  ]);
  await call("DELETE", `/v1/forward-addresses/${address.id}`);
  const second = await received({ body: "b2" });
  expect(second.forwarded).toMatchObject([{ status: "not_forwarded", reason: "address_not_confirmed" }]);
  expect(await triedForwards(second.id)).toMatchObject([{ reason: "address_not_confirmed" }]);
  expect((await call("GET", `/v1/emails/${second.id}/explain`)).body.summary).toBe(
    "The message was received. It was not forwarded to Brief@far.test: its owner has not confirmed the address. POST /v1/emails/{id}/forward sends it by hand.",
  );
});

test(`a rule stops with a notice after ${MAX_BOUNCES} forwards in a row came back, at the dialogue or later as a report`, async () => {
  const { id } = await newRule();
  const enabled = async () => (await call("GET", `/v1/rules/${id}`)).body.enabled;
  const forget = () => call("DELETE", `/v1/suppressions?email=${FAR}`);
  relay.set({ RCPT: "550 5.1.1 no such user" });
  for (let at = 1; at < MAX_BOUNCES; at++) {
    expect((await received({ body: `bounce ${at}` })).forwarded).toMatchObject([
      { status: at === 1 ? "bounced" : "rejected" },
    ]);
    expect(await enabled()).toBe(true);
  }
  await forget();
  relay.set({ RCPT: "250 ok" });
  const late = await received({ body: "late" });
  expect(await enabled()).toBe(true);
  const [{ mailFrom }] = sentTo(FAR) as [MxMessage];
  const report = reportMail({
    parts: [
      { type: "text/plain", lines: ["No such user"] },
      {
        type: "message/delivery-status",
        lines: [
          "Reporting-MTA: dns; mx.far.test",
          "",
          `Final-Recipient: rfc822; ${FAR}`,
          "Action: failed",
          "Status: 5.1.1",
        ],
      },
    ],
  });
  await deliverRaw(service.smtpPort, { to: mailFrom, mailFrom: "" }, report.toString());
  await service.message(late.forwarded[0].emailId, "bounced");
  expect(await enabled()).toBe(false);
  const { body } = await call("GET", "/v1/notices?ended=false");
  expect(body.data).toContainEqual(
    expect.objectContaining({
      kind: "rule_disabled",
      message: expect.stringContaining(`Its last ${MAX_BOUNCES} forwards came back.`),
    }),
  );
  await forget();
  await call("PATCH", `/v1/rules/${id}`, { enabled: true });
  expect((await received({ body: "again" })).forwarded).toMatchObject([{ status: "sent" }]);
});

test("mail that is refused for its content stops no rule", async () => {
  const { id } = await newRule();
  relay.set({ ".": "554 5.7.1 Message content rejected as spam" });
  for (let at = 0; at < MAX_BOUNCES; at++)
    expect((await received({ body: `spam ${at}` })).forwarded).toMatchObject([{ status: "failed" }]);
  expect((await call("GET", `/v1/rules/${id}`)).body.enabled).toBe(true);
});

test("two processes forward each message once", async () => {
  await newRule();
  const other = await startService(
    { ...service.sameDatabase, DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` },
    clock,
  );
  try {
    const before = sentTo(FAR).length;
    const letters = Array.from({ length: 5 }, (_, at) => received({ body: `once ${at}` }));
    for (const { forwarded } of await Promise.all(letters))
      expect(forwarded).toMatchObject([{ status: "sent" }]);
    expect(sentTo(FAR).length - before).toBe(5);
  } finally {
    await other.stop();
  }
});

test("a forward whose message or content is deleted before it leaves ends, and a project without room tries again", async () => {
  await newRule();
  const { id: senderId } = (await call("GET", "/v1/me")).body.project;
  const wide = (body: unknown) =>
    service.call("PATCH", `/v1/senders/${senderId}`, body, { key: service.accountKey });
  await wide({ dailyQuota: 0 });
  const waiting = await delivered(service, { to: BOX, body: "no room" });
  const gone = await delivered(service, { to: BOX, body: "no content" });
  await carriedOut();
  expect((await record(waiting)).forwarded).toMatchObject([{ status: "waiting" }]);
  await service.app.db.write(removeContents([gone], { now: clock.now(), leftAt: clock.now() }));
  await wide({ dailyQuota: null });
  clock.shift(HOUR_MS);
  await until(async () => (await record(waiting)).forwarded[0].status === "sent");
  expect((await record(gone)).forwarded).toMatchObject([{ status: "not_forwarded", reason: "content_gone" }]);
});
