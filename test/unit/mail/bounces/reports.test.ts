import { describe, expect, test } from "bun:test";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import {
  HEADERS,
  ORIGINAL,
  WORDS,
  bob,
  type Report,
  reportMail,
  statusPart,
} from "../../../support/report-mail.ts";

type Row = [name: string, report: Report, expected: object[]];

const B = "bob@example.org";
const F = "Final-Recipient: rfc822; bob@example.org";
const LOCAL = statusPart("Final-Recipient: LOCAL; <bob>", "Action: failed", "Status: 5.1.1");
/** The returned message, which had two recipients. */
const SEVERAL = {
  ...ORIGINAL,
  lines: ORIGINAL.lines.map((line) => (line.startsWith("To:") ? `${line}, eve@example.org` : line)),
};

async function recipientsOf(raw: Buffer) {
  return readBounce(await parseMail(raw), raw)?.recipients ?? null;
}

describe("a delivery status notification (RFC 3464), in the form of", () => {
  test.each<Row>([
    [
      "standard",
      { parts: [WORDS, statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), ORIGINAL] },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "headers only",
      { parts: [WORDS, statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), HEADERS] },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "base64 status",
      {
        parts: [
          WORDS,
          { ...statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), encoding: "base64" },
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "qp status",
      {
        parts: [
          WORDS,
          { ...statusPart(...bob("552 5.2.2 Mailbox full", "5.2.2")), encoding: "quoted-printable" },
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "soft", category: "mailbox-full" }],
    ],
    [
      "status typed text/plain",
      {
        parts: [
          WORDS,
          { ...statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), type: "text/plain" },
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard", status: "5.1.1" }],
    ],
    [
      "status typed text/plain, odd words and sender",
      {
        headers: ["From: noreply@mx.example.net", "Subject: Info"],
        parts: [
          { type: "text/plain", lines: ["See below."] },
          { ...statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), type: "text/plain" },
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard", status: "5.1.1" }],
    ],
    [
      "status typed text/plain attachment",
      {
        parts: [
          WORDS,
          {
            ...statusPart(...bob("550 5.1.1 User unknown", "5.1.1")),
            type: 'text/plain; name="status.txt"\r\nContent-Disposition: attachment; filename="status.txt"',
          },
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard", status: "5.1.1" }],
    ],
    [
      "status typed application/octet-stream",
      {
        parts: [
          WORDS,
          {
            ...statusPart(...bob("550 5.7.1 blocked for spam", "5.7.1")),
            type: 'application/octet-stream; name="details.txt"',
          },
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "failed", status: "5.7.1" }],
    ],
    [
      "status typed message/delivery-status upper case",
      {
        parts: [
          WORDS,
          { ...statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), type: "Message/Delivery-Status" },
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "multipart/mixed instead of report",
      {
        report: "multipart/mixed",
        parts: [WORDS, statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), ORIGINAL],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "report without its parameter",
      { report: "multipart/report", parts: [WORDS, statusPart(...bob("550 5.1.1 User unknown", "5.1.1"))] },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "utf-8 address",
      {
        parts: [
          WORDS,
          {
            type: "message/global-delivery-status",
            lines: [
              "Reporting-MTA: dns; mx.example.net",
              "",
              "Final-Recipient: utf-8; böb@exämple.org",
              "Action: failed",
              "Status: 5.1.1",
            ],
          },
          { type: "message/global-headers", lines: ["From: ann@example.com", "To: böb@exämple.org"] },
        ],
      },
      [{ outcome: "hard" }],
    ],
    [
      "utf-8 address base64",
      {
        parts: [
          WORDS,
          {
            type: "message/global-delivery-status",
            encoding: "base64",
            lines: [
              "Reporting-MTA: dns; mx.example.net",
              "",
              "Final-Recipient: utf-8; böb@example.org",
              "Action: failed",
              "Status: 5.1.1",
              "Diagnostic-Code: smtp; 550 5.1.1 Empfänger unbekannt",
            ],
          },
        ],
      },
      [{ recipient: "böb@example.org", outcome: "hard" }],
    ],
    [
      "utf-8-addr-xtext",
      {
        parts: [
          WORDS,
          statusPart(
            "Original-Recipient: utf-8; b\\x{F6}b@example.org",
            "Final-Recipient: utf-8; b\\x{F6}b@example.org",
            "Action: failed",
            "Status: 5.1.1",
          ),
        ],
      },
      [{ recipient: "böb@example.org", outcome: "hard" }],
    ],
    [
      "utf-8 words in a status of the plain type",
      {
        parts: [
          WORDS,
          statusPart(
            F,
            "Action: failed",
            "Status: 5.0.0",
            "Diagnostic-Code: smtp; 550 Benutzer existiert nicht für böb",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard", diagnosticCode: "550 Benutzer existiert nicht für böb" }],
    ],
    [
      "rfc822;addr without space, in brackets",
      {
        parts: [
          WORDS,
          statusPart("Final-Recipient: RFC822;<bob@example.org>", "Action: failed", "Status: 5.1.1"),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "address without its type",
      { parts: [WORDS, statusPart("Final-Recipient: bob@example.org", "Action: Failed", "Status: 5.1.1")] },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "address with a comment",
      {
        parts: [
          WORDS,
          statusPart(
            "Final-Recipient: rfc822; bob@example.org (Bob)",
            "Action: failed (final)",
            "Status: 5.1.1 (unknown)",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "X.400 final, rfc822 original",
      {
        parts: [
          WORDS,
          statusPart(
            "Original-Recipient: rfc822;bob@example.org",
            "Final-Recipient: X400; /S=bob/O=EX/C=US/",
            "Action: failed",
            "Status: 5.1.1",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "X.400 final only",
      {
        parts: [
          WORDS,
          statusPart("Final-Recipient: X400; /S=bob/O=EX/C=US/", "Action: failed", "Status: 5.1.1"),
          ORIGINAL,
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "local user name only",
      {
        parts: [WORDS, LOCAL, ORIGINAL],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "local user name only, of a mail to several",
      { parts: [WORDS, LOCAL, SEVERAL] },
      [{ recipient: null, outcome: "hard" }],
    ],
    [
      "local user name only, of a message to several, with words that name one",
      { parts: [{ ...WORDS, lines: [...WORDS.lines, "", "<bob@example.org>"] }, LOCAL, SEVERAL] },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "delayed",
      {
        headers: ["Subject: Warning: could not send message for past 4 hours"],
        parts: [
          WORDS,
          statusPart(
            ...bob("421 4.4.2 Connection timed out", "4.4.2", "delayed"),
            "Will-Retry-Until: Sat, 11 Jan 2025 10:00:00 +0000",
          ),
          HEADERS,
        ],
      },
      [{ recipient: B, action: "delayed", outcome: "deferred" }],
    ],
    [
      "delayed, in capitals, 5.x status",
      { parts: [WORDS, statusPart(...bob("550 5.1.1 user unknown", "5.1.1", "Delayed"))] },
      [{ recipient: B, action: "delayed", outcome: "deferred" }],
    ],
    [
      "delivered",
      {
        headers: ["Subject: Successful Mail Delivery Report"],
        parts: [
          { type: "text/plain", lines: ["Your message was successfully delivered."] },
          statusPart(...bob("250 2.0.0 ok", "2.0.0", "delivered")),
        ],
      },
      [{ recipient: B, action: "delivered", outcome: null }],
    ],
    [
      "relayed",
      {
        headers: ["Subject: Delivery Status Notification (Relay)"],
        parts: [
          {
            type: "text/plain",
            lines: ["relayed to a server that sends no confirmation; delivery failed reports may follow"],
          },
          statusPart(...bob("250 ok", "2.1.9", "relayed")),
        ],
      },
      [{ recipient: B, action: "relayed", outcome: null }],
    ],
    [
      "expanded",
      {
        headers: ["Subject: Delivery Status Notification (Expanded)"],
        parts: [
          { type: "text/plain", lines: ["expanded to a group"] },
          statusPart(...bob("", "2.0.0", "expanded")),
        ],
      },
      [{ recipient: B, action: "expanded", outcome: null }],
    ],
    [
      "delivered in words typed text/plain",
      {
        headers: ["Subject: Delivery Status Notification (Success)"],
        parts: [
          { type: "text/plain", lines: ["Your message was delivered to the following recipients."] },
          { ...statusPart(...bob("250 2.0.0 ok", "2.0.0", "delivered")), type: "text/plain" },
        ],
      },
      [{ recipient: B, action: "delivered", outcome: null }],
    ],
    [
      "several recipients",
      {
        parts: [
          WORDS,
          statusPart(
            ...bob("550 5.1.1 User unknown", "5.1.1"),
            "",
            "Final-Recipient: rfc822; eve@example.org",
            "Action: failed",
            "Status: 5.2.2",
            "",
            "Final-Recipient: rfc822; dan@example.org",
            "Action: delivered",
            "Status: 2.0.0",
          ),
        ],
      },
      [
        { recipient: B, outcome: "hard" },
        { recipient: "eve@example.org", outcome: "soft" },
        { recipient: "dan@example.org", outcome: null },
      ],
    ],
    [
      "cut off after the status",
      { parts: [WORDS, statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), ORIGINAL], cut: "hello" },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "truncated within the status",
      {
        parts: [WORDS, statusPart(...bob("550 5.1.1 User unknown", "5.1.1")), ORIGINAL],
        cut: "Status: 5.1.1",
      },
      [{ recipient: B }],
    ],
    [
      "truncated within the status, Exchange order",
      { parts: [WORDS, statusPart(...bob("550 5.1.1 User unknown", "5.1.1"))], cut: " User unknown" },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "truncated before the status",
      {
        parts: [
          {
            type: "text/plain",
            lines: [
              "This is the mail system.",
              "",
              "<bob@example.org>: host mx.example.org[192.0.2.7] said: 550 5.1.1 User unknown",
            ],
          },
          statusPart(...bob("550 5.1.1", "5.1.1")),
        ],
        cut: "--=b=\r\nContent-Type: message/delivery-status",
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "status without any words",
      { parts: [statusPart(...bob("550 5.1.1 User unknown", "5.1.1"))] },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "an empty Diagnostic-Code, reason in words",
      {
        parts: [
          { type: "text/plain", lines: ["<bob@example.org>: 550 5.1.1 no such user"] },
          statusPart(F, "Action: failed", "Status: 5.0.0", "Diagnostic-Code: "),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
    [
      "a folded diagnostic",
      {
        parts: [
          WORDS,
          statusPart(
            F,
            "Action: failed",
            "Status: 5.0.0",
            "Diagnostic-Code: smtp; 550 5.2.2",
            "\t<bob@example.org>:",
            "    mailbox",
            " full",
          ),
        ],
      },
      [{ recipient: B, outcome: "soft" }],
    ],
    [
      "a diagnostic of several lines that are not folded",
      {
        parts: [
          WORDS,
          statusPart(
            F,
            "Action: failed",
            "Status: 5.0.0",
            "Diagnostic-Code: smtp; 550-No such",
            "550 user here",
          ),
        ],
      },
      [{ recipient: B, outcome: "hard" }],
    ],
  ])("%s", async (_, report, expected) => {
    expect(await recipientsOf(reportMail(report))).toMatchObject(expected);
  });
});

test("a report that consists only of its fields is read", async () => {
  const raw = Buffer.from(
    [
      "From: MAILER-DAEMON@mx.example.net",
      "Subject: Undelivered Mail",
      "Content-Type: message/delivery-status",
      "",
      "Reporting-MTA: dns; mx.example.net",
      "",
      ...bob("550 5.1.1 User unknown", "5.1.1"),
      "",
    ].join("\r\n"),
  );
  expect(await recipientsOf(raw)).toMatchObject([{ recipient: B, outcome: "hard" }]);
});

test("a report of success in words alone is not a failure", async () => {
  const said = [
    "Your message was successfully delivered to the destination(s)",
    "listed below.",
    "",
    `<${B}>: 250 ok`,
  ];
  const raw = reportMail({
    headers: ["Subject: Successful Mail Delivery Report"],
    report: "multipart/mixed",
    parts: [{ type: "text/plain", lines: said }],
  });
  expect(await recipientsOf(raw)).toBeNull();
});
