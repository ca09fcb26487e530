import { describe, expect, test } from "bun:test";
import { isComplaint, readFeedback } from "../../../../src/mail/bounces/arf.ts";
import { readDiagnostic } from "../../../../src/mail/bounces/diagnostic.ts";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { MAX_REPORT_RECIPIENTS, statusRecipients } from "../../../../src/mail/bounces/status-fields.ts";

async function bounceOf(...lines: string[]) {
  const raw = Buffer.from(lines.join("\r\n"), "utf8");
  return readBounce(await parseMail(raw), raw);
}

async function feedbackOf(...lines: string[]) {
  return readFeedback(await parseMail(Buffer.from(lines.join("\r\n"))));
}

const REPORT = [
  "From: MAILER-DAEMON@mx.example.net",
  "To: bounce@example.com",
  "Subject: Undelivered Mail Returned to Sender",
  'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
  "",
  "--b",
  "Content-Type: text/plain",
  "",
  "I could not deliver your mail.",
  "",
];
const ORIGINAL = [
  "--b",
  "Content-Type: message/rfc822",
  "",
  "From: ann@example.com",
  "To: bob@example.org",
  "Message-ID: <m1@example.com>",
  "Subject: hi",
  "",
  "hello",
  "--b--",
  "",
];
const STATUS = ["--b", "Content-Type: message/delivery-status", "", "Reporting-MTA: dns; mx.example.net", ""];

