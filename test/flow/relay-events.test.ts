import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { HOUR_MS } from "../../src/core/time/units.ts";
import { MAX_EVENTS } from "../../src/flows/relays/take-events.ts";
import { MAX_EVENTS_BYTES } from "../../src/http/routes/relay-events.ts";
import { MAX_DELAYS } from "../../src/store/events/relayed.ts";
import type { MxMessage } from "../support/mx.ts";
import { exchangeBytes } from "../support/raw-http.ts";
import {
  about,
  fieldIn,
  MAILGUN_KEY,
  mailgunBody,
  postEvents,
  postSendgrid,
  type Relayed,
  SENDGRID_KEY,
  startRelayed,
  type TestRelay,
  TO,
} from "../support/relayed.ts";

setDefaultTimeout(60_000);

let relayed: Relayed;
let relays: Record<"postmark" | "mailgun" | "sendgrid", TestRelay>;

beforeAll(async () => {
  relayed = await startRelayed({ DEFAULT_PLAN: "pro" });
  relays = {
    postmark: await relayed.relay("postmark", { provider: "postmark" }),
    mailgun: await relayed.relay("mailgun", { provider: "mailgun", signingKey: MAILGUN_KEY }),
    sendgrid: await relayed.relay("sendgrid", { provider: "sendgrid", publicKey: SENDGRID_KEY }),
  };
});
afterAll(() => relayed.stop());

const metadata = (message: MxMessage) => ({ Postrider: fieldIn(message, "X-PM-Metadata-postrider") });
const messageId = (message: MxMessage) => fieldIn(message, "Message-ID");

/** What each provider says of a message. */
const SAID = {
  postmark: {
    post: (url: string, said: Record<string, unknown>, message: MxMessage) =>
      postEvents(
        url,
        about({ MessageID: crypto.randomUUID(), Metadata: metadata(message), ...said }, message),
      ),
    delivered: { RecordType: "Delivery", Recipient: TO, Details: "smtp;250 2.0.0 OK" },
    deferred: { RecordType: "Bounce", Type: "Transient", Email: TO, Details: "smtp;451 4.3.0 busy" },
    hard: { RecordType: "Bounce", Type: "HardBounce", Email: TO, Details: "smtp;550 5.1.1 User unknown" },
    soft: { RecordType: "Bounce", Type: "SoftBounce", Email: TO, Details: "smtp;452 4.2.2 Mailbox full" },
    failed: { RecordType: "Bounce", Type: "SpamNotification", Email: TO, Details: "Message looks like spam" },
    complained: { RecordType: "SpamComplaint", Type: "SpamComplaint", Email: TO },
  },
  mailgun: {
    post: (url: string, said: Record<string, unknown>, message: MxMessage) =>
      postEvents(
        url,
        mailgunBody(
          about(
            {
              recipient: TO,
              message: { headers: { "message-id": messageId(message).replace(/[<>]/g, "") } },
              ...said,
            },
            message,
          ),
        ),
      ),
    delivered: {
      event: "delivered",
      "delivery-status": { code: 250, message: "OK", "mx-host": "mx.to.test" },
    },
    deferred: {
      event: "failed",
      severity: "temporary",
      "delivery-status": { code: 451, message: "4.3.0 busy" },
    },
    hard: {
      event: "failed",
      severity: "permanent",
      "delivery-status": { code: 550, message: "5.1.1 User unknown" },
    },
    soft: { event: "failed", severity: "permanent", reason: "old", "delivery-status": { code: 602 } },
    failed: { event: "failed", severity: "permanent", reason: "suppress-complaint" },
    complained: { event: "complained" },
  },
  sendgrid: {
    post: (url: string, said: Record<string, unknown>, message: MxMessage) =>
      postSendgrid(url, [about({ email: TO, "smtp-id": messageId(message), ...said }, message)]),
    delivered: { event: "delivered", response: "250 2.0.0 OK" },
    deferred: { event: "deferred", response: "451 4.3.0 busy" },
    hard: { event: "bounce", type: "bounce", reason: "550 5.1.1 User unknown", status: "5.1.1" },
    soft: { event: "bounce", type: "expired", reason: "Unable to deliver in time" },
    failed: { event: "bounce", type: "blocked", reason: "550 5.7.1 our policy refuses the message" },
    complained: { event: "spamreport" },
  },
} as const;
type Provider = keyof typeof SAID;
const PROVIDERS = Object.keys(SAID) as Provider[];

