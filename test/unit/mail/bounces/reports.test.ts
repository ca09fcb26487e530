import { expect, test } from "bun:test";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import {
  bob,
  ORIGINAL,
  type Report,
  reportMail,
  reportsIn,
  statusPart,
  toldOf,
  WORDS,
} from "../../../support/report-mail.ts";

async function recipientsOf(raw: Buffer) {
  return readBounce(await parseMail(raw), raw)?.recipients ?? null;
}

test.each(reportsIn("reports.tsv").map(({ name, ...report }) => [name, report] as const))(
  "a delivery status notification (RFC 3464) is read: %s",
  async (_, { raw, expected }) => {
    expect(toldOf((await recipientsOf(raw)) ?? [], expected)).toBe(expected);
  },
);

const UNKNOWN = statusPart(...bob("550 5.1.1 User unknown", "5.1.1"));
const IN_WORDS = { type: "text/plain", lines: ["<bob@example.org>: 550 5.1.1 no such user"] };
const HARD = { recipient: "bob@example.org", outcome: "hard" };

test.each<[string, Report, object]>([
  [
    "has its status in an attachment of text",
    {
      parts: [
        WORDS,
        {
          ...UNKNOWN,
          type: 'text/plain; name="status.txt"\r\nContent-Disposition: attachment; filename="status.txt"',
        },
        ORIGINAL,
      ],
    },
    { ...HARD, status: "5.1.1" },
  ],
  [
    "has an empty Diagnostic-Code and its reason in words",
    { parts: [IN_WORDS, statusPart(...bob("", "5.0.0"), "Diagnostic-Code: ")] },
    HARD,
  ],
  ["ends after the status", { parts: [WORDS, UNKNOWN, ORIGINAL], cut: "hello" }, HARD],
  [
    "ends within the status",
    { parts: [WORDS, UNKNOWN, ORIGINAL], cut: "Status: 5.1.1" },
    { recipient: "bob@example.org" },
  ],
  ["ends within the diagnostic", { parts: [WORDS, UNKNOWN], cut: " User unknown" }, HARD],
  [
    "ends before the status",
    { parts: [IN_WORDS, UNKNOWN], cut: "--=b=\r\nContent-Type: message/delivery-status" },
    HARD,
  ],
])("a report is read that %s", async (_, report, expected) => {
  expect(await recipientsOf(reportMail(report))).toMatchObject([expected]);
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
  expect(await recipientsOf(raw)).toMatchObject([HARD]);
});

test("a report of success in words alone is not a failure", async () => {
  const raw = reportMail({
    headers: ["Subject: Successful Mail Delivery Report", "Content-Type: multipart/mixed"],
    parts: [
      {
        type: "text/plain",
        lines: [
          "Your message was successfully delivered to the destination(s)",
          "listed below.",
          "",
          "<bob@example.org>: 250 ok",
        ],
      },
    ],
  });
  expect(await recipientsOf(raw)).toBeNull();
});
