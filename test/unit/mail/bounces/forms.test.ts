import { describe, expect, test } from "bun:test";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";

const B = "bob@example.org";
const DAEMON = "From: MAILER-DAEMON@mx.example.net";
const SENT = "Subject: Undelivered Mail Returned to Sender";
const HTML = "Content-Type: text/html; charset=utf-8";
const QMAIL = [
  DAEMON,
  "Subject: failure notice",
  "",
  "Hi. This is the qmail-send program at mx.example.net.",
  "This is a permanent error; I've given up. Sorry it didn't work out.",
  "",
  "<bob@example.org>:",
];

async function recipientsOf(lines: readonly string[]) {
  const raw = Buffer.from([...lines, ""].join("\r\n"), "utf8");
  return readBounce(await parseMail(raw), raw)?.recipients ?? null;
}

describe("the recipient and the class of a notice are found if", () => {
  test.each<[string, string[], object]>([
    [
      'a sentence begins with "The original message was received" (Courier, Sendmail)',
      [
        DAEMON,
        SENT,
        "",
        "This is a delivery status notification from mx.example.net,",
        "",
        "The original message was received on Tue, 11 Mar 2025 10:14:02 +0100",
        "from send.example.com (192.0.2.1)",
        "",
        "Your message to the following recipients cannot be delivered:",
        "",
        "<bob@example.org>:",
        "<<< 550 User <bob@example.org> unknown",
      ],
      { recipient: B, outcome: "hard" },
    ],
    [
      "the sender comes before it",
      [
        DAEMON,
        SENT,
        "",
        "The original message was received at Thu, 29 Apr 2010 23:34:45 +0900",
        "from news@shop.example.com",
        "",
        "Unable to deliver to bob@example.org [User unknown]",
      ],
      { recipient: B, outcome: "hard" },
    ],
    [
      "the Message-ID in angle brackets comes before it",
      [
        "From: X.400 gateway <postmaster@gate.example.net>",
        "Subject: Delivery Report (failure)",
        "",
        "This report relates to your message:",
        "   Subject: hi, Message-ID: <m1@shop.example.com>",
        "",
        "Your message was not delivered to   bob@example.org",
        "   for the following reason: unrecognised O/R name",
      ],
      { recipient: B, outcome: "hard" },
    ],
    [
      "a Message-ID is a cell below its name",
      [
        DAEMON,
        SENT,
        "",
        "Message-ID",
        "<m1@shop.example.com>",
        "Recipient bob@example.org",
        "The mailbox does not exist",
      ],
      { recipient: B, outcome: "hard" },
    ],
    [
      "it is in parentheses after a name",
      [
        DAEMON,
        "Subject: No se puede entregar: hola",
        HTML,
        "",
        "<p>Error de entrega</p>",
        "<p>Juan (bob@example.org)<br>El buz&oacute;n del destinatario est&aacute; lleno.</p>",
      ],
      { recipient: B, outcome: "soft", category: "mailbox-full" },
    ],
    [
      "its local part has an apostrophe",
      [DAEMON, SENT, "", "<o'brien@example.org>:", "no such user"],
      { recipient: "o'brien@example.org", outcome: "hard" },
    ],
    [
      "quotes stand around it",
      [DAEMON, SENT, "", "Failed to deliver to 'bob@example.org'", "account does not exist"],
      { recipient: B, outcome: "hard" },
    ],
    [
      "only the subject names it",
      [DAEMON, "Subject: Undeliverable mail to bob@example.org", "", "The user is unknown to this system."],
      { recipient: B, outcome: "hard" },
    ],
    [
      "the text is a stub next to the html",
      [
        DAEMON,
        SENT,
        "Content-Type: multipart/alternative; boundary=b",
        "",
        "--b",
        "Content-Type: text/plain",
        "",
        "Please view this message in HTML.",
        "--b",
        HTML,
        "",
        "<p>Your message to <b>bob@example.org</b> could not be delivered: the mailbox does not exist.</p>",
        "--b--",
      ],
      { recipient: B, outcome: "hard" },
    ],
    [
      "InterScan sends it under its product's name",
      [
        'From: "InterScan MSS" <imss@mx.example.net>',
        "Subject: Mail could not be delivered",
        "",
        "Sent <<< RCPT TO:<bob@example.org>",
        "Received >>> 550 5.1.1 unknown user",
        "",
        "Could not deliver mail to this user.",
        "<bob@example.org>",
      ],
      { recipient: B, outcome: "hard" },
    ],
    [
      "Postfix tells its postmaster of a session",
      [
        DAEMON,
        "Subject: Postfix SMTP server: errors from mx.example.com[192.0.2.1]",
        "",
        "Transcript of session follows.",
        " In:  MAIL FROM:<ann@example.com>",
        " Out: 250 2.1.0 Ok",
        " In:  RCPT TO:<bob@example.org>",
        " Out: 451 4.3.0 Error: queue file write error",
      ],
      { recipient: B, outcome: "soft" },
    ],
    [
      "DMA names the command in its own words",
      [
        DAEMON,
        "Subject: Mail delivery failed",
        "",
        "There was an error delivering your mail to <bob@example.org>.",
        "",
        "mx.example.org [192.0.2.7] did not like our RCPT TO:",
        "550 nope",
      ],
      { recipient: B, outcome: "hard" },
    ],
    [
      'qmail writes "Giving up on" its host after a reply that gives the reason',
      [
        ...QMAIL,
        "192.0.2.7 failed after I sent the message.",
        "Remote host said: 554 Message Bounced due to Content Examination Policy",
        "Giving up on 192.0.2.7.",
      ],
      { recipient: B, outcome: "failed", category: "content" },
    ],
    [
      'qmail writes "Giving up on" its host after a reply without a reason',
      [
        ...QMAIL,
        "192.0.2.7 does not like recipient.",
        "Remote host said: 550 sorry",
        "Giving up on 192.0.2.7.",
      ],
      { recipient: B, outcome: "hard", category: "recipient" },
    ],
  ])("%s", async (_, lines, expected) => {
    expect(await recipientsOf(lines)).toEqual([expect.objectContaining(expected)]);
  });

  test("an apostrophe is in a field of a report", async () => {
    const lines = [
      DAEMON,
      SENT,
      'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
      "",
      "--b",
      "Content-Type: message/delivery-status",
      "",
      "Reporting-MTA: dns; mx.example.net",
      "",
      "Final-Recipient: rfc822; o'brien@example.org",
      "Action: failed",
      "Status: 5.1.1",
      "--b--",
    ];
    expect(await recipientsOf(lines)).toMatchObject([{ recipient: "o'brien@example.org", outcome: "hard" }]);
  });
});

