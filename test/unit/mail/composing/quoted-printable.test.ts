import { describe, expect, test } from "bun:test";
import { encode, wrap } from "nodemailer/lib/qp";
import { quotedPrintable } from "../../../../src/mail/composing/quoted-printable.ts";

/** The text that a reader decodes (RFC 2045 §6.7). */
function decoded(text: string): string {
  const octets = text
    .replace(/=\r\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(octets, "latin1").toString("utf8");
}

const ROWS: [name: string, text: string][] = [
  ["nothing", ""],
  ["short lines", "one\r\ntwo\r\n\r\nfour\r\n"],
  ["equals signs", `a=b==c=20=\r\n${"=".repeat(80)}\r\n`],
  ["space at the end of lines", "a \r\nb\t\r\n c \t \r\n\t\r\n \r\n"],
  ["words beyond a line", `${"a few words, ".repeat(20)}\r\nshort\r\n`],
  ["a word beyond a line", `${"x".repeat(200)}\r\nshort\r\n`],
  ["beyond ASCII", `Grüße\r\n${"こんにちは ".repeat(20)}\r\n${"🎉".repeat(60)}\r\n`],
  ["controls", "a\u0007b\u007f\r\n"],
  ["lines that begin with From", "From here\r\nand From there\r\nFrom\r\n"],
  ["From behind a soft line end", `${"w ".repeat(36)}From ${"w ".repeat(40)}\r\n`],
  ...Array.from({ length: 8 }, (_, more): [string, string] => [
    `a line of ${68 + more} characters`,
    `${"a b".repeat(30).slice(0, 67 + more)}=\r\n${"y".repeat(68 + more)}\r\n`,
  ]),
];

describe("quoted-printable", () => {
  test.each(ROWS)("encoding in pieces of %s equals the library's encoding of the whole", (_name, text) => {
    expect(quotedPrintable(text)).toBe(wrap(encode(text), 73).replace(/^From /gm, "=46rom "));
  });

  test.each([
    ...ROWS,
    ["a last line without its end", `short\r\n${"a b".repeat(40)}`],
    ["a last line that ends in space", "a\r\nb "],
  ])("pieces of %s read back, in lines within the limit", (_name, text) => {
    const encodedText = quotedPrintable(text);
    expect(decoded(encodedText)).toBe(text);
    const lines = encodedText.split("\r\n");
    expect(lines.filter((line) => line.length > 76)).toEqual([]);
    expect(lines.filter((line) => /[ \t]$|^From |[^\t\x20-\x7e]/.test(line))).toEqual([]);
  });
});
