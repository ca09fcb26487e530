import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readyToSend, type Sending, serviceBesideMx } from "../support/peers/exchange.ts";
import { MAILBOX_UID, type Peer, PEER_DOMAIN } from "../support/peers/peer.ts";
import { postfix, startPostfix } from "../support/peers/postfix.ts";
import { titleOf } from "../support/peers/kinds.ts";
import type { TestService } from "../support/service.ts";

const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);
const LATER = `later@${PEER_DOMAIN}`;
const MAILS = 12;

describe.skipIf(postfix.missing !== null).each([
  ["with PIPELINING", ""],
  ["without PIPELINING", "pipelining"],
])(`${titleOf(postfix)} with a policy at the end of data, %s`, (_, discarded) => {
  let peer: Peer;
  let service: TestService;
  let sending: Sending;

  beforeAll(async () => {
    peer = await startPostfix({
      virtual_mailbox_domains: PEER_DOMAIN,
      virtual_mailbox_base: "FOLDER/mail",
      virtual_mailbox_maps: "static:inbox/",
      virtual_uid_maps: `static:${MAILBOX_UID}`,
      virtual_gid_maps: `static:${MAILBOX_UID}`,
      smtpd_recipient_restrictions: "reject_unauth_destination, permit",
      smtpd_end_of_data_restrictions: `check_recipient_access inline:{{${LATER}=450 4.7.1 Not now}}`,
      smtpd_discard_ehlo_keywords: discarded,
    });
    service = await serviceBesideMx(peer);
    sending = await readyToSend(service);
  }, LIMIT_MS);
  afterAll(async () => {
    await service?.stop();
    await peer?.stop();
  }, LIMIT_MS);

  test("a deferred message does not affect the message after it", async () => {
    const users = Array.from({ length: MAILS }, (_user, at) =>
      at % 2 === 0 ? LATER : `u${at}@${PEER_DOMAIN}`,
    );
    const ids = await Promise.all(users.map((to) => sending.send(to)));
    for (const [at, id] of ids.entries()) {
      const expected =
        users[at] === LATER
          ? { status: "delivery_delayed", smtpCode: 450, attempts: 1 }
          : { status: "delivered", smtpCode: 250, attempts: 1 };
      expect((await sending.ended(id, expected.status)).recipients).toMatchObject([expected]);
    }
    expect(await peer.mailbox(MAILS / 2)).toHaveLength(MAILS / 2);
  });
});
