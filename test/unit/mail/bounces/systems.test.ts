import { describe, expect, test } from "bun:test";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { ORIGINAL, WORDS, bob, type Report, reportMail, statusPart } from "../../../support/report-mail.ts";

type Row = [name: string, report: Report, expected: object[]];

const B = "bob@example.org";
const F = "Final-Recipient: rfc822; bob@example.org";

async function recipientsOf(raw: Buffer) {
  return readBounce(await parseMail(raw), raw)?.recipients ?? null;
}

describe("a delivery status notification (RFC 3464) as written by", () => {
  test.each<Row>([
    [
      "Exchange Online",
      {
        headers: ["From: <postmaster@example.onmicrosoft.com>", "Subject: Undeliverable: hi"],
        parts: [
          {
            type: "text/html; charset=utf-8",
            lines: ["<p>Your message to <b>bob@example.org</b> couldn't be delivered.</p>"],
          },
          statusPart(
            "Final-Recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 5.1.10",
            "Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient bob@example.org not found by SMTP address lookup",
          ),
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "Exchange Online, expired",
      {
        headers: ["From: <postmaster@example.onmicrosoft.com>", "Subject: Undeliverable: hi"],
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 5.4.300",
            "Diagnostic-Code: smtp;550 5.4.300 Message expired -> 421 4.4.0 Remote server response was not RFC conformant; message expired",
          ),
        ],
      },
      [{ recipient: B, outcome: "soft" }],
    ],
    [
      "Exchange Online, refused by the next server",
      {
        headers: ["From: <postmaster@example.onmicrosoft.com>", "Subject: Undeliverable: hi"],
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 5.0.350",
            "Diagnostic-Code: smtp;550 5.0.350 Remote server returned an error -> 550 5.1.1 <bob@example.org>: Recipient address rejected: User unknown",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "Exchange 2003, no diagnostic",
      {
        headers: ["From: postmaster@example.org", "Subject: Delivery Status Notification (Failure)"],
        parts: [
          {
            type: "text/plain",
            lines: [
              "This is an automatically generated Delivery Status Notification.",
              "",
              "Delivery to the following recipients failed.",
              "",
              "       bob@example.org",
            ],
          },
          statusPart("Final-Recipient: rfc822;bob@example.org", "Action: failed", "Status: 5.1.1"),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "Exchange 2003, 4.4.7",
      {
        headers: ["From: postmaster@example.org", "Subject: Delivery Status Notification (Failure)"],
        parts: [
          WORDS,
          statusPart("Final-Recipient: rfc822;bob@example.org", "Action: failed", "Status: 4.4.7"),
        ],
      },
      [{ recipient: B, outcome: "soft" }],
    ],
    [
      "Domino",
      {
        headers: ["Subject: DELIVERY FAILURE: hi"],
        parts: [
          {
            type: "text/plain",
            lines: [
              "Your message was not delivered to bob@example.org because:",
              "Error transferring to MX.EXAMPLE.ORG; SMTP Protocol Returned a Permanent Error 550 5.1.1 User unknown",
            ],
          },
          statusPart(
            "Final-Recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 5.0.0",
            "Diagnostic-Code: X-Notes; Error transferring to MX.EXAMPLE.ORG; SMTP Protocol Returned a Permanent Error 550 5.1.1 User unknown",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "Domino with X-Notes alone",
      {
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 5.1.1",
            "Diagnostic-Code: X-Notes; Recipient user name bob not unique.  Several matches found in Domino Directory.",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "Sendmail, host unknown",
      {
        headers: ["Subject: Returned mail: see transcript for details"],
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: RFC822; bob@nowhere.example",
            "Action: failed",
            "Status: 5.1.2",
            "Remote-MTA: DNS; nowhere.example",
          ),
        ],
      },
      [{ recipient: "bob@nowhere.example", outcome: "hard" }],
    ],
    [
      "Sendmail, alias to another",
      {
        parts: [
          WORDS,
          statusPart(
            "Original-Recipient: rfc822;bob@example.org",
            "Final-Recipient: RFC822; robert@example.net",
            "X-Actual-Recipient: RFC822; robert@mail.example.net",
            "Action: failed",
            "Status: 5.2.2",
            "Diagnostic-Code: SMTP; 552 5.2.2 Over quota",
          ),
        ],
      },
      [{ recipient: B, finalRecipient: "robert@example.net", outcome: "soft" }],
    ],
    [
      "Postfix, unreachable",
      {
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: rfc822; bob@example.org",
            "Original-Recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 4.4.1",
            "Diagnostic-Code: X-Postfix; connect to mx.example.org[192.0.2.7]:25: Connection timed out",
          ),
        ],
      },
      [{ recipient: B, outcome: "soft" }],
    ],
    [
      "Postfix, no such domain",
      {
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: rfc822; bob@nowhere.example",
            "Action: failed",
            "Status: 5.4.4",
            "Diagnostic-Code: X-Postfix; Host or domain name not found. Name service error for name=nowhere.example type=AAAA: Host not found",
          ),
        ],
      },
      [{ recipient: "bob@nowhere.example", outcome: "hard" }],
    ],
    [
      "Postfix, null MX",
      {
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: rfc822; bob@nowhere.example",
            "Action: failed",
            "Status: 5.1.0",
            "Diagnostic-Code: X-Postfix; Domain nowhere.example does not accept mail (nullMX)",
          ),
        ],
      },
      [{ outcome: "hard" }],
    ],
    [
      "Postfix, refused to talk",
      {
        parts: [
          WORDS,
          statusPart(
            F,
            "Action: failed",
            "Status: 4.0.0",
            "Remote-MTA: dns; mx.example.org",
            "Diagnostic-Code: smtp; 554 5.7.1 refused: client host 192.0.2.9 blocked",
          ),
        ],
      },
      [{ recipient: B, outcome: "failed" }],
    ],
    [
      "PowerMTA",
      {
        headers: ["From: Mail Delivery System <abuse@mx.example.net>", "Subject: Delivery report"],
        parts: [
          {
            type: "text/plain",
            lines: [
              "Hello, this is the mail server on mx.example.net.",
              "",
              "I am sending you this message to inform you on the delivery status of a",
              "message you previously sent.  Immediately below you will find a list of",
              "the affected recipients.",
              "",
              "  <bob@example.org> (unable to resolve)",
            ],
          },
          statusPart(
            "Original-Recipient: rfc822;bob@example.org",
            "Final-Recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 5.1.1 (bad destination mailbox address)",
            "Remote-MTA: dns;mx.example.org (192.0.2.7)",
            "Diagnostic-Code: smtp;550 5.1.1 no such user",
            "X-PowerMTA-BounceCategory: bad-mailbox",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "Amazon SES",
      {
        headers: [
          "From: MAILER-DAEMON@eu-west-1.amazonses.com",
          "Subject: Delivery Status Notification (Failure)",
        ],
        parts: [
          {
            type: "text/plain",
            lines: [
              "An error occurred while trying to deliver the mail to the following recipients:",
              "bob@example.org",
            ],
          },
          statusPart(
            "Action: failed",
            "Final-Recipient: rfc822; bob@example.org",
            "Diagnostic-Code: smtp; 550 5.1.1 user unknown",
            "Status: 5.1.1",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "Gmail",
      {
        headers: [
          "From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
          "X-Failed-Recipients: bob@example.org",
          "Auto-Submitted: auto-replied",
          "Subject: Delivery Status Notification (Failure)",
        ],
        parts: [
          { type: "text/plain; charset=utf-8", lines: ["** Message blocked **"] },
          statusPart(
            "Final-Recipient: rfc822; bob@example.org",
            "Action: failed",
            "Status: 5.7.26",
            "Diagnostic-Code: smtp; 550-5.7.26 This mail has been blocked because the sender is unauthenticated.",
            " 550-5.7.26 Gmail requires all senders to authenticate with either SPF or DKIM.",
            "Last-Attempt-Date: Mon, 06 Jan 2025 02:00:00 -0800 (PST)",
          ),
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "failed" }],
    ],
    [
      "Gmail, DNS that failed",
      {
        headers: [
          "From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
          "Subject: Delivery Status Notification (Failure)",
        ],
        parts: [
          {
            type: "text/plain",
            lines: [
              "** Address not found **",
              "",
              "Your message wasn't delivered to bob@nowhere.example because the domain nowhere.example couldn't be found.",
            ],
          },
          statusPart(
            "Final-Recipient: rfc822; bob@nowhere.example",
            "Action: failed",
            "Status: 4.0.0",
            "Diagnostic-Code: smtp; DNS Error: DNS type 'mx' lookup of nowhere.example responded with code NXDOMAIN",
          ),
        ],
      },
      [{ recipient: "bob@nowhere.example", outcome: "soft" }],
    ],
    [
      "Gmail, group that members alone may write to",
      {
        headers: [
          "From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
          "Subject: Delivery Status Notification (Failure)",
        ],
        parts: [
          {
            type: "text/plain",
            lines: [
              "Hello ann@example.com,",
              "",
              "We're writing to let you know that the group you tried to contact (team) may not exist, or you may not have permission to post messages to the group.",
            ],
          },
          statusPart("Final-Recipient: rfc822; team@example.org", "Action: failed", "Status: 5.7.1"),
        ],
      },
      [{ recipient: "team@example.org", outcome: "failed" }],
    ],
    [
      "iPlanet",
      {
        headers: [
          "From: Internet Mail Delivery <postmaster@example.org>",
          "Subject: Delivery Notification: Delivery has failed",
        ],
        parts: [
          {
            type: "text/plain",
            lines: [
              "This report relates to a message you sent with the following header fields:",
              "",
              "Your message cannot be delivered to the following recipients:",
              "",
              "  Recipient address: bob@example.org",
              "  Reason: Remote SMTP server has rejected address",
              "  Diagnostic code: smtp;550 5.1.1 unknown or illegal alias: bob@example.org",
            ],
          },
          statusPart(
            "Original-recipient: rfc822;bob@example.org",
            "Final-recipient: rfc822;bob@example.org",
            "Action: failed",
            "Status: 5.1.1 (Remote SMTP server has rejected address)",
            "Diagnostic-code: smtp;550 5.1.1 unknown or illegal alias: bob@example.org",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "a human report within multipart/alternative",
      {
        parts: [
          {
            type: 'multipart/alternative; boundary="=c="',
            lines: [
              "--=c=",
              "Content-Type: text/plain",
              "",
              "could not be delivered",
              "--=c=",
              "Content-Type: text/html",
              "",
              "<p>could not be delivered</p>",
              "--=c=--",
            ],
          },
          statusPart(...bob("550 5.1.1 User unknown", "5.1.1")),
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "a status inside the returned message is ignored",
      {
        parts: [
          WORDS,
          statusPart(...bob("552 5.2.2 full", "5.2.2")),
          {
            type: "message/rfc822",
            lines: [
              "From: ann@example.com",
              "To: bob@example.org",
              "Content-Type: message/delivery-status",
              "",
              "Reporting-MTA: dns; x.example",
              "",
              "Final-Recipient: rfc822; zed@example.org",
              "Action: failed",
              "Status: 5.1.1",
            ],
          },
        ],
      },
      [{ recipient: B, outcome: "soft" }],
    ],
    [
      "extra spaces and odd case",
      {
        parts: [
          WORDS,
          statusPart("FINAL-RECIPIENT : rfc822 ; bob@example.org", "ACTION : FAILED", "STATUS : 5.1.1"),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "no empty line after the message's own fields",
      {
        parts: [
          WORDS,
          {
            type: "message/delivery-status",
            lines: ["Reporting-MTA: dns; mx.example.net", F, "Action: failed", "Status: 5.1.1"],
          },
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "a later hop that gave up",
      {
        parts: [
          WORDS,
          statusPart(
            F,
            "Action: failed",
            "Status: 4.4.7",
            "Diagnostic-Code: smtp; 550 4.4.7 QUEUE.Expired; message expired",
          ),
        ],
      },
      [{ recipient: B, outcome: "soft" }],
    ],
    [
      "hop count",
      {
        parts: [
          WORDS,
          statusPart(
            F,
            "Action: failed",
            "Status: 5.4.6",
            "Diagnostic-Code: smtp; 554 5.4.6 Hop count exceeded - possible mail loop",
          ),
        ],
      },
      [{ recipient: B, outcome: "failed" }],
    ],
  ])("%s", async (_, report, expected) => {
    expect(await recipientsOf(reportMail(report))).toMatchObject(expected);
  });
});
