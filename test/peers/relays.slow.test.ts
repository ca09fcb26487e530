import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createTransport } from "nodemailer";
import { startMx, type TestMx } from "../support/mx.ts";
import { fromFrom, prose, readyToSend, type Sending, VARIED } from "../support/peers/exchange.ts";
import { PEER_KINDS, titleOf } from "../support/peers/kinds.ts";
import { eventually, type Peer } from "../support/peers/peer.ts";
import { freePort } from "../support/redis.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { makeCert } from "../support/tls.ts";

const LOGIN = { user: "postrider", pass: "correct horse:battery" };
/** Starting and stopping servers takes seconds if the machine is busy. */
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);
const INBOX = "inbox@in.test";

/** Recipients that the last server refuses, its words, and their meaning once a DSN returns them. */
const REFUSALS = [
  ["unknown", "550 5.1.1 <unknown@final.test>: Recipient address rejected: User unknown", "bounced", "hard"],
  ["no-enhanced-code", "550 No such user here", "bounced", "hard"],
  ["full", "552 5.2.2 Mailbox is over its quota", "bounced", "soft"],
  ["unwanted", "554 5.7.1 Message refused by our content policy", "failed", null],
] as const;

/** Messages as other programs write them, not all of them as ours would. */
const FOREIGN: Readonly<Record<string, string>> = {
  "8-bit text": `Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nZażółć gęślą jaźń\r\n`,
  "dots where lines begin": "\r\n.\r\n..\r\n.x\r\n\r\n.\r\n",
  "empty lines at the end": "\r\nx\r\n\r\n\r\n\r\n",
  "lines of 998 octets": `\r\n${"y".repeat(998)}\r\n.${"z".repeat(997)}\r\n`,
  "folded and spaced fields":
    "X-Folded: a\r\n\tb\r\n   c  \r\nX-Spaces:    two  \t spaces\r\n\r\nx  \r\n\t\r\n",
  "one megabyte": `\r\n${prose(1_000_000).replaceAll("\n", "\r\n")}\r\n`,
};

