import { describe, expect, test } from "bun:test";
import { textRules } from "../../../../src/mail/bounces/reply-phrases.ts";
import { classByText, classifyGivenUp, classifyReply } from "../../../../src/mail/bounces/reply-class.ts";
import { effectRules } from "../../../../src/mail/bounces/reply-reading.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

type Row = [
  code: number | null,
  enhanced: string | null,
  text: string,
  stage: string | null,
  expected: string,
];

function outcomeOf(refusal: { outcome: string; category: string }): string {
  return `${refusal.outcome} ${refusal.category}`;
}

describe("a peer's refusal", () => {
  test.each<Row>([
    // Mailbox and domain.
    [
      550,
      "5.1.1",
      "<x@a.example>: Recipient address rejected: User unknown in virtual mailbox table",
      "rcpt",
      "hard recipient",
    ],
    [550, "5.1.1", "The email account that you tried to reach does not exist.", "rcpt", "hard recipient"],
    [
      550,
      "5.1.10",
      "RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup",
      "final",
      "hard recipient",
    ],
    [550, "5.4.1", "Recipient address rejected: Access denied.", "rcpt", "hard recipient"],
    [550, "5.2.1", "The email account that you tried to reach is disabled.", "rcpt", "hard recipient"],
    [550, "5.2.1", "", "rcpt", "hard recipient"],
    [550, "5.1.2", "Bad destination system address", "rcpt", "hard recipient"],
    [554, "5.1.0", "", "rcpt", "hard recipient"],
    [556, "5.1.10", "Domain does not accept mail", "rcpt", "hard recipient"],
    // The text decides over a generic code.
    [550, "5.0.0", "user unknown", "rcpt", "hard recipient"],
    [550, "5.5.0", "Requested action not taken: mailbox unavailable", "rcpt", "hard recipient"],
    [550, "5.1.1", "mailbox over quota", "rcpt", "soft mailbox-full"],
    [550, "5.7.1", "no such user here", "rcpt", "hard recipient"],
    // A code that names the mailbox decides over words without a reason.
    [550, "5.1.1", "Message rejected", "rcpt", "hard recipient"],
    [550, "5.2.2", "Access denied, try again later", "rcpt", "soft mailbox-full"],
    [550, "5.1.0", "Access denied", "rcpt", "failed policy"],
    [550, "5.1.1", "Blocked, see spamhaus", "rcpt", "failed reputation"],
    // Mailbox full.
    [552, "5.2.2", "The email account that you tried to reach is over quota", "final", "soft mailbox-full"],
    [552, null, "Requested mail action aborted: exceeded storage allocation", "final", "soft mailbox-full"],
    [550, "5.2.2", "", "rcpt", "soft mailbox-full"],
    // Bare codes.
    [550, null, "", "rcpt", "hard recipient"],
    [551, null, "no", "rcpt", "hard recipient"],
    [553, null, "sorry", "rcpt", "hard recipient"],
    [550, "5.0.0", "rejected", "rcpt", "hard recipient"],
    // Words about the client, whose reason is not known, do not suppress the recipient.
    [550, null, "Please turn on SMTP Authentication in your mail client", "rcpt", "failed other"],
    [550, null, "The sending IP 192.0.2.1 is listed on https://lists.example", "rcpt", "failed other"],
    [553, null, "Set a HELO name first", "rcpt", "failed other"],
    [550, "5.1.1", "The sending IP 192.0.2.1 is listed", "rcpt", "hard recipient"],
    [554, null, "", "rcpt", "failed other"],
    [550, null, "", "final", "failed other"],
    [550, null, "", "mail", "failed other"],
    [550, null, "", null, "failed other"],
    [503, null, "bad sequence", "rcpt", "failed protocol"],
    // Policy, reputation, content, infrastructure.
    [
      554,
      "5.7.1",
      "Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org",
      "rcpt",
      "failed reputation",
    ],
    [
      550,
      "5.7.1",
      "Our system has detected that this message is likely unsolicited mail.",
      "final",
      "failed content",
    ],
    [
      550,
      "5.7.26",
      "This mail has been blocked because the sender is unauthenticated.",
      "final",
      "failed authentication",
    ],
    [550, "5.7.25", "", "rcpt", "failed authentication"],
    [550, "5.7.28", "", "rcpt", "failed rate"],
    [550, "5.7.1", "", "rcpt", "failed policy"],
    [
      550,
      "5.7.509",
      "Access denied, sending domain a.example does not pass DMARC verification",
      "final",
      "failed authentication",
    ],
    [550, "5.1.8", "Sender address rejected: Domain not found", "rcpt", "failed policy"],
    [
      553,
      "5.1.8",
      "<a@b.example>... Domain of sender address a@b.example does not exist",
      "mail",
      "failed policy",
    ],
    [554, "5.7.1", "<x@a.example>: Relay access denied", "rcpt", "failed infrastructure"],
    [552, "5.3.4", "Message size exceeds fixed limit", "mail", "failed content"],
    [552, "5.2.3", "", "final", "failed content"],
    [554, "5.6.0", "", "final", "failed content"],
    [554, "5.4.6", "Routing loop detected", "final", "failed infrastructure"],
    [554, "5.3.0", "", "final", "failed infrastructure"],
    [554, "5.0.0", "Service currently unavailable", "final", "failed infrastructure"],
    // The peer does not know the recipient yet, so the mailbox is not at fault.
    [550, null, "user unknown", "mail", "failed policy"],
    [552, "5.2.2", "quota exceeded", "mail", "failed policy"],
    [550, "5.4.5", "Daily sending quota exceeded", "final", "failed rate"],
    [554, "5.1.2", "host not found", "connect", "failed policy"],
    // 4xx.
    [450, "4.1.1", "User unknown in local recipient table", "rcpt", "deferred recipient"],
    [
      452,
      "4.2.2",
      "The email account that you tried to reach is over quota",
      "rcpt",
      "deferred mailbox-full",
    ],
    [421, "4.7.0", "temporarily deferred due to user complaints", "connect", "deferred reputation"],
    [451, null, "", "final", "deferred other"],
    [421, null, "Service not available", "connect", "deferred infrastructure"],
    [421, "4.7.0", "Too many connections from your host", "connect", "deferred rate"],
    [450, "4.2.0", "Recipient address rejected: Greylisted", "rcpt", "deferred greylist"],
    [
      421,
      "4.7.27",
      "rate limited because SPF authentication didn't pass",
      "final",
      "deferred authentication",
    ],
    // A code that is not about the recipient yet does not outweigh the words.
    [421, "4.2.1", "Service refused, please try later", "connect", "deferred infrastructure"],
    // The words mean later, whatever the code.
    [550, null, "Ip frequency limited", "mail", "deferred rate"],
  ])("%d %s %s to %s is %s", (code, enhanced, text, stage, expected) => {
    expect(outcomeOf(classifyReply({ code, enhanced, text, stage: stage ?? null }))).toBe(expected);
  });
});

