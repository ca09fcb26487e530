import { describe, expect, test } from "bun:test";
import { explain } from "../../../../src/flows/read/explain.ts";
import type { Message } from "../../../../src/store/messages/messages.ts";
import type { Recipient } from "../../../../src/store/messages/recipients.ts";

const NOW = Date.parse("2026-11-28T13:50:00Z");
const MINUTE_MS = 60_000;

const RECIPIENT: Recipient = {
  messageId: "msg_1",
  ord: 0,
  senderId: "snd_1",
  email: "bob@b.example",
  domain: "b.example",
  kind: "to",
  status: "delivery_delayed",
  reason: null,
  attempts: 1,
  firstAttemptAt: NOW,
  mx: "mx.b.example",
  tls: null,
  smtpCode: 421,
  enhancedCode: null,
  diagnostic: null,
  lastEventAt: NOW,
  bulk: false,
  routedBy: null,
  dueAt: NOW + 20 * MINUTE_MS,
};

function explained(recipient: Partial<Recipient>, now = NOW) {
  const message = { direction: "outbound", status: "delivery_delayed", scheduledAt: null } as Message;
  return explain(message, [{ ...RECIPIENT, ...recipient }], now).recipients[0];
}

const refused = (reason: string, diagnostic: string): Partial<Recipient> => ({
  reason,
  diagnostic,
  smtpCode: Number(diagnostic.slice(0, 3)),
});

describe("the explanation of a deferral", () => {
  test.each([
    ["mta5.am0.yahoodns.net", "Yahoo asked us to wait until 14:10 UTC."],
    ["mx.b.example", "The mail server of b.example asked us to wait until 14:10 UTC."],
  ])("the explanation of a deferral by %s names who asked us to wait, and until when", (mx, words) => {
    const found = explained({
      ...refused("reputation", "421 4.7.0 [TSS04] Messages from 192.0.2.9 deferred"),
      mx,
    });
    expect(found?.what).toBe("The delivery did not work yet. It is tried again at 14:10 UTC.");
    expect(found?.why).toStartWith(words);
    expect(found?.nextAttemptAt).toBe(NOW + 20 * MINUTE_MS);
  });

  test("the explanation of a deferral names the date if that is not today's", () => {
    const found = explained({ ...refused("rate", "421 Rate limit"), dueAt: NOW + 24 * 60 * MINUTE_MS });
    expect(found?.why).toContain("until 13:50 UTC on 2026-11-29.");
  });

  test("the explanation of a deferral does not say that a full mailbox asked us to wait", () => {
    expect(explained(refused("mailbox-full", "452 4.2.2 full"))?.why).toBe(
      "The mailbox is full. The reply: 452 4.2.2 full",
    );
  });

  test("the explanation of a deferral that is being tried now names no time", () => {
    const found = explained({ ...refused("rate", "421 Rate limit"), dueAt: null });
    expect(found).not.toHaveProperty("nextAttemptAt");
    expect(found?.what).toBe("The delivery did not work yet. It is tried again.");
  });
});

describe("the party to blame is", () => {
  test.each([
    ["us", "authentication", "450 4.7.25 Client host rejected: cannot find your hostname", "reverse DNS"],
    ["you", "authentication", "421 4.7.27 SPF authentication didn't pass", "SPF, DKIM or DMARC"],
    [
      "you",
      "rate",
      "421 4.7.28 an unusual rate of mail originating from your DKIM domain x.example",
      "your domain",
    ],
    [
      "us",
      "rate",
      "421 4.7.28 an unusual rate of mail originating from your IP address",
      "how fast it accepts our mail",
    ],
    ["provider", "rate", "452 rate limit to this recipient exceeded", "The recipient is getting mail faster"],
    [
      "you",
      "reputation",
      "554 rejected due to having a domain present in the Spamhaus DBL",
      "your domain, a link",
    ],
    ["recipient", "policy", "550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup", "its administrator"],
    ["provider", "greylist", "450 4.2.0 Greylisted", "does not know yet"],
  ])("%s if %s refuses by %s", (who, reason, diagnostic, words) => {
    const found = explained({ ...refused(reason, diagnostic), status: "failed", dueAt: null });
    expect<string | undefined>(found?.who).toBe(who);
    expect(found?.why).toContain(words);
  });

  test("once retries have expired, the party to blame is that of the last reply", () => {
    const found = explained({
      ...refused("retries_exhausted", "421 4.7.0 [TSS04] Messages from 192.0.2.9 deferred"),
      status: "failed",
      dueAt: null,
    });
    expect(found).toMatchObject({ who: "us" });
    expect(found?.why).toStartWith(
      "All tries were put off until the time for tries was over. The provider does not",
    );
  });
});
