import { expect, test } from "bun:test";
import MailComposer from "nodemailer/lib/mail-composer";
import { writeTree } from "../../../../src/mail/composing/mime-tree.ts";
import { type TextEntry, textEntry } from "../../../../src/mail/composing/text-entry.ts";
import { writeTexts } from "../../../../src/mail/composing/text-mail.ts";
import { chanceOf } from "../../../support/chance.ts";

const BOUNDARY = "=_0123456789abcdef01234567";
const AT = Date.UTC(2024, 1, 29, 12, 30, 5);
const BEFORE = "From: ann@example.com\r\nSubject: Hello\r\n";
const AFTER = "X-Campaign: spring\r\n";

/** Bodies that decide the encoding, the lines and the order of the fields. */
const PIECES = [
  "word ",
  "123 ",
  ".",
  "=",
  " ",
  "\t",
  "\n",
  "\r\n",
  "\r",
  "\nFrom here",
  BOUNDARY,
  "é",
  "ß",
  "名前",
  "🎉",
  "\ud800",
  "\u2028",
  "\u0085",
  "\u0007",
  "\u007f",
  "a".repeat(80),
  "1".repeat(100),
  "-".repeat(30),
  "x".repeat(700),
];

function ours(text: TextEntry | undefined, html: TextEntry | undefined): string | null {
  const own = `Message-ID: <m1@example.com>\r\nDate: ${new Date(AT).toUTCString().replace("GMT", "+0000")}\r\n`;
  const raw = writeTexts({ text, html }, { before: BEFORE, own, after: AFTER }, BOUNDARY);
  return raw === null ? null : raw.toString("latin1");
}

function composers(text: TextEntry | undefined, html: TextEntry | undefined): string {
  const tree = new MailComposer({
    baseBoundary: BOUNDARY,
    headers: [
      { key: "Message-ID", value: { prepared: true, value: "<m1@example.com>" } },
      { key: "Date", value: new Date(AT) },
    ],
    text,
    html,
  }).compile();
  return writeTree(tree, { before: BEFORE, after: AFTER }).toString("latin1");
}

test("texts are written to the octet as the composer's tree would be", () => {
  const { below } = chanceOf(7);
  const made = (): string => {
    const some = Array.from({ length: 1 + below(4) }, () => PIECES[below(PIECES.length)] ?? "");
    return Array.from({ length: below(30) }, () => some[below(some.length)] ?? "").join("");
  };
  const seen = new Set<string>();
  for (let round = 0; round < 1500; round++) {
    const [text, html] = [made(), made()].map((content) => textEntry(content, BOUNDARY));
    if (text === undefined && html === undefined) continue;
    const raw = ours(text, html);
    expect(raw).toBe(composers(text, html));
    for (const [encoding] of raw?.matchAll(/(?<=Transfer-Encoding: )\S+/g) ?? []) seen.add(encoding);
  }
  expect([...seen].sort()).toEqual(["7bit", "base64", "quoted-printable"]);
});

test.each([
  ["a\u0080b", "quoted-printable"],
  ["a\u0080", "base64"],
  ["Az\u0080", "quoted-printable"],
  ["@[`{\u0080", "base64"],
  ["aZ\u0080\u0080", "base64"],
])("%j has as many letters as %s takes", (content, encoding) => {
  const entry = textEntry(content, BOUNDARY);
  expect(ours(entry, undefined)).toContain(`Content-Transfer-Encoding: ${encoding}`);
  expect(ours(entry, undefined)).toBe(composers(entry, undefined));
});

test("a text that the composer judges by its length is left to it", () => {
  const short = { content: "a\r\n".repeat(40_000) };
  expect(ours(short, undefined)).toBe(composers(short, undefined));
  expect(ours({ content: "a\r\n".repeat(45_000) }, undefined)).toBeNull();
});

test("a message without text is left to the composer", () => {
  expect(ours(undefined, undefined)).toBeNull();
});
