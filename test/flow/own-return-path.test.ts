import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createTransport } from "nodemailer";
import { publish } from "../support/dns.ts";
import { deliver } from "../support/mail-in.ts";
import { type MxMessage, startMx, type TestMx } from "../support/mx.ts";
import {
  receivingInboxes,
  SERVICE_DOMAIN,
  startService,
  type TestService,
  verifiedDomain,
} from "../support/service.ts";

const LIMIT_MS = 30_000;
const OURS = `bounce.${SERVICE_DOMAIN}`;
let service: TestService;
let relay: TestMx;
let inboxId: string;

beforeAll(async () => {
  relay = startMx();
  service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
  // The service's own zone, as its name server publishes it.
  const mx = { preference: 10, exchange: `mx.${SERVICE_DOMAIN}` };
  service.dns.add(
    { name: OURS, type: "MX", data: mx },
    { name: OURS, type: "TXT", data: `v=spf1 include:spf.${SERVICE_DOMAIN} ~all` },
    { name: `spf.${SERVICE_DOMAIN}`, type: "TXT", data: "v=spf1 ip4:127.0.0.1 ~all" },
  );
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["ann@in.test"]);
}, LIMIT_MS);
afterAll(async () => {
  await service?.stop();
  relay?.stop();
});

let count = 0;
/** A verified domain with its own return path, and its id. */
async function domainOfItsOwn(): Promise<{ id: string; name: string }> {
  const name = `own${++count}.test`;
  const id = await verifiedDomain(service, name);
  const { body } = await service.call("GET", `/v1/domains/${id}`);
  publish(service.dns, body.recommended);
  expect((await verify(id)).recommended[0].verified).toBe(true);
  return { id, name };
}

async function verify(id: string) {
  return (await service.call("POST", `/v1/domains/${id}/verify`)).body;
}

/** Sends a message and returns it as the relay got it, with its id. */
async function send(domain: string): Promise<MxMessage & { id: string; path: string }> {
  const to = [{ email: `reader${++count}@one.test` }];
  const mail = { from: { email: `news@${domain}` }, to, subject: "Hi", text: "x" };
  const { id } = (await service.call("POST", "/v1/emails", mail)).body;
  await service.message(id, "sent");
  const sent = relay.messages.items.at(-1);
  if (sent === undefined) throw new Error("nothing was sent");
  return { ...sent, id, path: sent.mailFrom.slice(sent.mailFrom.indexOf("@") + 1) };
}

describe("the recommended record for a domain's own return path", () => {
  test("the recommended record for a domain's own return path is shown and never needed, and is used from the check that finds it until one that does not", async () => {
    const id = await verifiedDomain(service, "news.test");
    const { body } = await service.call("GET", `/v1/domains/${id}`);
    const record = {
      type: "CNAME",
      name: "bounce.news.test",
      value: OURS,
      purpose: "return_path",
      verified: false,
    };
    expect([body.status, body.recommended]).toEqual(["verified", [record]]);
    expect((await send("news.test")).path).toBe(OURS);
    publish(service.dns, body.recommended);
    expect((await verify(id)).recommended).toEqual([
      { ...record, verified: true, status: "verified", found: [OURS], problem: null, fix: null },
    ]);
    expect((await send("news.test")).path).toBe("bounce.news.test");
    service.dns.remove("bounce.news.test");
    const after = await verify(id);
    expect([after.status, after.recommended[0].status]).toEqual(["verified", "missing"]);
    expect(after.recommended[0].problem).toBe("There is no CNAME record at bounce.news.test.");
    expect((await send("news.test")).path).toBe(OURS);
  });

  test("the recommended record for a domain's own return path is wrong with another target, and then not used", async () => {
    const id = await verifiedDomain(service, "wrong.test");
    service.dns.add({ name: "bounce.wrong.test", type: "CNAME", data: "bounce.other.test" });
    const { recommended, status } = await verify(id);
    expect(status).toBe("verified");
    expect(recommended[0]).toMatchObject({
      status: "wrong",
      found: ["bounce.other.test"],
      fix: OURS,
      verified: false,
      problem: "bounce.wrong.test has another target. Replace its value.",
    });
    expect((await send("wrong.test")).path).toBe(OURS);
  });

  test("the recommended record for a domain's own return path comes before the From domain itself if that receives, too", async () => {
    const { id, name } = await domainOfItsOwn();
    const { body } = await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true });
    publish(service.dns, body.records);
    await verify(id);
    expect((await send(name)).path).toBe(`bounce.${name}`);
  });

  test.each<[string, (name: string) => void]>([
    ["was removed since the last check", (name) => service.dns.remove(name)],
    ["is not answered", (name) => service.dns.behave("servfail", name)],
    ["is not answered in time", (name) => service.dns.behave("silent", name)],
    [
      "leads to another host by now",
      (name) => {
        service.dns.remove(name);
        service.dns.add({ name, type: "MX", data: { preference: 10, exchange: "mx.other.test" } });
      },
    ],
  ])("that %s is left for our return path, so that no receiver refuses the sender", async (_, trouble) => {
    const { name } = await domainOfItsOwn();
    trouble(`bounce.${name}`);
    expect((await send(name)).path).toBe(OURS);
  });
});

