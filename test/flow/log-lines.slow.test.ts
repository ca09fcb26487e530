import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { createTransport } from "nodemailer";
import { publish, startDns, type TestDns } from "../support/dns.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { type ServiceProcess, serviceProcess } from "../support/process.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */

const LIMIT_MS = 180_000;
setDefaultTimeout(LIMIT_MS);

const METRICS_TOKEN = "metrics-token-hush-0123456789";
const ADDRESSES = {
  sender: "sender-hush@sender.test",
  recipient: "recipient-hush@there.test",
  unknown: "unknown-hush@there.test",
  inbox: "inbox-hush@sender.test",
  nobody: "nobody-hush@sender.test",
  stranger: "stranger-hush@far.test",
  spoofed: "spoofed-hush@strict.test",
};
const SUBJECT = "subject-hush";
const BODY = "body-hush";
const URL_SECRET = "url-secret-hush";
const WRONG_KEY = "prj_wrong-key-hush";

let dns: TestDns;
let peer: TestMx;
let sink: HttpsSink;
let service: ServiceProcess;

beforeEach(async () => {
  dns = await startDns();
  peer = startMx();
  sink = startSink();
  dns.add(
    { name: "there.test", type: "A", data: "127.0.0.1" },
    { name: "_dmarc.strict.test", type: "TXT", data: "v=DMARC1; p=reject" },
  );
  service = serviceProcess({
    DELIVERY: "mx",
    SMTP_OUT_PORT: String(peer.port),
    DNS_SERVERS: dns.address,
    METRICS_TOKEN,
    LOG_FORMAT: "json",
    WEBHOOK_RETRY_SECONDS: "0,0.02,600",
  });
});

afterEach(async () => {
  await service.remove();
  await sink.stop();
  peer.stop();
  dns.stop();
});

async function call(method: string, path: string, body?: unknown, key = service.key) {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      "x-service-product": "default",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, body: json ? JSON.parse(text) : text };
}

async function ends(id: string, status: string): Promise<void> {
  await until(async () => (await call("GET", `/v1/emails/${id}`)).body.status === status);
}

async function send(to: string): Promise<string> {
  const mail = { from: { email: ADDRESSES.sender }, to: [{ email: to }], subject: SUBJECT, text: BODY };
  const { status, body } = await call("POST", "/v1/emails", mail);
  expect(status).toBe(202);
  return body.id;
}

/** Delivers a message to the listener. Resolves with the reply's code. */
async function hand(from: string, to: string, raw: string): Promise<number> {
  const transport = createTransport({ host: "127.0.0.1", port: service.smtpPort, ignoreTLS: true });
  try {
    await transport.sendMail({ envelope: { from, to }, raw: raw.replaceAll("\n", "\r\n") });
    return 250;
  } catch (error) {
    return (error as { responseCode?: number }).responseCode ?? 0;
  } finally {
    transport.close();
  }
}

const letter = (from: string) => `From: <${from}>\nSubject: ${SUBJECT}\nMessage-ID: <${from}>\n\n${BODY}\n`;

const report = (address: string) => `From: <${ADDRESSES.stranger}>
Subject: ${SUBJECT}
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

${BODY}
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; there.test

Final-Recipient: rfc822; ${address}
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 <${address}> unknown
--b--
`;

async function prepare(): Promise<string> {
  const domain = await call("POST", "/v1/domains", { domain: "sender.test" });
  publish(dns, domain.body.records);
  await call("POST", `/v1/domains/${domain.body.id}/verify`, {});
  const receiving = await call("PATCH", `/v1/domains/${domain.body.id}/receiving`, { enabled: true });
  publish(dns, receiving.body.records);
  expect((await call("POST", "/v1/inboxes", { address: ADDRESSES.inbox })).status).toBe(201);
  const hook = { url: `${sink.url}/${URL_SECRET}`, eventTypes: ["*"] };
  return (await call("POST", "/v1/webhooks", hook)).body.signingSecret;
}

/**
 * A typical day: mail out that arrives, bounces and is refused, mail in, webhooks that fail and end, bad requests.
 */
