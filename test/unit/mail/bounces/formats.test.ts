import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readFeedback } from "../../../../src/mail/bounces/arf.ts";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { noticeRecipients } from "../../../../src/mail/bounces/notice-text.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";

interface Sample {
  name: string;
  /** Recipient ("-" for none), outcome and category of each, separated by "; "; "" if the message is not a bounce. */
  expected: string;
  raw: Buffer;
}

/** Messages one after another, each after a line `=== name | expected`. */
function samplesIn(file: string): Sample[] {
  const text = readFileSync(join(import.meta.dir, "../../../fixtures", file), "utf8");
  return text
    .split(/^=== /m)
    .slice(1)
    .map((block) => {
      const end = block.indexOf("\n");
      const [name = "", expected = ""] = block.slice(0, end).split(" | ");
      return { name, expected, raw: Buffer.from(block.slice(end + 1).replaceAll("\n", "\r\n"), "utf8") };
    });
}

const NOTICES = [...samplesIn("notices.txt"), ...samplesIn("wrapped-notices.txt")];
const OTHERS = samplesIn("no-notices.txt");

test("the tables have more than a hundred notices in words and more than ninety other messages", () => {
  expect(NOTICES.length).toBeGreaterThan(100);
  expect(OTHERS.length).toBeGreaterThan(90);
  expect(
    NOTICES.filter(
      ({ expected }) => !/^(?:\S+ (?:hard|soft|failed|deferred) [\w-]+(?:; |$))+$/.test(expected),
    ),
  ).toEqual([]);
});

describe("a notice in words is read", () => {
  test.each(NOTICES.map((sample): [string, Sample] => [sample.name, sample]))(
    "%s",
    async (_, { raw, expected }) => {
      const found = readBounce(await parseMail(raw), raw)?.recipients ?? [];
      const told = found.map(
        ({ recipient, outcome, category }) => `${recipient ?? "-"} ${outcome} ${category}`,
      );
      expect(told).toEqual(expected.split("; "));
    },
  );
});

describe("a message that is not a bounce is not read as one", () => {
  test.each(OTHERS.map((sample): [string, Sample] => [sample.name, sample]))("%s", async (_, { raw }) => {
    const mail = await parseMail(raw);
    expect({ bounce: readBounce(mail, raw), feedback: readFeedback(mail) }).toEqual({
      bounce: null,
      feedback: null,
    });
  });
});

test("an address is searched in the first 500 characters of a line, and the whole line is kept", () => {
  const recipient = "bob@example.org";
  const line = (length: number) => `${"-".repeat(length - recipient.length - 1)} ${recipient}`;
  const found = noticeRecipients(`${line(500)}（未知）`, new Set());
  expect(found).toMatchObject([{ address: recipient, reason: expect.stringContaining("（未知）") }]);
  expect(noticeRecipients(line(500 + recipient.length), new Set())).toEqual([]);
});