async function post(provider: Provider, kind: keyof (typeof SAID)[Provider], message: MxMessage) {
  const { post: postTo, ...said } = SAID[provider];
  const response = await postTo(relays[provider].url, said[kind as "hard"], message);
  return { status: response.status, body: await response.json() };
}

const record = async (id: string) => (await relayed.service.call("GET", `/v1/emails/${id}`)).body;
const types = async (id: string) => (await record(id)).events.map(({ type }: { type: string }) => type);

async function suppression({ rcptTo }: MxMessage) {
  const { body } = await relayed.service.call("GET", `/v1/suppressions?email=${rcptTo[0]}`);
  return body.data[0] ?? null;
}

describe.each(PROVIDERS)("an event of %s", (provider) => {
  test.each([
    ["delivered", "delivered", null],
    ["hard", "bounced", { reason: "bounce", bounceType: "hard" }],
    ["soft", "bounced", { reason: "bounce", bounceType: "soft" }],
    ["failed", "failed", null],
    ["complained", "complained", { reason: "complaint" }],
  ] as const)("%s ends the message as %s", async (kind, status, suppressed) => {
    const { id, message } = await relays[provider].send();
    expect(await post(provider, kind, message)).toEqual({ status: 200, body: { events: 1 } });
    expect(await record(id)).toMatchObject({ status });
    const before = await types(id);
    expect(await post(provider, kind, message)).toMatchObject({ status: 200 });
    expect(await types(id)).toEqual(before);
    if (suppressed === null) expect(await suppression(message)).toBeNull();
    else expect(await suppression(message)).toMatchObject({ ...suppressed, messageId: id });
  });

  test("that the message is delayed is recorded once, and the message stays sent", async () => {
    const { id, message } = await relays[provider].send();
    for (const _ of [1, 2]) await post(provider, "deferred", message);
    expect((await types(id)).filter((type: string) => type === "delivery_delayed")).toHaveLength(1);
    const { status, events } = await record(id);
    expect(status).toBe("sent");
    expect(events.at(-1).data.delivery_delayed).toMatchObject({ smtpCode: 451, nextAttemptAt: null });
  });

  test("that comes late moves no final state back", async () => {
    const { id, message } = await relays[provider].send();
    for (const kind of ["hard", "delivered", "deferred"] as const) await post(provider, kind, message);
    expect(await record(id)).toMatchObject({ status: "bounced" });
    await post(provider, "complained", message);
    await post(provider, "delivered", message);
    expect(await record(id)).toMatchObject({ status: "complained" });
  });

  test("about another address, or a message of another route, changes nothing", async () => {
    const { id, message } = await relays[provider].send();
    const other = PROVIDERS.find((name) => name !== provider) as Provider;
    const { post: postTo, hard } = SAID[provider];
    const stranger = { recipient: "eve@to.test", Email: "eve@to.test", email: "eve@to.test" };
    expect(await (await postTo(relays[provider].url, { ...hard, ...stranger }, message)).json()).toEqual({
      events: 0,
    });
    const foreign = await relays[other].send();
    expect((await post(provider, "hard", foreign.message)).body).toEqual({ events: 0 });
    for (const sent of [id, foreign.id]) expect(await record(sent)).toMatchObject({ status: "sent" });
  });

  test("without its proof is refused and changes nothing", async () => {
    const { id, message } = await relays[provider].send();
    const { hard } = SAID[provider];
    const forged = {
      postmark: () =>
        SAID.postmark.post(
          `${relays.postmark.url.replace(/\?.*/, "")}?secret=${"x".repeat(32)}`,
          hard,
          message,
        ),
      mailgun: () => {
        const { signature, ...event } = mailgunBody({
          message: { headers: { "message-id": messageId(message) } },
          ...hard,
        });
        return postEvents(relays.mailgun.url, { signature: { ...signature, token: "other" }, ...event });
      },
      sendgrid: () =>
        postEvents(relays.sendgrid.url, [{ email: TO, "smtp-id": messageId(message), ...hard }]),
    };
    expect((await forged[provider]()).status).toBe(401);
    expect(await record(id)).toMatchObject({ status: "sent" });
  });
});

