import { describe, expect, test } from "bun:test";
import { readFeedback } from "../../../../src/mail/bounces/arf.ts";
import { readDiagnostic } from "../../../../src/mail/bounces/diagnostic.ts";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { classByText } from "../../../../src/mail/bounces/reply-class.ts";
import { addressOf, MAX_REPORT_RECIPIENTS } from "../../../../src/mail/bounces/status-fields.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

/**
 * Milliseconds that a parsed 1 MiB may take. An idle machine takes 100; if a pattern backtracks, it takes minutes.
 */
const MAX_MS = 2000;

const HEAD = [
  "From: MAILER-DAEMON@mx.example.net",
  "To: ann@example.com",
  "Subject: Undelivered Mail Returned to Sender",
  'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
  "",
  "--b",
  "Content-Type: text/plain",
  "",
].join("\r\n");
const STATUS =
  "\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.net\r\n\r\n";
const MIB = 1024 * 1024;

/** Fragments that many patterns begin with. If they are repeated, each could be the start of a match. */
const PIECES = [
  "user ",
  "recipient ",
  "mailbox over ",
  "blocked by ",
  "account ",
  "to ",
  "<a@",
  "a@b ",
  "said: ",
  "sender ",
  "absender ",
  "adresse ",
  "postfach ",
  "from ",
  "message-id <",
  "protocol ",
  "o'b",
  "\0",
  " ",
];

function filled(piece: string, length: number): string {
  return piece.repeat(Math.ceil(length / piece.length));
}

function blocks(count: number, fields: (at: number) => string): string {
  return `${HEAD}x${STATUS}${Array.from({ length: count }, (_, at) => fields(at)).join("\r\n")}--b--\r\n`;
}

async function timed(text: string) {
  const raw = Buffer.from(text, "latin1");
  const mail = await parseMail(raw);
  const started = cpuMs();
  const feedback = readFeedback(mail);
  const bounce = readBounce(mail, raw, "bob@example.org");
  return { bounce, feedback, ms: cpuMs() - started };
}

