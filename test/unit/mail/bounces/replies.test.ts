import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { classifyReply, type Refusal } from "../../../../src/mail/bounces/reply-class.ts";

/** Server replies, each with its server and its meaning by our rules. */
const LINES = ["replies.tsv", "replies-providers.tsv"].flatMap((file) =>
  readFileSync(join(import.meta.dir, "../../../fixtures", file), "utf8").split("\n"),
);

interface Row {
  source: string;
  stage: string;
  expected: string;
  reply: string;
}

const ROWS: readonly Row[] = LINES.filter((line) => line !== "" && !line.startsWith("#")).map((line) => {
  const [source = "", stage = "", expected = "", reply = ""] = line.split("\t");
  return { source, stage, expected, reply };
});

/** A reply line as our SMTP client reports it. */
function refusalOf({ reply, stage }: Row): Refusal {
  const found = /^(\d{3})[ -](?:([245]\.\d{1,3}\.\d{1,3}) )?(.*)$/.exec(reply);
  return { code: Number(found?.[1]), enhanced: found?.[2] ?? null, text: found?.[3] ?? "", stage };
}

/** The words by which Postfix names the SMTP command in a DSN. */
const COMMAND: Readonly<Record<string, string>> = {
  ehlo: "EHLO",
  mail: "MAIL FROM",
  rcpt: "RCPT TO",
  final: "end of DATA",
};

function diagnosticOf({ reply, stage }: Row): string {
  const command = COMMAND[stage];
  return command === undefined
    ? `host mx.example.org[192.0.2.1] refused to talk to me: ${reply}`
    : `${reply} (in reply to ${command} command)`;
}

async function reported(row: Row): Promise<string> {
  const raw = Buffer.from(
    [
      "From: MAILER-DAEMON@mx.example.net",
      "Subject: Undelivered Mail Returned to Sender",
      'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
      "",
      "--b",
      "Content-Type: text/plain",
      "",
      "This is the mail system.",
      "--b",
      "Content-Type: message/delivery-status",
      "",
      "Reporting-MTA: dns; mx.example.net",
      "",
      "Final-Recipient: rfc822; bob@example.org",
      "Action: failed",
      `Diagnostic-Code: smtp; ${diagnosticOf(row)}`,
      "--b--",
      "",
    ].join("\r\n"),
  );
  const found = readBounce(await parseMail(raw), raw)?.recipients[0];
  return `${found?.outcome} ${found?.category}`;
}

test("the table has more than 800 replies of more than 150 kinds of servers", () => {
  expect(ROWS.length).toBeGreaterThan(800);
  expect(new Set(ROWS.map(({ source }) => source)).size).toBeGreaterThan(150);
  expect(ROWS.filter(({ expected }) => !/^(?:hard|soft|failed|deferred) [\w-]+$/.test(expected))).toEqual([]);
});

describe("a reply to our own command means what the table says", () => {
  test.each(ROWS.map((row): [string, Row] => [`${row.source}: ${row.reply}`, row]))("%s", (_, row) => {
    const { outcome, category } = classifyReply(refusalOf(row));
    expect(`${outcome} ${category}`).toBe(row.expected);
  });
});

test("the same reply in a DSN means the same, and a temporary failure is a soft bounce or clears the recipient", async () => {
  for (const row of ROWS) {
    const { source, reply, expected } = row;
    const means = await reported(row);
    if (!expected.startsWith("deferred"))
      expect({ source, reply, means }).toEqual({ source, reply, means: expected });
    else
      expect({ source, reply, means }).toEqual({
        source,
        reply,
        means: expect.stringMatching(
          /^(?:failed (?:rate|reputation|policy|authentication|greylist)|soft (?!rate|reputation|policy|authentication|greylist)[\w-]+)$/,
        ),
      });
  }
});
