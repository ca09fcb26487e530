import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createTransport } from "nodemailer";
import { publish } from "../support/dns.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import {
  OWNER,
  receivingInboxes,
  SERVICE_DOMAIN,
  startService,
  type TestService,
  verifiedDomain,
} from "../support/service.ts";

let service: TestService;
let relay: TestMx;

beforeEach(async () => {
  relay = startMx();
  service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
});
afterEach(async () => {
  await service.stop();
  relay.stop();
});

interface Sent {
  id: string;
  token: string;
  /** Domain of the return path. */
  domain: string;
}

async function send(from: string, to = "a@one.test"): Promise<Sent> {
  const mail = { from: { email: from }, to: [{ email: to }], subject: "Hi", text: "x" };
  const { id } = (await service.call("POST", "/v1/emails", mail)).body;
  await service.message(id, "sent");
  const path = relay.messages.items.at(-1)?.mailFrom ?? "";
  const [, token = "", domain = ""] = /^b\+([0-9a-z]{48})@(.+)$/.exec(path) ?? [];
  return { id, token, domain };
}

const DSN = `From: MAILER-DAEMON@relay.test
To: somebody@sender.test
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; relay.test

Final-Recipient: rfc822; a@one.test
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 No such user
--b--
`;

/** Delivers a report as another server does. Returns 250, or the code by which the recipient was refused. */
async function report(to: string): Promise<number> {
  const transport = createTransport({ host: "127.0.0.1", port: service.smtpPort, ignoreTLS: true });
  try {
    await transport.sendMail({ envelope: { from: "", to }, raw: DSN.replaceAll("\n", "\r\n") });
    return 250;
  } catch (error) {
    if (error instanceof Error && "responseCode" in error) return Number(error.responseCode);
    throw error;
  } finally {
    transport.close();
  }
}

/** Enables receiving for a domain and publishes its MX record, or disables receiving. */
async function setReceiving(domainId: string, enabled: boolean): Promise<void> {
  const { status, body } = await service.call("PATCH", `/v1/domains/${domainId}/receiving`, { enabled });
  expect(status).toBe(200);
  if (!enabled) return;
  publish(service.dns, body.records);
  const { body: receiving } = await service
    .call("POST", `/v1/domains/${domainId}/verify`)
    .then(() => service.call("GET", `/v1/domains/${domainId}/receiving`));
  expect(receiving.records[0].verified).toBe(true);
}

describe("the return path", () => {
  test("the return path is at the From domain if that receives, and otherwise at the bounce domain", async () => {
    const id = await verifiedDomain(service, "sender.test");
    await verifiedDomain(service, "other.test");
    expect((await send("news@sender.test")).domain).toBe(`bounce.${SERVICE_DOMAIN}`);
    await setReceiving(id, true);
    expect((await send("news@sender.test")).domain).toBe("sender.test");
    expect((await send("news@other.test")).domain).toBe(`bounce.${SERVICE_DOMAIN}`);
    await setReceiving(id, false);
    expect((await send("news@sender.test")).domain).toBe(`bounce.${SERVICE_DOMAIN}`);
  });

  test("the return path is at the bounce domain until the MX record of the From domain is there, because no report would arrive", async () => {
    const id = await verifiedDomain(service, "sender.test");
    const { body } = await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true });
    expect((await send("news@sender.test")).domain).toBe(`bounce.${SERVICE_DOMAIN}`);
    publish(service.dns, body.records);
    await service.call("POST", `/v1/domains/${id}/verify`);
    expect((await send("news@sender.test")).domain).toBe("sender.test");
  });

  test("the return path of mail from the onboarding domain is at the bounce domain", async () => {
    expect((await send(`hi@onboarding.${SERVICE_DOMAIN}`, OWNER)).domain).toBe(`bounce.${SERVICE_DOMAIN}`);
  });
});

describe("a report to a return path at a customer's domain", () => {
  test.each([
    ["as it was sent", (token: string) => `b+${token}@sender.test`],
    ["in capitals", (token: string) => `B+${token.toUpperCase()}@SENDER.TEST`],
  ])("%s changes its recipient, even if an inbox b@ exists", async (_, addressOf) => {
    const [inboxId] = await receivingInboxes(service, "sender.test", ["b@sender.test"]);
    const { id, token } = await send("news@sender.test");
    expect(await report(addressOf(token))).toBe(250);
    const record = await service.message(id, "bounced");
    expect(record.recipients[0]).toMatchObject({ email: "a@one.test", enhancedCode: "5.1.1" });
    const threads = await service.call("GET", `/v1/inboxes/${inboxId}/threads`);
    expect(threads.body.data).toEqual([]);
  });

  test("a report to a return path at a customer's domain counts even if the domain has stopped receiving since, or was deleted", async () => {
    const domainId = await verifiedDomain(service, "sender.test");
    await setReceiving(domainId, true);
    const [first, second] = [await send("news@sender.test"), await send("news@sender.test", "b@one.test")];
    await setReceiving(domainId, false);
    expect(await report(`b+${first.token}@sender.test`)).toBe(250);
    await service.message(first.id, "bounced");
    await service.call("DELETE", `/v1/domains/${domainId}`);
    expect(await report(`b+${second.token}@sender.test`)).toBe(250);
    await service.message(second.id, "bounced");
  });

  /** The token with its last character changed. */
  const forged = (token: string) => `${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`;

  test.each([
    ["a forged token", (token: string) => `b+${forged(token)}@sender.test`],
    ["a token cut short", (token: string) => `b+${token.slice(1)}@sender.test`],
    ["no token", () => "b+@sender.test"],
    ["another label", () => "b+newsletters@sender.test"],
  ])(
    "a report to a return path at a customer's domain with %s is ordinary mail to the inbox b",
    async (_, addressOf) => {
      const domainId = await verifiedDomain(service, "sender.test");
      await setReceiving(domainId, true);
      const { id, token } = await send("news@sender.test");
      expect(await report(addressOf(token))).toBe(550);
      const inbox = await service.call("POST", "/v1/inboxes", { address: "b@sender.test" });
      expect(await report(addressOf(token))).toBe(250);
      const threads = await service.call("GET", `/v1/inboxes/${inbox.body.id}/threads`);
      expect(threads.body.data.length).toBe(1);
      expect((await service.call("GET", `/v1/emails/${id}`)).body.status).toBe("sent");
    },
  );

  test("a report to a return path at a customer's domain with a forged token is refused at the bounce domain and at a domain that does not receive", async () => {
    await verifiedDomain(service, "sender.test");
    const { token } = await send("news@sender.test");
    for (const domain of [`bounce.${SERVICE_DOMAIN}`, "sender.test", "elsewhere.test"])
      expect(await report(`b+${forged(token)}@${domain}`)).toBe(550);
  });
});