describe("a delivery status notification (RFC 3464)", () => {
  test("gives each recipient's outcome, and prefers the peer's words to the reporter's", async () => {
    const bounce = await bounceOf(
      ...REPORT,
      ...STATUS,
      "Final-Recipient: rfc822; bob@example.org",
      "Original-Recipient: rfc822;Bob@Example.org",
      "Action: failed",
      "Status: 5.0.0",
      "Remote-MTA: dns; mx.example.org",
      "Diagnostic-Code: smtp; 550 5.1.1 <bob@example.org>:",
      " User unknown",
      "",
      "Final-Recipient: rfc822; eve@example.org",
      "Action: delayed (not yet)",
      "Status: 4.4.1",
      "",
      "Final-Recipient: rfc822; max@example.org",
      "Action: delivered",
      "Status: 2.0.0",
      "",
      ...ORIGINAL,
    );
    expect(bounce?.recipients).toMatchObject([
      {
        recipient: "Bob@example.org",
        finalRecipient: "bob@example.org",
        action: "failed",
        outcome: "hard",
        category: "recipient",
        status: "5.1.1",
        smtpCode: 550,
        remoteMta: "mx.example.org",
        diagnosticCode: "550 5.1.1 <bob@example.org>: User unknown",
      },
      { recipient: "eve@example.org", action: "delayed", outcome: "deferred", status: "4.4.1" },
      { recipient: "max@example.org", action: "delivered", outcome: null, status: "2.0.0" },
    ]);
  });

  test.each([
    ["5.2.2", "smtp; 552 5.2.2 over quota", "soft", "mailbox-full"],
    ["4.4.7", "smtp; 421 timed out", "soft", "infrastructure"],
    ["5.7.1", "smtp; 550 5.7.1 blocked, see spamhaus", "failed", "reputation"],
    ["5.1.1", "smtp; 550 5.1.1 over quota", "soft", "mailbox-full"],
    [
      "5.0.0",
      "smtp; 5.1.0 - Unknown address error 550-'5.7.1 <a@b.example>... Access denied'",
      "failed",
      "policy",
    ],
    ["5.1.1", "", "hard", "recipient"],
    ["5.1.1", "smtp; 550 message rejected", "failed", "policy"],
    ["5.0.0", "smtp; 550 5.1.1 message rejected", "hard", "recipient"],
  ])("Status %s with %j is %s", async (status, diagnostic, outcome, category) => {
    const bounce = await bounceOf(
      ...REPORT,
      ...STATUS,
      "Final-Recipient: rfc822; bob@example.org",
      "Action: failed",
      `Status: ${status}`,
      ...(diagnostic === "" ? [] : [`Diagnostic-Code: ${diagnostic}`]),
      "",
      ...ORIGINAL,
    );
    expect(bounce?.recipients).toMatchObject([{ outcome, category }]);
  });

  test.each([0, 1])("a diagnostic never cuts a surrogate pair (%i)", async (shift) => {
    const words = `550 ${"x".repeat(shift)}${"😀".repeat(1500)}`;
    const fields = ["Final-Recipient: rfc822; bob@example.org", `Diagnostic-Code: smtp; ${words}`, ""];
    const reported = await bounceOf(...REPORT, ...STATUS, ...fields, ...ORIGINAL);
    const noticed = await bounceOf(
      "From: MAILER-DAEMON@mx.example.net",
      "Subject: Undelivered Mail Returned to Sender",
      "",
      "I could not deliver your mail to:",
      `<bob@example.org>: ${words}`,
    );
    const shown = [reported, noticed].map((bounce) => bounce?.recipients[0]?.diagnosticCode ?? "");
    expect(shown.map((text) => text.length)).toEqual([2000, 2000]);
    expect(shown.map((text) => text.isWellFormed())).toEqual([true, true]);
  });

  test.each([
    ["constructor", "5.1.1", "failed"],
    ["unheard-of", "2.0.0", "delivered"],
  ])("Action %s is invalid: Status %s means %s", async (word, status, action) => {
    const bounce = await bounceOf(
      ...REPORT,
      ...STATUS,
      "Final-Recipient: rfc822; bob@example.org",
      `Action: ${word}`,
      `Status: ${status}`,
      "",
      ...ORIGINAL,
    );
    expect(bounce?.recipients).toMatchObject([{ action }]);
  });

  test("is read if the empty line between recipients is missing", () => {
    const found = statusRecipients(
      "Final-Recipient: rfc822; a@x.example\nAction: failed\nFinal-Recipient: rfc822; b@x.example\nAction: failed\n",
    );
    expect(found.map(({ finalRecipient }) => finalRecipient)).toEqual(["a@x.example", "b@x.example"]);
  });

  test("is read for at most a hundred recipients", () => {
    expect(
      statusRecipients("Final-Recipient: rfc822; a@x.example\n\n".repeat(MAX_REPORT_RECIPIENTS + 1)),
    ).toHaveLength(MAX_REPORT_RECIPIENTS);
  });

  test("is read from its text if its MIME structure is broken", async () => {
    const bounce = await bounceOf(
      ...REPORT.slice(0, 3),
      'Content-Type: multipart/report; boundary="other"',
      "",
      "--b",
      "Content-Type: message/delivery-status",
      "",
      "Reporting-MTA: dns; mx.example.net",
      "",
      "Final-Recipient: rfc822; bob@example.org",
      "Action: failed",
      "Status: 5.1.1",
      "",
      "--b--",
    );
    expect(bounce?.recipients).toMatchObject([{ recipient: "bob@example.org", outcome: "hard" }]);
  });
});

