import { expect, test } from "bun:test";
import { isFooter } from "../../../../src/mail/text/footers.ts";
import { replyText } from "../../../../src/mail/text/reply-text.ts";

const lines = (count: number, line = "line") => `${line}\n`.repeat(count);
const introduction = (chars: number) => {
  const [date, author] = ["On Tue, Nov 14, 2023 at 10:13 PM ", " <ben@example.org> wrote:"];
  return `${date}${"B".repeat(chars - date.length - author.length)}${author}`;
};

test.each<[what: string, most: number, below: (count: number) => string]>([
  [
    "lines between From: and the rest of a quoted header",
    2,
    (count) => `From: Ann <a@x.test>\n${lines(count)}Subject: q\nTo: Bob\n\nq`,
  ],
  [
    "lines between a ruled title and a quoted header",
    3,
    (count) => `----- Xyz -----\n${lines(count)}From: Ann <a@x.test>\nSubject: q\n\nq`,
  ],
  ["lines of a signature below two hyphens", 10, (count) => `--\n${lines(count)}`],
  ["lines of a list's footer below a rule", 5, (count) => `_____\n${lines(count - 1)}a@b.test\n`],
  ["characters of an introduction", 300, (count) => `${introduction(count)}\n> q`],
  [
    "empty lines between an introduction and its quote",
    3,
    (count) => `Ann <ann@example.com> 1:\n${lines(count, "")}> q`,
  ],
])("the new part ends above the quote with a limited number of %s: %d", (_what, most, below) => {
  const reply = (count: number) => replyText(`Yes.\nmore\n\n${below(count)}`);
  expect(reply(most)).toBe("Yes.\nmore");
  expect(reply(most + 1)).not.toBe("Yes.\nmore");
});

test("a ruled title above a quoted header ends the new part, unless it has a number like an order's", () => {
  const titled = (title: string) => `Yes.\n\n----- ${title} -----\nFrom: Ann <a@x.test>\nSubject: q\n\nq`;
  expect(replyText(titled("Xyz"))).toBe("Yes.");
  expect(replyText(titled("Xyz 482"))).toBe(titled("Xyz 482"));
});

test("an introduction that is broken over three lines is left out whole", () => {
  const broken =
    "On Tue, Nov 14, 2023 at 10:13 PM Ben\nExample of Sales and of Purchases in Leeds\n<ben@example.org> wrote:";
  expect(replyText(`Yes.\n\n${broken}\n> q`)).toBe("Yes.");
});

test("a signature below two hyphens and a space may have any number of lines", () => {
  expect(replyText(`Yes.\nmore\n-- \n${lines(30)}`)).toBe("Yes.\nmore");
});

const padded = (start: string, chars: number) => start.padEnd(chars, " 4G");
const excuse = `. x${"so ".repeat(13)}typos${" so".repeat(8)}`;
test.each<[line: string, is: boolean]>([
  [padded("Sent from my iPhone", 90), true],
  [padded("Sent from my iPhone", 91), false],
  [`Sent from my iPhone${excuse}${" so".repeat(2)}`, true],
  [`Sent from my iPhone${excuse}${" so".repeat(3)}`, false],
  [padded("Sent from my iPhone", 89) + excuse, true],
  [`${padded("Sent from my iPhone", 89)}${excuse}x`, false],
  ["Get Outlook for iOS", true],
  ["Outlook für Android beziehen", true],
  ["Get Outlook working again", false],
  ["[Sent from my iPhone]", true],
  ["-- Sent from my iPhone", true],
  ["Sent from my iPhone, sorry for typos", true],
  ["Sent from my iPhone, thanks", false],
  ["Sent from my iPhone. Thanks", false],
])("%j is a line that a device adds: %p", (line, is) => {
  expect(isFooter(line)).toBe(is);
});