for (const kind of PEER_KINDS)
  describe.skipIf(kind.missing !== null).each([
    ["without TLS", false],
    [kind.brokenTls === null ? "with STARTTLS" : `with STARTTLS that fails (${kind.brokenTls})`, true],
  ])(`${titleOf(kind)} as the smarthost, %s`, (_, tls) => {
    let final: TestMx;
    let peer: Peer;
    let service: TestService;
    let sending: Sending;
    const workingTls = tls && kind.brokenTls === null;
    const login = workingTls && kind.logsIn ? LOGIN : null;

    beforeAll(async () => {
      const smtpPort = freePort();
      final = startMx({
        answers: {
          RCPT: (argument) =>
            REFUSALS.find(([user]) => argument.includes(`<${user}@`))?.[1] ?? "250 2.1.5 fine",
        },
      });
      peer = await kind.start({
        tls: tls ? await makeCert(["mx.peer.test"]) : null,
        clientTls: tls,
        routes: {
          "final.test": { port: final.port },
          "in.test": { port: smtpPort },
          [`bounce.${SERVICE_DOMAIN}`]: { port: smtpPort },
        },
        ...(login === null ? {} : { login }),
      });
      const user = login === null ? "" : `${login.user}:${encodeURIComponent(login.pass)}@`;
      service = await startService({
        DELIVERY: "relay",
        // Its certificate is made by the test. Without this setting no password would be sent to it.
        SMTP_RELAY_URL: `smtp://${user}${peer.ip}:${peer.port}${login === null ? "" : "?insecure=1"}`,
        SMTP_PORT: String(smtpPort),
      });
      sending = await readyToSend(service);
      await receivingInboxes(service, "in.test", [INBOX]);
    }, LIMIT_MS);
    afterAll(async () => {
      await service?.stop();
      await peer?.stop();
      final?.stop();
    }, LIMIT_MS);

    test(`accepts mail${login === null ? "" : " after a login"} and passes it on octet for octet`, async () => {
      const contents = Object.values(VARIED);
      const before = final.messages.items.length;
      const ids = await Promise.all(contents.map((content) => sending.send("to@final.test", content)));
      for (const id of ids)
        expect((await sending.ended(id, "sent")).recipients).toMatchObject([
          { status: "sent", mx: peer.ip, tls: workingTls ? expect.stringMatching(/^TLSv1\.[23]/) : null },
        ]);
      await final.messages.reached(before + contents.length);
      const mails = final.messages.items.slice(before);
      for (const { data } of mails) expect(await sending.dkim(data)).toBe("pass");
      const arrived = new Set(mails.map(({ data }) => fromFrom(data).toString("latin1")));
      const expected = await Promise.all(ids.map((id) => sending.signedPart(id)));
      const harmed = Object.keys(VARIED).filter(
        (_, at) => !arrived.has(expected[at]?.toString("latin1") ?? ""),
      );
      expect(harmed).toEqual([]);
    });

    // Where TLS fails, the same would arrive again without it, and a server may wait ten seconds before it tells.
    const tellsElse = tls && !workingTls;
    test.skipIf(tellsElse)(
      "sends real DSNs of refused mail to our listener, and each ends its recipient",
      async () => {
        const ids = await Promise.all(REFUSALS.map(([user]) => sending.send(`${user}@final.test`)));
        for (const [at, [user, reply, status, bounceType]] of REFUSALS.entries()) {
          const email = `${user}@final.test`;
          const { recipients, events } = await sending.ended(ids[at] ?? "", status);
          expect(recipients).toMatchObject([{ email, status }]);
          expect(events.map(({ type }: { type: string }) => type)).toContain("sent");
          if (kind.quotesReply) {
            expect(recipients[0].smtpCode).toBe(Number(reply.slice(0, 3)));
            // A DSN folds the text that it quotes.
            expect(recipients[0].diagnostic.replace(/\s+/g, " ")).toContain(reply.slice(4));
          }
          const { body } = await service.call("GET", `/v1/suppressions?email=${email}`);
          const messageId = ids[at];
          expect(body.data).toMatchObject(
            bounceType === null ? [] : [{ reason: "bounce", bounceType, messageId }],
          );
        }
      },
    );

    test("delivers foreign mail to our listener octet for octet", async () => {
      const transport = createTransport({
        host: peer.ip,
        port: peer.port,
        ignoreTLS: !workingTls,
        tls: { rejectUnauthorized: false },
        ...(login === null ? {} : { auth: login }),
      });
      const sent = Object.values(FOREIGN).map(
        (rest, at) =>
          `Date: Tue, 01 Jul 2025 10:00:00 +0000\r\nFrom: ann@outside.test\r\nTo: ${INBOX}\r\n` +
          `Subject: Foreign ${at}\r\nMessage-ID: <foreign-${at}@outside.test>\r\nMIME-Version: 1.0\r\n${rest}`,
      );
      for (const raw of sent)
        await transport.sendMail({
          envelope: { from: "ann@outside.test", to: INBOX },
          raw: Buffer.from(raw),
        });
      transport.close();
      const messages = await eventually(async () => {
        const { body } = await service.call("GET", "/v1/emails?direction=inbound&limit=100");
        return body.data.length >= sent.length ? body.data : null;
      }, peer.log);
      expect(messages).toHaveLength(sent.length);
      const arrived: string[] = [];
      for (const { id } of messages) {
        const { body } = await service.call("GET", `/v1/emails/${id}`);
        expect(body.envelope.tls).toEqual(tls ? expect.stringMatching(/^TLSv1\.[23]/) : null);
        arrived.push((await sending.signedPart(id)).toString("utf8"));
      }
      const harmed = Object.keys(FOREIGN).filter((_, at) => !arrived.some((raw) => sent[at]?.endsWith(raw)));
      expect(harmed).toEqual([]);
    });

    if (login === null) return;
    test("gets no login from us while its certificate is not trusted", async () => {
      await service.restart({ SMTP_RELAY_URL: `smtp://${login.user}:secret@${peer.ip}:${peer.port}` });
      const id = await sending.send("to@final.test");
      const { recipients } = await sending.ended(id, "delivery_delayed");
      expect(recipients).toMatchObject([{ status: "delivery_delayed", smtpCode: null }]);
      expect(recipients[0].diagnostic).toContain("certificate");
    });
  });