describe("a notice in words", () => {
  const FROM = ["From: Mail Delivery <MAILER-DAEMON@mx.example.net>", "To: ann@example.com"];
  const TAIL = [
    "",
    "--- Below this line is a copy of the message.",
    "",
    "To: other@example.org",
    "Subject: hi",
  ];
  test.each<[string, string[], object[]]>([
    [
      "qmail",
      [
        "Subject: failure notice",
        "",
        "Hi. This is the qmail-send program at mx.example.net.",
        "I'm afraid I wasn't able to deliver your message to the following addresses.",
        "",
        "<bob@example.org>:",
        "Connected to 192.0.2.1 but recipient was rejected.",
        "Remote host said: 550 5.1.1 no such user",
        "",
        "<eve@example.org>:",
        "user is over quota",
        ...TAIL,
      ],
      [
        { recipient: "bob@example.org", outcome: "hard", smtpCode: 550 },
        { recipient: "eve@example.org", outcome: "soft", category: "mailbox-full" },
      ],
    ],
    [
      "Exim",
      [
        "Subject: Mail delivery failed: returning message to sender",
        "X-Failed-Recipients: bob@example.org",
        "Auto-Submitted: auto-replied",
        "",
        "This message was created automatically by mail delivery software.",
        "",
        "A message that you sent could not be delivered to one or more of its",
        "recipients. This is a permanent error. The following address(es) failed:",
        "",
        "  bob@example.org",
        "    host mx.example.org [192.0.2.1]",
        "    SMTP error from remote mail server after RCPT TO:<bob@example.org>:",
        "    550 rejected",
        ...TAIL,
      ],
      [{ recipient: "bob@example.org", outcome: "hard" }],
    ],
    [
      "Exim, an alias",
      [
        "Subject: Mail delivery failed: returning message to sender",
        "",
        "The following address(es) failed:",
        "",
        "  bob@inner.example",
        "    (generated from team@example.org)",
        "    Unrouteable address",
        ...TAIL,
      ],
      [{ recipient: "team@example.org", finalRecipient: "bob@inner.example", outcome: "hard" }],
    ],
    [
      "Exim, a warning",
      [
        "Subject: Warning: message 1abc delayed 24 hours",
        "Auto-Submitted: auto-replied",
        "",
        "A message that you sent has not yet been delivered to one or more of its",
        "recipients after more than 24 hours on the queue.",
        "The address to which the message has not yet been delivered is:",
        "",
        "  bob@example.org",
        "    Delay reason: Connection timed out",
      ],
      [{ recipient: "bob@example.org", action: "delayed", outcome: "deferred" }],
    ],
    [
      "Exchange",
      [
        "Subject: Undeliverable: hi",
        "",
        "Your message",
        "",
        "  To:      team@example.org",
        "  Subject: hi",
        "",
        "did not reach the following recipient(s):",
        "",
        "bob@example.org on Thu, 29 Apr 2010 00:00:00 -0000",
        "    The recipient name is not recognized",
        "Unknown Recipient",
      ],
      [{ recipient: "bob@example.org", outcome: "hard" }],
    ],
    [
      "Sendmail",
      [
        "Subject: Returned mail: Host unknown",
        "",
        "   ----- Transcript of session follows -----",
        "550 <bob@example.org>... Host unknown (Name server: no data)",
        "",
        "   ----- Unsent message follows -----",
        "To: other@example.org",
      ],
      [{ recipient: "bob@example.org", outcome: "hard" }],
    ],
    [
      "html alone",
      [
        "Subject: Delivery failure",
        "Content-Type: text/html",
        "",
        "<p>Your mail could not be delivered to</p><p>bob@example.org</p><p>mailbox is full</p>",
      ],
      [{ recipient: "bob@example.org", outcome: "soft" }],
    ],
    [
      "no recipient named",
      ["Subject: Delivery failure", "", "Your mail could not be delivered."],
      [{ recipient: null, outcome: "failed" }],
    ],
  ])("%s", async (_name, lines, expected) => {
    expect((await bounceOf(...FROM, ...lines))?.recipients).toMatchObject(expected);
  });
});

