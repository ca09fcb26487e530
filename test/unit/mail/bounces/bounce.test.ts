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
  test("a delivery status notification (RFC 3464) gives each recipient's outcome, and prefers the peer's words to the reporter's", async () => {
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

  test("a delivery status notification (RFC 3464) is read if the empty line between recipients is missing", () => {
    const found = statusRecipients(
      "Final-Recipient: rfc822; a@x.example\nAction: failed\nFinal-Recipient: rfc822; b@x.example\nAction: failed\n",
    );
    expect(found.map(({ finalRecipient }) => finalRecipient)).toEqual(["a@x.example", "b@x.example"]);
  });

  test("a delivery status notification (RFC 3464) is read for at most a hundred recipients", () => {
    expect(
      statusRecipients("Final-Recipient: rfc822; a@x.example\n\n".repeat(MAX_REPORT_RECIPIENTS + 1)),
    ).toHaveLength(MAX_REPORT_RECIPIENTS);
  });

  test("a delivery status notification (RFC 3464) is read from its text if its MIME structure is broken", async () => {
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

  test("a feedback report (RFC 5965) gives the complaint about a message", async () => {
    expect(await arf("Feedback-Type: Abuse", "Original-Rcpt-To: <Eve@example.org>")).toMatchObject({
      feedbackType: "abuse",
      originalReturnPaths: [],
      original: { recipients: ["Eve@example.org"] },
    });
  });

  test.each([
    ["Original-Mail-From: <b+token@bounce.example.com>", ["b+token@bounce.example.com"]],
    ["Original-Mail-From: <>", []],
  ])("a feedback report (RFC 5965) gives the return path of that message: %s", async (field, expected) => {
    expect((await arf("Feedback-Type: abuse", field))?.originalReturnPaths).toEqual(expected);
  });

  test("a feedback report (RFC 5965) is read in Hotmail's form", async () => {
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
