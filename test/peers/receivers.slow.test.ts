import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  fromFrom,
  prose,
  readyToSend,
  type Sending,
  serviceBesideMx,
  VARIED,
} from "../support/peers/exchange.ts";
import { PEER_KINDS, titleOf } from "../support/peers/kinds.ts";
import {
  PEER_BUSY,
  PEER_DOMAIN,
  PEER_MAILBOX,
  PEER_MAX_OCTETS,
  PEER_MX,
  type Peer,
} from "../support/peers/peer.ts";
import type { TestService } from "../support/service.ts";
import { makeCert } from "../support/tls.ts";

/** Starting and stopping servers takes seconds if the machine is busy. */
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);

for (const kind of PEER_KINDS)
  describe.skipIf(kind.missing !== null).each([
    ["without TLS", false],
    [kind.brokenTls === null ? "with STARTTLS" : `with STARTTLS that fails (${kind.brokenTls})`, true],
  ])(`mail to the MX ${titleOf(kind)} %s`, (_, offersTls) => {
    let peer: Peer;
    let service: TestService;
    let sending: Sending;

    beforeAll(async () => {
      peer = await kind.start({ tls: offersTls ? await makeCert([PEER_MX]) : null });
      service = await serviceBesideMx(peer);
      sending = await readyToSend(service);
    }, LIMIT_MS);
    afterAll(async () => {
      await service?.stop();
      await peer?.stop();
    }, LIMIT_MS);

    test("arrives octet for octet with its signature intact, and is delivered", async () => {
      const contents = Object.values(VARIED);
      const ids = await Promise.all(contents.map((content) => sending.send(PEER_MAILBOX, content)));
      const tls = offersTls && kind.brokenTls === null ? expect.stringMatching(/^TLSv1\.[23]/) : null;
      for (const id of ids)
        expect((await sending.ended(id, "delivered")).recipients).toMatchObject([
          { status: "delivered", mx: PEER_MX, tls, smtpCode: 250, attempts: 1 },
        ]);
      const mails = await peer.mailbox(contents.length);
      expect(mails).toHaveLength(contents.length);
      for (const mail of mails) expect(await sending.dkim(mail)).toBe("pass");
      const expected = await Promise.all(ids.map((id) => sending.signedPart(id)));
      const arrived = new Set(mails.map((mail) => fromFrom(mail).toString("latin1")));
      const harmed = Object.keys(VARIED).filter(
        (_, at) => !arrived.has(expected[at]?.toString("latin1") ?? ""),
      );
      expect(harmed).toEqual([]);
    });

    test("mail to an unknown mailbox is a hard bounce, with the server's own words", async () => {
      const id = await sending.send(`nobody@${PEER_DOMAIN}`);
      const [recipient] = (await sending.ended(id, "bounced")).recipients;
      expect(recipient).toMatchObject({ status: "bounced", smtpCode: 550, attempts: 1 });
      expect(recipient.diagnostic).toMatch(/unknown|no such mailbox|invalid recipient/i);
      const { body } = await service.call("GET", `/v1/suppressions?email=nobody@${PEER_DOMAIN}`);
      expect(body.data).toMatchObject([{ reason: "bounce", bounceType: "hard", messageId: id }]);
    });

    test("mail over the server's size limit fails, and suppresses no address", async () => {
      const id = await sending.send(`large@${PEER_DOMAIN}`, {
        subject: "Too large",
        text: "x",
        attachments: [{ filename: "x", content: btoa(prose(PEER_MAX_OCTETS)) }],
      });
      const [recipient] = (await sending.ended(id, "failed")).recipients;
      expect(recipient).toMatchObject({ status: "failed", attempts: 1 });
      expect(recipient.diagnostic).toMatch(/limit|size|too (?:big|large)/i);
      const { body } = await service.call("GET", `/v1/suppressions?email=large@${PEER_DOMAIN}`);
      expect(body.data).toEqual([]);
    });

    test("refused temporarily is delayed, and retried later", async () => {
      const id = await sending.send(PEER_BUSY);
      const { recipients, events } = await sending.ended(id, "delivery_delayed");
      expect(recipients).toMatchObject([
        { status: "delivery_delayed", smtpCode: 450, enhancedCode: "4.7.1" },
      ]);
      expect(recipients[0].diagnostic).toContain("Greylisted, come back later");
      expect(events.at(-1)).toMatchObject({ type: "delivery_delayed" });
    });
  });
