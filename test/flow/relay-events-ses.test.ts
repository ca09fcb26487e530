import { createSign } from "node:crypto";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { postEvents, type Relayed, startRelayed, type TestRelay } from "../support/relayed.ts";
import { makeExpiredCert } from "../support/sts-host.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";

setDefaultTimeout(60_000);

const HOST = "sns.eu-west-1.amazonaws.com";
const TOPIC = "arn:aws:sns:eu-west-1:123456789012:mail";
const CERTIFICATE = `https://${HOST}/SimpleNotificationService-0123456789abcdef.pem`;
const EXPIRED = `https://${HOST}/SimpleNotificationService-00.pem`;

let relayed: Relayed;
let relay: TestRelay;
let amazon: HttpsSink;
let [signer, expired]: KeyAndCert[] = [];

beforeAll(async () => {
  const ca = await makeCa();
  [signer, expired] = [await makeCert(["sns.amazonaws.com"]), await makeExpiredCert(["sns"], ca)];
  amazon = startSink(await makeCert([HOST], ca));
  amazon.answer(({ path }) => {
    if (path.startsWith("/SimpleNotificationService-0123")) return new Response(signer?.cert);
    if (path.startsWith("/SimpleNotificationService-00.")) return new Response(expired?.cert);
    return new Response("<ConfirmSubscriptionResponse/>");
  });
  const documentHosts = { ca: ca.cert, port: amazon.port, allowPrivate: true } as const;
  relayed = await startRelayed({ DEFAULT_PLAN: "pro" }, { documentHosts });
  relay = await relayed.relay("ses", { provider: "ses", topicArn: TOPIC });
  relayed.service.dns.add({ name: HOST, type: "A", data: "127.0.0.1" });
});
afterAll(async () => {
  await amazon.stop();
  await relayed.stop();
});

let count = 0;

/** Sends a message that SES takes under an id. */
async function send() {
  const sesId = `0102018f5e6a7b3c-${String(++count).padStart(8, "0")}-1111-2222-3333-444444444444-000000`;
  relay.peer.set({ ".": `250 Ok ${sesId}` });
  const { id, message } = await relay.send();
  return { id, email: message.rcptTo[0] ?? "", mail: { messageId: sesId, destination: message.rcptTo } };
}

/** Returns a message of SNS, signed by the test's certificate. */
function signed(said: Record<string, string>, by = signer, version = "2"): Record<string, string> {
  const common = { MessageId: crypto.randomUUID(), Timestamp: "2026-11-28T12:00:00.000Z", TopicArn: TOPIC };
  const message: Record<string, string> = { Type: "Notification", ...common, ...said };
  const names = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
  const text = names
    .filter((name) => message[name] !== undefined)
    .map((name) => `${name}\n${message[name]}\n`);
  const signature = createSign(version === "2" ? "RSA-SHA256" : "RSA-SHA1").update(text.join(""));
  return {
    SigningCertURL: CERTIFICATE,
    ...message,
    SignatureVersion: version,
    Signature: signature.sign(by?.key ?? "", "base64"),
  };
}

/** Posts a message as SNS does. Returns the number of events about mail of the route, or the type of the error. */
async function post(message: Record<string, string>, { url } = relay): Promise<number | string> {
  const answer = await postEvents(url, message, { "content-type": "text/plain; charset=UTF-8" });
  const said = (await answer.json()) as { events: number; error?: { type: string } };
  return said.error?.type ?? said.events;
}

const notify = (said: unknown, version?: string) =>
  post(signed({ Message: JSON.stringify(said) }, signer, version));
const record = async (id: string) => (await relayed.service.call("GET", `/v1/emails/${id}`)).body;

describe.each(["1", "2"])("with signature version %s, what SES says of a message", (version) => {
  test.each([
    [
      "delivered",
      "delivered",
      (email: string) => ({ eventType: "Delivery", delivery: { recipients: [email] } }),
    ],
    [
      "a permanent bounce",
      "bounced",
      (emailAddress: string) => ({
        eventType: "Bounce",
        bounce: {
          bounceType: "Permanent",
          bouncedRecipients: [{ emailAddress, diagnosticCode: "smtp; 550 5.1.1 user unknown" }],
        },
      }),
    ],
    [
      "a bounce for its content",
      "failed",
      (emailAddress: string) => ({
        notificationType: "Bounce",
        bounce: {
          bounceType: "Transient",
          bounceSubType: "ContentRejected",
          bouncedRecipients: [{ emailAddress }],
        },
      }),
    ],
    [
      "a complaint",
      "complained",
      (emailAddress: string) => ({
        notificationType: "Complaint",
        complaint: { complainedRecipients: [{ emailAddress }], complaintFeedbackType: "abuse" },
      }),
    ],
    ["a rejection", "failed", () => ({ eventType: "Reject", reject: { reason: "Bad content" } })],
  ])("%s makes it %s, and only once", async (_, status, said) => {
    const { id, email, mail } = await send();
    for (const __ of [1, 2]) expect(await notify({ ...said(email), mail }, version)).toBe(1);
    const { status: shown, events } = await record(id);
    expect(shown).toBe(status);
    expect(events).toHaveLength(5);
  });
});

