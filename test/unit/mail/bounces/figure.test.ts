import { expect, test } from "bun:test";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { type Report, reportMail, samplesIn, statusPart } from "../../../support/report-mail.ts";

/**
 * Bounces that no rule was written for, so that the score predicts the score on unknown bounces. If a row is read
 * wrongly, do not fix the rules for it, or the figure loses its meaning.
 */
const LEAST_RIGHT = 38;

/** The class of a reply by our rules, the command it answers, and the reply. */
const REPLIES: readonly (readonly [expected: string, command: string | null, reply: string])[] = [
  ["hard", "RCPT TO", "550 cuda_nsu <bob@example.org>: Recipient address rejected: No such user"],
  ["hard", "RCPT TO", "550 5.5.1 Recipient rejected - ENOTFOUND"],
  [
    "hard",
    "end of DATA",
    "550 5.1.351 Remote server returned unknown recipient or mailbox unavailable -> 550 Requested action not taken",
  ],
  [
    "hard",
    "RCPT TO",
    "550-5.1.1 The email address was not found in our system. Please check it. 550 5.1.1 [RCPT-03]",
  ],
  ["soft", "RCPT TO", "552 RCPT TO:<bob@example.org> Mailbox disk quota exceeded"],
  [
    "failed",
    "end of DATA",
    "550 5.7.1 Your message was rejected due to the recipient's security preferences",
  ],
  ["failed", "MAIL FROM", "550 5.1.8 <ann@example.com>: Sender address rejected: Domain not found"],
  ["failed", "end of DATA", "550 5.7.60 SMTP; Client does not have permissions to send as this sender"],
  [
    "soft",
    null,
    '441 4.4.1 Error communicating with target host: "Failed to connect. Winsock error code: 10060, Win32 error code: 10060."',
  ],
  [
    "failed",
    "end of DATA",
    "550 5.7.350 Remote server returned message detected as spam -> 554 5.7.1 Message blocked due to sender reputation",
  ],
  ["soft", "end of DATA", "451 4.3.0 Error: queue file write error"],
  ["failed", "CONNECT", "421 Temporarily rejected. Reverse DNS for 192.0.2.9 failed. IB108"],
  ["failed", "end of DATA", "550 Suspected junk"],
  ["failed", "end of DATA", "550 5.2.0 Mail rejete. Mail rejected. OFR_506 [506]"],
  ["failed", "end of DATA", "554 Maximum email size exceeded"],
  ["soft", "RCPT TO", "552 5.2.2 Mailbox size limit exceeded 1741684512-abcd"],
  ["failed", "MAIL FROM", "553 MI:SPB 163 smtp, too many failures, please try later"],
  ["soft", null, "4.4.1 (no answer from host)"],
  ["failed", null, "too many hops"],
  ["soft", "RCPT TO", "552 Le destinataire a depasse son quota"],
];

/** The fields of a report, as programs write them after their own words. */
const REPORTS: readonly (readonly [expected: string, words: string, ...fields: string[]])[] = [
  [
    "failed",
    "The group only accepts messages from people in its organization, and your email address isn't on the list.",
    "Final-Recipient: rfc822;bob@example.org",
    "Action: failed",
    "Status: 5.7.133",
    "Diagnostic-Code: smtp;550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required",
  ],
  [
    "hard",
    "** Address not found **",
    "Final-Recipient: rfc822; bob@example.org",
    "Action: failed",
    "Status: 5.1.1",
    "Diagnostic-Code: smtp; The email account that you tried to reach does not exist.",
  ],
  [
    "hard",
    "<bob@example.org>: Host or domain name not found.",
    "Final-Recipient: rfc822; bob@example.org",
    "Action: failed",
    "Status: 5.4.4",
    "Diagnostic-Code: X-Postfix; Name service error for name=example.org type=AAAA: Host not found",
  ],
  [
    "soft",
    "procmail: Quota exceeded while writing /var/mail/bob",
    "Final-Recipient: RFC822; bob@example.org",
    "Action: failed",
    "Status: 5.2.2",
    "Diagnostic-Code: X-Unix; 73",
  ],
  [
    "soft",
    "KumoMTA internal: failed to connect to any candidate hosts",
    "Final-Recipient: rfc822;bob@example.org",
    "Action: failed",
    "Status: 5.4.7 (Delivery time expired)",
    "Diagnostic-Code: smtp; 551 5.4.7 KumoMTA internal: failed to connect to any candidate hosts",
  ],
  [
    "failed",
    "was considered unsolicited bulk e-mail (UBE). Delivery of the email was stopped!",
    "Final-Recipient: rfc822;bob@example.org",
    "Action: failed",
    "Status: 5.7.0",
    "Diagnostic-Code: smtp; 554 5.7.0 Reject, id=1-02 - spam",
  ],
];

/** Postfix's report of a reply. */
function replied(command: string | null, reply: string): Report {
  const where = "host mx.example.org[192.0.2.7]";
  const said =
    command === "CONNECT"
      ? `${where} refused to talk to me: ${reply}`
      : `${where} said: ${reply} (in reply to ${command} command)`;
  const words = `<bob@example.org>: ${command === null ? reply : said}`;
  const code = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})|^(4\.4\.1)/.exec(reply);
  const status = code?.[1] ?? code?.[2] ?? (reply === "too many hops" ? "5.4.6" : `${reply[0]}.0.0`);
  const fields = ["Final-Recipient: rfc822; bob@example.org", "Action: failed", `Status: ${status}`];
  return {
    parts: [{ type: "text/plain", lines: [words] }, statusPart(...fields, `Diagnostic-Code: smtp; ${reply}`)],
  };
}

const MAILS: readonly (readonly [expected: string, raw: Buffer])[] = [
  ...REPLIES.map(([expected, command, reply]) => [expected, reportMail(replied(command, reply))] as const),
  ...REPORTS.map(
    ([expected, words, ...fields]) =>
      [
        expected,
        reportMail({ parts: [{ type: "text/plain", lines: [words] }, statusPart(...fields)] }),
      ] as const,
  ),
  ...samplesIn("unseen-notices.txt").map(({ name, raw }) => [name, raw] as const),
];

async function meant(raw: Buffer): Promise<string> {
  const bounce = readBounce(await parseMail(raw), raw);
  if (bounce === null) return "none";
  const found = bounce.recipients.find(({ recipient, finalRecipient }) =>
    [recipient, finalRecipient].includes("bob@example.org"),
  );
  return found === undefined ? "nobody" : String(found.outcome);
}

test("at least 38 of 40 messages that no rule was written for are read correctly, and no ordinary one is a bounce", async () => {
  expect(MAILS).toHaveLength(40);
  const read = await Promise.all(MAILS.map(async ([expected, raw]) => ({ expected, is: await meant(raw) })));
  expect(read.filter(({ expected, is }) => expected === "none" && is !== "none")).toEqual([]);
  expect(read.filter(({ is }) => is === "nobody")).toEqual([]);
  const right = read.filter(({ expected, is }) => expected === is);
  process.stdout.write(`read rightly: ${right.length} of ${read.length}\n`);
  expect(right.length).toBeGreaterThanOrEqual(LEAST_RIGHT);
});
