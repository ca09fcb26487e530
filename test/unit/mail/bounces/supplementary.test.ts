import { expect, test } from "bun:test";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";

/** Returns the recipients of a report in which only these fields tell the reason. */
async function recipientsOf(...fields: string[]) {
  const raw = Buffer.from(
    [
      "From: postmaster@example.net",
      "Subject: Undeliverable: Hi",
      "MIME-Version: 1.0",
      "Content-Type: multipart/report; report-type=delivery-status; boundary=b",
      "",
      "--b",
      "Content-Type: text/plain",
      "",
      "Delivery has failed.",
      "--b",
      "Content-Type: message/delivery-status",
      "",
      "Reporting-MTA: dns; edge.example.net",
      "",
      "Final-Recipient: rfc822; bob@example.org",
      "Action: failed",
      ...fields,
      "--b--",
      "",
    ].join("\r\n"),
  );
  return readBounce(await parseMail(raw), raw)?.recipients ?? null;
}

test.each<[string, string[], object]>([
  [
    "a full mailbox",
    ["Status: 5.0.0", "X-Supplementary-Info: <mx.example.org #5.2.2 smtp;552 5.2.2 Mailbox full>"],
    { outcome: "soft", category: "mailbox-full", smtpCode: 552, diagnosticCode: "552 5.2.2 Mailbox full" },
  ],
  [
    "an unknown mailbox, folded",
    [
      "Status: 5.1.1",
      "X-Supplementary-Info: <mx.example.org #5.1.1 smtp;550-5.1.1 The email account",
      " that you tried to reach does not exist.",
      "550 5.1.1 See https://support.example.org/ x1-2 - gsmtp>",
    ],
    { outcome: "hard", status: "5.1.1", remoteMta: "mx.example.org" },
  ],
  [
    "no other status",
    ["X-Supplementary-Info: < #5.1.1 smtp; 550 5.1.1 <bob@example.org>: User unknown>"],
    { outcome: "hard", status: "5.1.1", remoteMta: null },
  ],
  [
    "a refusal by policy",
    ["X-Supplementary-Info: <mx.example.org #5.7.1 smtp;554 5.7.1 Message rejected as spam>"],
    { smtpCode: 554, status: "5.7.1", diagnosticCode: "554 5.7.1 Message rejected as spam" },
  ],
  [
    "no brackets",
    ["Status: 5.0.0", "X-Supplementary-Info: 550 5.1.1 User unknown"],
    { outcome: "hard", diagnosticCode: "550 5.1.1 User unknown" },
  ],
  [
    "a status alone",
    ["Remote-MTA: dns; mx.example.com", "X-Supplementary-Info: <mx.example.org #5.1.1>"],
    { outcome: "hard", status: "5.1.1", remoteMta: "mx.example.com", diagnosticCode: null },
  ],
  [
    "a Diagnostic-Code, which counts more",
    ["Diagnostic-Code: smtp; 550 5.1.1 No such user", "X-Supplementary-Info: < #4.2.2 smtp;452 Full>"],
    { outcome: "hard", diagnosticCode: "550 5.1.1 No such user" },
  ],
])("the reason in X-Supplementary-Info is read: %s", async (_name, fields, want) => {
  expect(await recipientsOf(...fields)).toMatchObject([{ recipient: "bob@example.org", ...want }]);
});

test.each<[string, string[], object]>([
  ["X-Supplementary-Information: 552 5.2.2 Mailbox full", [], { category: "mailbox-full" }],
  ["X-Original-Diagnostic: smtp; 552 5.2.2 Mailbox full", [], { category: "mailbox-full", smtpCode: 552 }],
  ["SMTP-Remote-Response: 552 5.2.2 Mailbox full", [], { category: "mailbox-full" }],
  ["Reason: 550 5.1.1 No such user", [], { outcome: "hard" }],
  ["X-SMTP-Reply: 550 5.1.1 unknown user", [], { outcome: "hard" }],
  ["X-Log: said 550 5.1.1 unknown user", [], { outcome: "hard" }],
  ["X-Notes-Diagnostic: User unknown", [], { diagnosticCode: "User unknown" }],
  ["X-Queue-Id: 550-5", [], { diagnosticCode: null }],
  ["X-Delivery-Attempts: 3", [], { diagnosticCode: null }],
  ["X-Reply: 550 5.1.1 No such user", ["Diagnostic-Code: smtp;"], { outcome: "hard" }],
])("the reason in another field is read: %s", async (field, others, want) => {
  expect(await recipientsOf("Status: 5.0.0", ...others, field)).toMatchObject([want]);
});