test("a delay of SES is recorded, and the message stays sent", async () => {
  const { id, email, mail } = await send();
  const delayedRecipients = [{ emailAddress: email, diagnosticCode: "smtp; 421 4.4.1 unreachable" }];
  await notify({ eventType: "DeliveryDelay", deliveryDelay: { delayedRecipients }, mail });
  const { status, events } = await record(id);
  expect([status, events.at(-1).type]).toEqual(["sent", "delivery_delayed"]);
});

const HARD = (email: string) => ({
  eventType: "Bounce",
  bounce: { bounceType: "Permanent", bouncedRecipients: [{ emailAddress: email }] },
});

describe("a message of SNS is refused", () => {
  const foreign = "https://sns.eu-west-1.amazonaws.com.evil.test/SimpleNotificationService-0123.pem";
  test.each([
    ["of another topic", { TopicArn: "arn:aws:sns:eu-west-1:999999999999:mail" }],
    ["whose certificate is at another host", { SigningCertURL: foreign }],
    ["whose certificate is in another region", { SigningCertURL: CERTIFICATE.replace("eu-", "us-") }],
    ["whose certificate has another path", { SigningCertURL: `https://${HOST}/?x=.pem` }],
    ["whose certificate comes in the clear", { SigningCertURL: CERTIFICATE.replace("https", "http") }],
    ["whose certificate has expired", { SigningCertURL: EXPIRED }, () => expired],
    ["that another key has signed", {}, () => expired],
    ["of an unknown signature version", { SignatureVersion: "3" }],
    ["that was changed", { Subject: "more" }],
  ] as [string, Record<string, string>, (() => KeyAndCert | undefined)?][])(
    "%s",
    async (_, changed, by = () => signer) => {
      const { id, email, mail } = await send();
      const before = amazon.requests.items.length;
      const message = signed({ Message: JSON.stringify({ ...HARD(email), mail }) }, by());
      expect(await post({ ...message, ...changed })).toBe("authentication_error");
      expect(await record(id)).toMatchObject({ status: "sent" });
      expect(amazon.requests.items.length - before).toBeLessThanOrEqual(1);
    },
  );
});

test("a subscription of the topic is confirmed at its region's host, wherever the message points", async () => {
  const said = {
    Type: "SubscriptionConfirmation",
    Message: "confirm",
    Token: "a token & more",
    SubscribeURL: "https://evil.test/",
  };
  expect(await post(signed(said))).toBe(0);
  const { path } = amazon.requests.items.at(-1) ?? { path: "" };
  const query = new URL(path, "https://x.test").searchParams;
  expect(Object.fromEntries(query)).toEqual({
    Action: "ConfirmSubscription",
    TopicArn: TOPIC,
    Token: "a token & more",
  });
});

test("an event of one route of the topic does not touch mail that another route has sent", async () => {
  const { id, email, mail } = await send();
  const other = await relayed.relay("other", { provider: "ses", topicArn: TOPIC });
  expect(await post(signed({ Message: JSON.stringify({ ...HARD(email), mail }) }), other)).toBe(0);
  expect(await record(id)).toMatchObject({ status: "sent" });
});

test("without the test's authority and address, the certificate's host is not trusted", async () => {
  const plain = await startRelayed();
  plain.service.dns.add({ name: HOST, type: "A", data: "127.0.0.1" });
  const { url } = await plain.relay("ses", { provider: "ses", topicArn: TOPIC });
  const before = amazon.requests.items.length;
  expect((await postEvents(url, signed({ Message: "{}" }))).status).toBe(401);
  expect(amazon.requests.items).toHaveLength(before);
  await plain.stop();
});

test.each([
  ["a topic for SES that is none", { provider: "ses", topicArn: "mail" }, "events.topicArn"],
  ["no topic for SES", { provider: "ses" }, "events.topicArn"],
  ["a short secret", { provider: "postmark", secret: "short" }, "events.secret"],
  ["no key for Mailgun", { provider: "mailgun" }, "events.signingKey"],
  ["a key for SendGrid that is none", { provider: "sendgrid", publicKey: "AAAA" }, "events.publicKey"],
  ["another provider's proof", { provider: "postmark", topicArn: TOPIC }, "events.topicArn"],
])("a route with %s is refused", async (_, events, param) => {
  const route = { name: "bad", kind: "relay", relayUrl: "smtp://relay.test", events };
  const answer = await relayed.wide("POST", "/v1/routes", route);
  expect(answer).toMatchObject({ status: 422, body: { error: { issues: [{ param }] } } });
});

test("proofs are stored sealed, a secret is shown once, and events can be turned off", async () => {
  const { db } = relayed.service.app;
  const { id, url } = await relayed.relay("postmark", { provider: "postmark" });
  const secret = new URL(url).searchParams.get("secret") ?? "";
  expect(secret.length).toBeGreaterThan(30);
  const row = JSON.stringify(
    await db.first<Record<string, unknown>>("SELECT * FROM routes WHERE id = ?", [id]),
  );
  expect(row).not.toContain(secret);
  const { body } = await relayed.wide("GET", `/v1/routes/${id}`);
  expect(body.events.provider).toBe("postmark");
  expect(JSON.stringify(body)).not.toContain(secret);
  expect((await relayed.wide("PATCH", `/v1/routes/${id}`, { events: null })).body.events).toBeNull();
  expect((await postEvents(url, {})).status).toBe(404);
});