async function live(): Promise<{ webhookSecret: string; returnPath: string }> {
  const webhookSecret = await prepare();
  sink.answer(500, 200);
  await ends(await send(ADDRESSES.recipient), "delivered");
  const returnPath = peer.messages.items.at(-1)?.mailFrom ?? "";
  expect(await hand("", returnPath, report(ADDRESSES.recipient))).toBe(250);
  peer.set({ RCPT: `550 5.1.1 <${ADDRESSES.unknown}> unknown, ${SUBJECT}` });
  await ends(await send(ADDRESSES.unknown), "bounced");
  expect(await hand(ADDRESSES.stranger, ADDRESSES.inbox, letter(ADDRESSES.stranger))).toBe(250);
  expect(await hand(ADDRESSES.spoofed, ADDRESSES.inbox, letter(ADDRESSES.spoofed))).toBe(550);
  expect(await hand(ADDRESSES.stranger, ADDRESSES.nobody, letter(ADDRESSES.stranger))).toBe(550);
  expect((await call("GET", "/v1/emails", undefined, WRONG_KEY)).status).toBe(401);
  expect((await call("POST", "/v1/emails", `{"subject": "${SUBJECT}`)).status).toBe(400);
  expect((await call("POST", "/v1/emails", { subject: SUBJECT, to: [BODY] })).status).toBe(422);
  expect((await call("POST", "/v1/emails/batch", { emails: [{ subject: SUBJECT }] })).status).toBe(207);
  expect((await call("GET", `/v1/contacts/${ADDRESSES.recipient}`)).status).toBe(404);
  expect((await call("GET", `/t/o/${URL_SECRET}`)).status).toBeLessThan(500);
  expect((await call("GET", "/metrics", undefined, METRICS_TOKEN)).status).toBe(200);
  sink.answer(410);
  await ends(await send(ADDRESSES.recipient), "rejected");
  await until(async () => !(await call("GET", "/v1/webhooks")).body.data[0].enabled);
  return { webhookSecret, returnPath };
}

/** Lines that contain one of the words, in any letter case. */
function leaks(lines: readonly string[], words: readonly string[]): string[] {
  const wanted = words.map((word) => word.toLowerCase());
  return lines.filter((line) => wanted.some((word) => line.toLowerCase().includes(word)));
}

const LEVELS: readonly [level: string, says: readonly string[]][] = [
  [
    "info",
    ["started", "a message was received", "a message was refused by DMARC", "webhook disabled", "stopping"],
  ],
  ["debug", ["a message was received", "mail accepted", "answered", "tried", "session ended"]],
];

test.each(LEVELS)(
  "at %s every line is JSON, and none contains an address, a body, a subject, a key or a secret",
  async (level, says) => {
    await service.start({ LOG_LEVEL: level });
    const { webhookSecret, returnPath } = await live();
    expect(await service.terminate()).toBe(0);
    const lines = service
      .output()
      .stderr.split("\n")
      .filter((line) => line !== "");
    const parsed = lines.map((line) => JSON.parse(line));
    expect(parsed.map(({ message }) => message)).toEqual(expect.arrayContaining([...says]));
    for (const { messages } of parsed.filter(({ message }) =>
      /^mail (?:taken|accepted|refused by policy)$/.test(message),
    ))
      expect(messages).toEqual([expect.stringMatching(/^msg_/)]);
    // A client finds one of its ids by the other.
    for (const { requestId } of parsed.filter(({ message }) => message === "mail accepted"))
      expect(parsed).toContainEqual(
        expect.objectContaining({ message: "answered", route: "/v1/emails", status: 202, requestId }),
      );
    for (const line of parsed)
      expect(line).toMatchObject({ time: expect.stringMatching(/Z$/), level: expect.any(String) });
    const secrets = [service.key, METRICS_TOKEN, webhookSecret, URL_SECRET, WRONG_KEY];
    const words = [...secrets, SUBJECT, BODY, ...Object.values(ADDRESSES), returnPath, "hush"];
    expect(words.every((word) => word.length >= 4)).toBe(true);
    expect(leaks(lines, words)).toEqual([]);
    // Each of the words would have been found.
    for (const word of words)
      expect(leaks([...lines, JSON.stringify({ planted: word })], words)).toHaveLength(1);
  },
);
