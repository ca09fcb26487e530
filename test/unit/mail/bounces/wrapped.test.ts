import { describe, expect, test } from "bun:test";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { peerReply, readDiagnostic } from "../../../../src/mail/bounces/diagnostic.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { reportMail } from "../../../support/report-mail.ts";

const DAEMON = "From: MAILER-DAEMON@mx.example.net";
const RETURNED = "Subject: Undelivered Mail Returned to Sender";

async function readNotice(lines: readonly string[]) {
  const raw = Buffer.from([...lines, ""].join("\r\n"), "utf8");
  return readBounce(await parseMail(raw), raw)?.recipients ?? null;
}

describe("a notice whose lines are broken within a phrase", () => {
  test.each<[string, string[], object]>([
    [
      "names MAIL FROM: the sender was refused",
      [
        "<bob@example.org>: host mx.example.org[192.0.2.7] said: 550 5.1.8 Address",
        "    unknown (in reply to MAIL",
        "    FROM command)",
      ],
      { outcome: "failed", smtpCode: 550 },
    ],
    [
      "names MAIL FROM behind words for an unknown user",
      [
        "<bob@example.org>: host mx.example.org[192.0.2.7] said: 550 User unknown (in",
        "    reply to MAIL FROM",
        "    command)",
      ],
      { outcome: "failed", category: "policy" },
    ],
    [
      "names RCPT TO: the recipient was refused",
      ["<bob@example.org>: host mx.example.org[192.0.2.7] said: 550 no (in reply to RCPT", "    TO command)"],
      { outcome: "hard", category: "recipient" },
    ],
    [
      "names the end of DATA",
      [
        "<bob@example.org>: host mx.example.org[192.0.2.7] said: 550 no (in reply to end",
        "    of DATA command)",
      ],
      { outcome: "failed" },
    ],
    [
      "breaks before the peer's reply",
      [
        "<bob@example.org>: User unknown? host mx.example.org[192.0.2.7] said:",
        "    452 4.2.2 over",
        "    quota (in reply to RCPT TO command)",
      ],
      { outcome: "soft", category: "mailbox-full", smtpCode: 452, status: "4.2.2" },
    ],
    [
      "breaks between the reply code and the enhanced code",
      ["<bob@example.org>: host mx.example.org[192.0.2.7] said: 554", "    4.4.7 Message", "    expired"],
      { outcome: "soft", smtpCode: 554, status: "4.4.7" },
    ],
    [
      "breaks within the words of a warning",
      [
        "<bob@example.org>: connect to mx.example.org: timed out",
        "",
        "You do not",
        "need to resend your message. It failed once and will",
        "be retried until it is five days old.",
      ],
      { action: "delayed", outcome: "deferred" },
    ],
    [
      "breaks before the address that an alias sent the message on from",
      ["<bob2@example.org> (expanded", "    from", "    <bob@example.org>): user", "    unknown"],
      { finalRecipient: "bob2@example.org", outcome: "hard" },
    ],
  ])("%s", async (_, lines, expected) => {
    expect(await readNotice([DAEMON, RETURNED, "", "The mail system", "", ...lines])).toMatchObject([
      { recipient: "bob@example.org", ...expected },
    ]);
  });
});

test("a folded Disposition field of a receipt that reports a refusal is read (RFC 5322 §2.2.3)", async () => {
  const report = reportMail({
    headers: [
      "From: <postmaster@example.org>",
      "Subject: Rejected: hi",
      "Content-Type: multipart/report; report-type=disposition-notification",
    ],

    parts: [
      {
        type: "text/plain",
        lines: ["Your message to <bob@example.org> was", "automatically", "rejected: Quota exceeded"],
      },
      {
        type: "message/disposition-notification",
        lines: [
          "Final-Recipient: rfc822; bob@example.org",
          "Disposition:",
          " automatic-action/MDN-sent-automatically;",
          " deleted",
        ],
      },
    ],
  });
  expect(readBounce(await parseMail(report), report)?.recipients).toMatchObject([
    { recipient: "bob@example.org", outcome: "soft", category: "mailbox-full" },
  ]);
});

/** Replies in which each space may be a line's end. */
const REPORTED = [
  "host mx.example.org[192.0.2.7] said: 550 5.1.1 <bob@example.org>: unknown (in reply to RCPT TO command)",
  "host mx.example.org[192.0.2.7] said: 553 5.1.8 no domain (in reply to MAIL FROM command)",
  "host mx.example.org [192.0.2.7] said: 554 5.7.1 no (in reply to end of DATA command)",
  "host mx.example.org[192.0.2.7] refused to talk to me: 421 4.7.0 later",
  "SMTP error from remote mail server after RCPT TO:<bob@example.org>: 550 5.1.1 no such user",
  "SMTP error from remote mail server after MAIL FROM:<ann@example.com>: 550 not welcome",
  "smtp; 5.1.0 - Unknown address error 550-'5.7.1 not from here' (delivery attempts: 0)",
  "192.0.2.7 does not like recipient. Remote host said: 550 no such user",
  "Connected to 192.0.2.7 but sender was rejected. Remote host said: 421 later",
  "Connected to 192.0.2.7 but my name was rejected. Remote host said: 501 no",
  "192.0.2.7 failed after I sent the message. Remote host said: 554 no",
  ">>> RCPT To:<bob@example.org> <<< 550 unknown",
  "initial server greeting: 554 no service",
];

test.each(REPORTED)("a line break at any space of %j changes nothing", (text) => {
  const [whole, words] = [readDiagnostic(text), peerReply(text)];
  for (const { index } of text.matchAll(/ /g)) {
    for (const end of ["\n    ", "\r\n\t", "\n", "  "]) {
      const broken = text.slice(0, index) + end + text.slice(index + 1);
      expect({ broken, ...readDiagnostic(broken) }).toEqual({ broken, ...whole });
      expect({ broken, words: peerReply(broken) }).toEqual({ broken, words });
    }
  }
});