describe("a warning without fields changes nothing final, whatever words of failure it has:", () => {
  test.each<[string, string[]]>([
    [
      "Postfix",
      [
        DAEMON,
        "Subject: Delayed Mail (still being retried)",
        "",
        "# THIS IS A WARNING ONLY.  YOU DO NOT NEED TO RESEND YOUR MESSAGE. #",
        "",
        "Your message could not be delivered for more than 4 hour(s).",
        "It will be retried until it is 5 day(s) old.",
        "",
        "<bob@example.org>: connect to mx.example.org[192.0.2.7]:25: Connection refused",
      ],
    ],
    [
      "MDaemon",
      [
        "From: MDaemon@mx.example.net",
        "Subject: Warning: bob@example.org - Delivery Delay",
        "",
        "The following message could not be delivered yet:",
        "",
        "   The message to bob@example.org has been in the queue for 1 hour.",
        "",
        "This is a warning message only. You do not need to resend your message.",
      ],
    ],
    [
      "Exim",
      [
        DAEMON,
        "Subject: Warning: message 1tsAbC-0007Xy-2q delayed 24 hours",
        "",
        "A message that you sent has not yet been delivered to one or more of its",
        "recipients after more than 24 hours on the queue on mx.example.net.",
        "",
        "  bob@example.org",
        "    Delay reason: connection failed",
      ],
    ],
  ])("%s", async (_, lines) => {
    expect(await recipientsOf(lines)).toMatchObject([
      { recipient: B, action: "delayed", outcome: "deferred" },
    ]);
  });
});

describe("a message that resembles a notice is not one:", () => {
  test.each<[string, string[]]>([
    [
      "of a firm that calls itself a mail system",
      [
        "From: Mail Delivery Systems <info@shop.example.com>",
        "Subject: Mail delivery made simple",
        "",
        "If a message could not be delivered we retry. Write to sales@shop.example.com.",
      ],
    ],
    [
      "of a customer service about a parcel",
      [
        "From: Servizio clienti <noreply@shop.example.com>",
        "Subject: Mancata consegna del pacco",
        "",
        "Il destinatario bob@example.org è sconosciuto, non è stato possibile consegnare.",
      ],
    ],
    [
      "of a bank",
      [
        "From: noreply@bank.example.com",
        "Subject: Returned payment: recipient account unknown",
        "",
        "Your transfer could not be delivered: account unknown. Contact info@bank.example.com.",
      ],
    ],
    [
      "of a person whose text comes with the html of a notice",
      [
        "From: Dana <dana@example.com>",
        "Subject: Re: Undeliverable: hi",
        "Content-Type: multipart/alternative; boundary=b",
        "",
        "--b",
        "Content-Type: text/plain",
        "",
        "It works again now.",
        "--b",
        HTML,
        "",
        "<p>It works again now.</p><p>Delivery has failed to these recipients: bob@example.org</p>",
        "--b--",
      ],
    ],
  ])("%s", async (_, lines) => {
    expect(await recipientsOf(lines)).toBeNull();
  });
});