describe("a temporary refusal made final", () => {
  test.each<Row>([
    [450, "4.1.1", "User unknown in virtual alias table", null, "soft recipient"],
    [null, "4.4.1", "connect to a.example[192.0.2.1]: Connection timed out", null, "soft infrastructure"],
    [null, "4.4.7", "", null, "soft infrastructure"],
    [null, "5.4.7", "delivery time expired", null, "soft infrastructure"],
    [421, "4.7.0", "Try again later", null, "soft infrastructure"],
    [451, "4.7.1", "greylisted", null, "failed greylist"],
    [421, "4.7.0", "too many connections", null, "failed rate"],
    [421, "4.7.26", "unauthenticated", null, "failed authentication"],
    [450, "4.7.1", "blocked by policy", null, "failed policy"],
    [421, "4.7.0", "[TSS04] user complaints", null, "failed reputation"],
    [null, "4.0.0", "DNS type 'mx' lookup of a.example responded with code NXDOMAIN", null, "soft recipient"],
    [null, null, "DNS type 'mx' lookup of a.example responded with code NXDOMAIN", null, "hard recipient"],
    [550, "5.4.310", "DNS domain a.example does not exist", null, "hard recipient"],
    [554, "4.4.7", "Message expired", null, "soft infrastructure"],
    [554, "5.4.7", "Delivery expired", null, "soft infrastructure"],
    [550, "5.7.13", "", null, "hard recipient"],
    [553, "5.6.7", "", null, "failed protocol"],
    [550, "5.7.1", "blocked by policy", null, "failed policy"],
  ])("%s %s %s is %s", (code, enhanced, text, stage, expected) => {
    expect(outcomeOf(classifyGivenUp({ code, enhanced, text, stage }))).toBe(expected);
  });
});

test.each(["Delivered", "2.0.0 OK queued", "", "Thank you for your mail"])("%j gives no class", (text) => {
  expect(classByText(text)).toBeNull();
});

test("no phrase has an unbounded gap or row of words", () => {
  // If a gap is tried from every position to the end, time grows with the square of the length: 60 ms for 2 KiB,
  // for each refusal.
  const unbounded = /(?:\\S|\]|\)|(?<!\\)\.)(?:[*+]|\{\d+,\})/;
  const sources = [...textRules(), ...effectRules()].flatMap(({ patterns }) =>
    patterns.map(({ source }) => source),
  );
  expect(sources.length).toBeGreaterThan(50);
  expect(sources.flatMap((source) => unbounded.exec(source)?.[0] ?? [])).toEqual([]);
});

test.each([
  "user ",
  "mailbox over ",
  "blocked by ",
  "domain of sender ",
  "spf ",
  "the header ",
  "exceed ",
  "550 ",
  "postlåd",
  "postafiók",
  "bad or unknown ",
  "x",
])("%j repeated is read in linear time", (piece) => {
  const text = piece.repeat(100_000);
  const times = Array.from({ length: 5 }, () => {
    const started = cpuMs();
    classByText(text);
    return cpuMs() - started;
  });
  // If a pattern backtracks, it takes 40 ms for the text that is read; the whole table takes one.
  expect(Math.min(...times)).toBeLessThan(20);
});