describe("a message that is not a bounce", () => {
  test.each<[string, string[]]>([
    ["a person's mail", ["From: bob@example.org", "Subject: hi", "", "Hello"]],
    [
      "a mail about bounces",
      [
        "From: bob@example.org",
        "Subject: Why was my mail rejected?",
        "",
        "It said user unknown for eve@example.org",
      ],
    ],
    [
      "a personal message with a report's fields in its text",
      [
        "From: bob@example.org",
        "Subject: what does this mean?",
        "",
        "Reporting-MTA: dns; mx.example.net",
        "",
        "Final-Recipient: rfc822; eve@example.org",
        "Action: failed",
        "Status: 5.1.1",
      ],
    ],
    [
      "a person's answer to a bounce",
      [
        "From: bob@example.org",
        "Subject: Re: Undelivered Mail Returned to Sender",
        "",
        "> could not be delivered",
        "Oh, sorry.",
      ],
    ],
    [
      "an out-of-office reply",
      [
        "From: bob@example.org",
        "Auto-Submitted: auto-replied",
        "Subject: Out of office",
        "",
        "I cannot be reached until Monday, mail eve@example.org",
      ],
    ],
    [
      "an automatic reply of a postmaster",
      [
        "From: postmaster@example.org",
        "Auto-Submitted: auto-replied",
        "Subject: We have got your mail",
        "",
        "It will not be delivered to a person at once.",
      ],
    ],
    [
      "a mail with another mail attached",
      [
        "From: bob@example.org",
        "Subject: see this",
        "Content-Type: multipart/mixed; boundary=b",
        "",
        ...ORIGINAL,
      ],
    ],
    [
      "a read receipt",
      [
        "From: bob@example.org",
        "Subject: Not read: delivery failed",
        "Content-Type: multipart/report; report-type=disposition-notification; boundary=b",
        "",
        "--b",
        "",
        "Your mail was not delivered",
        "--b",
        "Content-Type: message/disposition-notification",
        "",
        "Disposition: manual-action/MDN-sent-manually; deleted",
        "--b--",
      ],
    ],
    ["nothing", [""]],
  ])("%s", async (_name, lines) => {
    expect(await bounceOf(...lines)).toBeNull();
    expect(await feedbackOf(...lines)).toBeNull();
  });
});

describe("a feedback report (RFC 5965)", () => {
  const arf = (...fields: string[]) =>
    feedbackOf(
      "From: fbl@example.net",
      "Content-Type: multipart/report; report-type=feedback-report; boundary=b",
      "",
      "--b",
      "",
      "A complaint",
      "--b",
      "Content-Type: message/feedback-report",
      "",
      ...fields,
      "",
      ...ORIGINAL,
    );

  test("gives the complaint about a message", async () => {
    expect(await arf("Feedback-Type: Abuse", "Original-Rcpt-To: <Eve@example.org>")).toMatchObject({
      feedbackType: "abuse",
      originalReturnPaths: [],
      original: { recipients: ["Eve@example.org"] },
    });
  });

  test.each([
    ["Original-Mail-From: <b+token@bounce.example.com>", ["b+token@bounce.example.com"]],
    ["Original-Mail-From: <>", []],
  ])("gives the return path of that message: %s", async (field, expected) => {
    expect((await arf("Feedback-Type: abuse", field))?.originalReturnPaths).toEqual(expected);
  });

  test("is read in Hotmail's form", async () => {
    expect(
      await feedbackOf(
        "From: staff@hotmail.com",
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "Content-Type: message/rfc822",
        "",
        "X-HmXmrOriginalRecipient: eve@example.org",
        "Message-ID: <m2@example.com>",
        "",
        "x",
        "--b--",
      ),
    ).toMatchObject({
      feedbackType: "abuse",
      originalReturnPaths: [],
      original: { messageId: "<m2@example.com>", recipients: ["eve@example.org"] },
    });
  });

  test.each([
    ["abuse", true],
    ["fraud", true],
    ["opt-out", true],
    ["not-spam", false],
    ["auth-failure", false],
  ])("a feedback report of type %s is a complaint: %p", async (type, expected) => {
    const report = await arf(`Feedback-Type: ${type}`);
    expect(report !== null && isComplaint(report)).toBe(expected);
  });
});

test.each([
  [
    "host mx said: 550 5.1.1 <a@b>... no (in reply to RCPT TO command)",
    { code: 550, enhanced: "5.1.1", stage: "rcpt" },
  ],
  ["550-5.7.26 one 550 5.7.26 two", { code: 550, enhanced: "5.7.26", stage: null }],
  ["550 #5.1.0 Address rejected.", { code: 550, enhanced: "5.1.0", stage: null }],
  ["421 4.7.0 later (in reply to end of DATA command)", { code: 421, enhanced: "4.7.0", stage: "final" }],
  ["connect to 192.0.2.1 after MAIL FROM:<a@b>: 501 no", { code: 501, enhanced: null, stage: "mail" }],
  ["nothing", { code: null, enhanced: null, stage: null }],
])("the diagnostic %j is read", (text, expected) => {
  expect(readDiagnostic(text)).toEqual(expected);
});
