/** Reports and replies that are bad for the readers of bounces and complaints. */
import { systemClock } from "../../../../src/clock.ts";
import { readReport } from "../../../../src/flows/mime/read-report.ts";
import { classifyReply } from "../../../../src/mail/bounces/reply-class.ts";
import {
  createReplyParser,
  explanation,
  MAX_REPLY_OCTETS,
} from "../../../../src/smtp/client/reply-parser.ts";
import { readCapabilities } from "../../../../src/smtp/client/capabilities.ts";
import { asOctets, casesOf, filled, repeated, type WorstCase } from "./worst-case.ts";

/** As much as `receive/inbound-handler` hands on of a report. */
const MAX_REPORT_OCTETS = 256 * 1024;
/** Refuses to resolve names: `checks.ts` measures the checks of a sender. */
const DEPS = {
  host: "mx.mail.test",
  clock: systemClock,
  resolve: (): Promise<never> => Promise.reject(new Error("nothing is asked")),
};
const EMAIL = "ann@there.test";
const HEAD =
  "From: MAILER-DAEMON@mx.example\r\nTo: b@mail.test\r\nSubject: Undelivered Mail Returned to Sender\r\n";
const PARTS = `${HEAD}Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nfailed\r\n`;
const STATUS = `${PARTS}--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; a\r\n\r\n`;
const FEEDBACK = `${PARTS}--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n`;
const RETURNED = `${PARTS}--b\r\nContent-Type: message/rfc822\r\n\r\n`;

/** Pieces with which patterns of notices begin. */
const WORDS = [
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
  "550 5.1.1 ",
  "a@b.example\n",
  "a@b.example: 550 x\n",
  "--- ",
  "\n\n",
  "rcpt to:<",
  '"a"@',
  "smtp=",
  "c=",
  "a.",
  "\n >",
  "contact ",
  "please send ",
  "> ",
  "a@b.example: 550 x\n    a@b ",
  "the response from ",
  "(in reply to ",
  "this is the ",
  "invalid domain of ",
  "mailbox server ",
];
const FIELDS = [
  "Final-Recipient: rfc822; a@b.example\r\nAction: failed\r\n\r\n",
  "Final-Recipient: rfc822; a@b\r\n",
  "Action: failed\r\n",
  "Status: 5.1.1\r\n",
  "\r\n \r\n",
  "\r\n550 ",
  "a:b\r\n",
  "\r\n a",
];

function within(begin: string, pieces: readonly string[], end = "\r\n--b--\r\n") {
  return asOctets(repeated(pieces, begin, end));
}

function named(name: string, shapes: Record<string, (octets: number) => Buffer>) {
  return Object.fromEntries(Object.entries(shapes).map(([shape, make]) => [`${name} ${shape}`, make]));
}

const reports: Record<string, (octets: number) => Buffer> = {
  ...named("text", within(`${HEAD}\r\n`, WORDS)),
  ...named("fields", within(STATUS, FIELDS)),
  ...named(
    "recipient",
    within(`${STATUS}Final-Recipient: `, ["a", "<", "a@", "rfc822;", "\\x{41}", "+40", '"', ":", "'b"]),
  ),
  ...named(
    "diagnostic",
    within(`${STATUS}Final-Recipient: rfc822; a@b\r\nDiagnostic-Code: smtp; `, [
      "550 ",
      "5.1.1 ",
      "said: ",
      "'",
      "[",
      "(",
    ]),
  ),
  ...named("returned", within(RETURNED, ["To: a@b\r\n", "a", "Return-Path: <a@b>\r\n", "To: ,,,"])),
  ...named(
    "feedback",
    within(FEEDBACK, ["Original-Mail-From: a\r\n", "a", "Original-Rcpt-To: <a@b>\r\n", "\r\n a"]),
  ),
  ...named(
    "subject",
    within(`${HEAD.slice(0, -2)} `, ["a@b ", "user ", "mail ", "=?utf-8?q?"], "\r\n\r\nfailed"),
  ),
  ...named("sender", within("From: ", ["smtp.", "mail-service", "a."], "@a.example\r\n\r\nfailed")),
};

/** A reply of several lines with a piece in each, pushed in pieces of so many bytes. */
function replies(pieceOctets: number) {
  return (text: Buffer): void => {
    const parser = createReplyParser();
    for (let at = 0; at < text.length; at += pieceOctets)
      parser.push(text.subarray(at, at + pieceOctets), (reply) => {
        readCapabilities(reply);
        classifyReply({
          code: reply.code,
          enhanced: reply.enhanced,
          stage: "rcpt",
          text: explanation(reply),
        });
      });
  };
}

const lines: Record<string, (octets: number) => Buffer> = {
  ...asOctets(repeated(["a", " ", "550", "\t"], "550-", "\r\n550 x\r\n")),
  ...Object.fromEntries(
    WORDS.map((word) => [
      `lines of ${JSON.stringify(word)}`,
      (octets: number) =>
        Buffer.from(
          `${filled(`550-5.1.1 ${filled(word.replace(/\s/g, " "), 500)}\r\n`, octets - 12)}\r\n550 x\r\n`,
          "latin1",
        ),
    ]),
  ),
};

/** All of them. */
export const REPORT_CASES: readonly WorstCase[] = [
  ...casesOf(
    "report",
    MAX_REPORT_OCTETS,
    (raw) => readReport(DEPS, { raw, session: null, email: EMAIL }),
    reports,
  ),
  ...casesOf("reply", MAX_REPLY_OCTETS, replies(64 * 1024), lines),
  ...casesOf(
    "reply, octet by octet",
    MAX_REPLY_OCTETS,
    replies(1),
    asOctets(repeated(["a", "\r"], "550-", "\r\n550 x\r\n")),
  ),
];