test("events of a relay are pushed to webhooks like those of our own deliveries", async () => {
  const { service } = relayed;
  const hook = { url: "http://127.0.0.1:9/hook", eventTypes: ["bounce"] };
  const { body: made } = await service.call("POST", "/v1/webhooks", hook);
  const { id, message } = await relays.sendgrid.send();
  await post("sendgrid", "hard", message);
  const { body } = await service.call("GET", `/v1/webhooks/${made.id}/deliveries`);
  expect(body.data).toMatchObject([{ type: "bounce", messageId: id }]);
  await service.call("DELETE", `/v1/webhooks/${made.id}`);
});

test("SendGrid's later events are matched by the argument that it gives back", async () => {
  const { id, message } = await relays.sendgrid.send();
  const argument = JSON.parse(fieldIn(message, "X-SMTPAPI")).unique_args;
  const answer = await postSendgrid(relays.sendgrid.url, [
    { email: message.rcptTo[0]?.toUpperCase(), event: "spamreport", ...argument },
  ]);
  expect(await answer.json()).toEqual({ events: 1 });
  expect(await record(id)).toMatchObject({ status: "complained" });
});

test("a message that forges what a relay gives back has no events of another message", async () => {
  const victim = await relays.postmark.send();
  const forged = fieldIn(victim.message, "X-PM-Metadata-postrider").replace(/.$/, (last) =>
    last === "0" ? "1" : "0",
  );
  const { hard } = SAID.postmark;
  const answer = await postEvents(
    relays.postmark.url,
    about({ ...hard, Metadata: { postrider: forged } }, victim.message),
  );
  expect(await answer.json()).toEqual({ events: 0 });
  expect(await record(victim.id)).toMatchObject({ status: "sent" });
});

test("Mailgun's signature counts for one body, and for a day", async () => {
  const { id, message } = await relays.mailgun.send();
  const headers = about(
    { recipient: TO, message: { headers: { "message-id": messageId(message) } } },
    message,
  );
  const token = crypto.randomUUID();
  const { delivered, hard } = SAID.mailgun;
  const first = mailgunBody({ ...headers, ...delivered }, token);
  expect((await postEvents(relays.mailgun.url, first)).status).toBe(200);
  const changed = { signature: first.signature, "event-data": { ...headers, ...hard } };
  expect((await postEvents(relays.mailgun.url, changed)).status).toBe(401);
  const old = mailgunBody({ ...headers, ...hard }, crypto.randomUUID(), 25 * HOUR_MS);
  expect((await postEvents(relays.mailgun.url, old)).status).toBe(401);
  expect(await record(id)).toMatchObject({ status: "delivered" });
});

test("of a recipient a limited number of delays is recorded", async () => {
  const { id, message } = await relays.sendgrid.send();
  const said = Array.from({ length: MAX_DELAYS + 1 }, (_, nth) => ({
    email: message.rcptTo[0],
    event: "deferred",
    "smtp-id": messageId(message),
    response: `451 4.3.0 busy ${nth}`,
  }));
  for (const one of said) await postSendgrid(relays.sendgrid.url, [one]);
  expect((await types(id)).filter((type: string) => type === "delivery_delayed")).toHaveLength(MAX_DELAYS);
});

test("a batch with an event too many, and a body with a byte too many, are refused", async () => {
  const event = { email: "a@b.test", event: "delivered", "smtp-id": "<a@b>" };
  const many = Array.from({ length: MAX_EVENTS + 1 }, () => event);
  expect((await postSendgrid(relays.sendgrid.url, many)).status).toBe(413);
  expect((await postEvents(relays.sendgrid.url, " ".repeat(MAX_EVENTS_BYTES + 1))).status).toBe(413);
});

test.each([
  ["an unknown route", () => relays.mailgun.url.replace(/rte_\w+/, "rte_00000000000000000000000000")],
  ["another provider than the route's", () => relays.mailgun.url.replace(/mailgun$/, "sendgrid")],
])("a request for %s finds nothing", async (_, url) => {
  expect((await postEvents(url(), {})).status).toBe(404);
});

test("a body that is no JSON, and one without anything, are refused", async () => {
  for (const body of ["{", ""]) expect((await postEvents(relays.postmark.url, body)).status).toBe(400);
});

test("a network with too many requests is refused before its next body has come", async () => {
  const limited = await startRelayed({ PLAN_PRO: "1/2" });
  const { service } = limited;
  const path = "/v1/routes/rte_00000000000000000000000000/events/ses";
  for (const _ of [1, 2]) expect((await postEvents(service.url + path, {})).status).toBe(404);
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n`;
  expect(await exchangeBytes(service.app.ports.http, head, true)).toMatchObject({ status: 429 });
  await limited.stop();
});