test("a check that gets no answer leaves the record as it was", async () => {
  const { id, name } = await domainOfItsOwn();
  service.dns.behave("servfail", `bounce.${name}`);
  const { recommended } = await verify(id);
  expect(recommended[0]).toMatchObject({ verified: true, status: "unknown" });
});

const report = ({ mailFrom, rcptTo }: MxMessage) =>
  [
    "From: MAILER-DAEMON@relay.test",
    `To: ${mailFrom}`,
    "Subject: Undelivered Mail Returned to Sender",
    "MIME-Version: 1.0",
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
    "",
    "--b",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; relay.test",
    "",
    `Final-Recipient: rfc822; ${rcptTo[0]}`,
    "Action: failed",
    "Status: 5.1.1",
    "Diagnostic-Code: smtp; 550 5.1.1 No such user",
    "--b--",
    "",
  ].join("\r\n");

/** Delivers octets over SMTP. Returns 250, or the code of the refusal. */
async function submit(from: string, to: string, raw: string | Buffer): Promise<number> {
  const transport = createTransport({ host: "127.0.0.1", port: service.smtpPort, ignoreTLS: true });
  try {
    await transport.sendMail({ envelope: { from, to }, raw });
    return 250;
  } catch (error) {
    if (error instanceof Error && "responseCode" in error) return Number(error.responseCode);
    throw error;
  } finally {
    transport.close();
  }
}

describe("mail to a domain's own return path", () => {
  test("moves the recipient that its token names", async () => {
    const { name } = await domainOfItsOwn();
    const sent = await send(name);
    expect(sent.path).toBe(`bounce.${name}`);
    expect(await submit("", sent.mailFrom, report(sent))).toBe(250);
    const { recipients } = await service.message(sent.id, "bounced");
    expect(recipients[0]).toMatchObject({ email: sent.rcptTo[0], enhancedCode: "5.1.1" });
  });

  test("mail to a domain's own return path reaches the customer's postmaster, and nobody without a token at it or at another customer's", async () => {
    const { id, name } = await domainOfItsOwn();
    const letter = (to: string) => deliver(service, { to });
    expect(await letter(`postmaster@bounce.${name}`)).toStartWith("250");
    expect(await letter(`ann@bounce.${name}`)).toStartWith("550");
    expect(await letter(`b+${"0".repeat(48)}@bounce.${name}`)).toStartWith("550");
    expect(await letter("postmaster@bounce.stranger.test")).toStartWith("550");
    service.dns.remove(`bounce.${name}`);
    await verify(id);
    expect(await letter(`postmaster@bounce.${name}`)).toStartWith("550");
  });

  test("mail to a domain's own return path is not the postmaster of a project that never verified the domain", async () => {
    const { body } = await service.call("POST", "/v1/domains", { domain: "unproven.test" });
    service.dns.add({ name: "bounce.unproven.test", type: "CNAME", data: OURS });
    expect((await verify(body.id)).recommended[0].verified).toBe(true);
    expect(await deliver(service, { to: "postmaster@bounce.unproven.test" })).toStartWith("550");
  });
});

test("SPF passes aligned through the alias, and so does DMARC by SPF alone", async () => {
  const { name } = await domainOfItsOwn();
  const { mailFrom, data } = await send(name);
  // Without its signature only SPF is left to align.
  const [head = "", ...body] = data.toString("latin1").split("\r\n\r\n");
  const unsigned = head.replace(/^DKIM-Signature:[^\r]*(?:\r\n[ \t][^\r]*)*\r\n/im, "");
  expect(unsigned).not.toContain("DKIM-Signature");
  expect(await submit(mailFrom, "ann@in.test", [unsigned, ...body].join("\r\n\r\n"))).toBe(250);
  const threads = await service.call("GET", `/v1/inboxes/${inboxId}/threads`);
  const { body: thread } = await service.call("GET", `/v1/threads/${threads.body.data[0].id}`);
  const received = await service.call("GET", `/v1/emails/${thread.messages[0].id}/raw`);
  const results =
    /^Authentication-Results:[^\r]*(?:\r\n[ \t][^\r]*)*/im.exec(String(received.body))?.[0] ?? "";
  expect(results).toContain(`spf=pass`);
  expect(results).toContain(`smtp.mailfrom=bounce.${name}`);
  expect(results).toMatch(/dmarc=pass/);
  expect(results).not.toContain("dkim=pass");
});