describe("a hostile report of 1 MiB is read in bounded time without an error", () => {
  test.each<[string, string]>([
    ...PIECES.flatMap((piece): [string, string][] => [
      [`lines of ${JSON.stringify(piece)}`, `${HEAD}${filled(`${filled(piece, 70)}\r\n`, MIB)}--b--\r\n`],
      [`one line of ${JSON.stringify(piece)}`, `${HEAD}${filled(piece, MIB)}\r\n--b--\r\n`],
      [
        `diagnostics of ${JSON.stringify(piece)}`,
        blocks(
          400,
          (at) =>
            `Final-Recipient: rfc822; u${at}@x.test\r\nDiagnostic-Code: smtp; ${at}${filled(piece, 2500)}\r\n`,
        ),
      ],
    ]),
    ...["0", "a.!", "'", "a'b", "a'b'c@", "@@", "a@b!x."].flatMap((piece): [string, string][] => [
      [
        `addresses of ${piece} without end`,
        blocks(60, () => `Final-Recipient: rfc822; ${filled(piece, 4090)}\r\nAction: failed\r\n`),
      ],
      [
        `a complaint of ${piece} without end`,
        `${HEAD}x\r\n--b\r\nContent-Type: message/feedback-report\r\n\r\nOriginal-Rcpt-To: ${filled(piece, 250_000)}\r\n--b--\r\n`,
      ],
    ]),
    [
      "ten thousand recipients",
      blocks(10_000, (at) => `Final-Recipient: rfc822; u${at}@x.test\r\nAction: failed\r\nStatus: 5.1.1\r\n`),
    ],
    [
      "recipients without end",
      `${HEAD}x${STATUS}${"Final-Recipient: rfc822; a@x.test\r\n".repeat(30_000)}--b--\r\n`,
    ],
    ["nested messages", "Content-Type: message/rfc822\r\n\r\n".repeat(3000)],
    [
      "multiparts within multiparts",
      HEAD +
        Array.from(
          { length: 900 },
          (_, at) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}\r\n`,
        ).join(""),
    ],
    [
      "octets of every value",
      Buffer.from(Uint8Array.from({ length: MIB }, (_, at) => (at * 31) % 256)).toString("latin1"),
    ],
    [
      "a subject without end",
      `From: MAILER-DAEMON@x.test\r\nSubject: ${filled("deliver fail mail ", MIB)}\r\n\r\nx`,
    ],
    [
      "html",
      `From: MAILER-DAEMON@x.test\r\nSubject: fail\r\nContent-Type: text/html\r\n\r\n${filled("<p>user ", MIB)}`,
    ],
    [
      "failed recipients in the header",
      `${filled("X-Failed-Recipients: a@b.test,", MIB)}\r\nSubject: fail\r\n\r\nuser`,
    ],
    [
      "a feedback report",
      `${HEAD}x\r\n--b\r\nContent-Type: message/feedback-report\r\n\r\n${filled("Feedback-Type: abuse\r\n", MIB)}--b--\r\n`,
    ],
  ])("%s", async (_, text) => {
    const { bounce, ms } = await timed(text);
    expect(ms).toBeLessThan(MAX_MS);
    expect(bounce?.recipients.length ?? 0).toBeLessThanOrEqual(MAX_REPORT_RECIPIENTS);
  });

  test("a line of the first words of every phrase", () => {
    for (const piece of PIECES) {
      const started = cpuMs();
      classByText(filled(piece, MIB));
      readDiagnostic(filled(piece, 4096));
      addressOf(filled(piece, 4096));
      expect(cpuMs() - started).toBeLessThan(MAX_MS);
    }
  });
});

test("control characters of a report's fields are removed from the stored text", async () => {
  const { bounce } = await timed(
    blocks(
      1,
      () =>
        "Final-Recipient: rfc822; a\0\x1bb@x.test\r\nAction: failed\r\nRemote-MTA: dns; mx\x1b[2J.x.test\r\n" +
        "Diagnostic-Code: smtp; 550 5.1.1 no\0\x07\x1b]0;x\x07 user\r\n",
    ),
  );
  expect(bounce?.recipients[0]).toMatchObject({
    diagnosticCode: "550 5.1.1 no]0;x user",
    remoteMta: "mx[2J.x.test",
    finalRecipient: "ab@x.test",
  });
});

describe("fields that contradict one another", () => {
  const one = async (...fields: string[]) =>
    (await timed(blocks(1, () => `${fields.join("\r\n")}\r\n`))).bounce?.recipients[0];

  test.each<[string, string[], object]>([
    [
      "delivered, with a failure's status",
      ["Action: delivered", "Status: 5.1.1"],
      { action: "delivered", outcome: null },
    ],
    [
      "failed, with a success's status",
      ["Action: failed", "Status: 2.0.0"],
      { action: "failed", outcome: "failed" },
    ],
    [
      "delayed, with a failure's status",
      ["Action: delayed", "Status: 5.1.1"],
      { action: "delayed", outcome: "deferred" },
    ],
    [
      "two actions: the first counts",
      ["Action: relayed", "Action: failed", "Status: 5.1.1"],
      { action: "relayed", outcome: null },
    ],
    ["no action: the status tells", ["Status: 2.1.5"], { action: "delivered", outcome: null }],
    ["no action and a failure's status", ["Status: 5.1.1"], { action: "failed", outcome: "hard" }],
    ["an action of no meaning", ["Action: exploded", "Status: 5.2.2"], { action: "failed", outcome: "soft" }],
    ["a NUL within a field", ["Action: fai\0led", "Status: 5.1.1\0"], { action: "failed", outcome: "hard" }],
    [
      "the peer's code against the reporter's",
      ["Action: failed", "Status: 5.1.1", "Diagnostic-Code: smtp; 552 5.2.2 no"],
      { outcome: "soft" },
    ],
    [
      "a 5xx with a 4.x.x: given up on the way",
      ["Action: failed", "Diagnostic-Code: smtp; 554 4.4.7 Message expired"],
      { outcome: "soft" },
    ],
    ["a 4.1.1 alone", ["Action: failed", "Status: 4.1.1"], { outcome: "soft" }],
    [
      "a busy mailbox, given up",
      ["Action: failed", "Diagnostic-Code: smtp; 450 mailbox unavailable"],
      { outcome: "soft" },
    ],
  ])("%s", async (_, fields, expected) => {
    expect(await one("Final-Recipient: rfc822; bob@example.org", ...fields)).toMatchObject(expected);
  });
});

describe("a report of more recipients than are read", () => {
  const many = (last: string) =>
    blocks(MAX_REPORT_RECIPIENTS + 1, (at) =>
      at < MAX_REPORT_RECIPIENTS
        ? `Final-Recipient: rfc822; u${at}@x.test\r\nAction: failed\r\nStatus: 5.1.1\r\n`
        : `Final-Recipient: rfc822; ${last}\r\nAction: failed\r\nStatus: 5.2.2\r\n`,
    );

  test("a report of more recipients than are read includes the concerned recipient among those that are read, in any letter case", async () => {
    const { bounce } = await timed(many("BOB@Example.org"));
    expect(bounce?.recipients).toHaveLength(MAX_REPORT_RECIPIENTS);
    expect(bounce?.recipients[0]).toMatchObject({ finalRecipient: "BOB@example.org", outcome: "soft" });
  });

  test("a report of more recipients than are read loses the rest", async () => {
    const { bounce } = await timed(many("eve@example.org"));
    expect(bounce?.recipients.some(({ recipient }) => recipient === "eve@example.org")).toBe(false);
  });
});

test.each([
  ["rfc822; <@a.test,@b.test:user@x.test>", "user@x.test"],
  ["rfc822;bob+40example.org", "bob@example.org"],
  ["rfc822; bob+40x@example.org", "bob+40x@example.org"],
  ["utf-8; jos\\x{E9}@example.org", "josé@example.org"],
  ["utf-8; \\x{110000}\\x{D800}@example.org", "\\x{110000}\\x{D800}@example.org"],
  ["utf-8; 用户@例え.jp", "用户@xn--r8jz45g.jp"],
  ['rfc822; "a b"@example.org', '"a b"@example.org'],
  ["rfc822;", null],
  ["x400; /S=bob/", null],
])("the address of %j is %p (RFC 3461 §4, RFC 6533 §3)", (field, expected) => {
  expect(addressOf(field)).toBe(expected);
});
