import { expect, test } from "bun:test";
import { compose } from "../../../../src/mail/composing/compose.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { isSimple, simpleTexts } from "../../../../src/mail/submitted/simple-texts.ts";

const TEXTS = [
  "Hi\n",
  "Hi",
  "",
  "Grüße, 你好 🎉\n",
  "a\r\nb\rc\n\n",
  "\x01\x7f controls \t\n",
  "a = b; =3D =\n.\n..\n",
  `${"long ".repeat(500)}\n`,
  " \n",
];
const HTML = '<p>Hi <a href="https://example.com/?a=1&b=ü">x</a></p>\n';

function composed(text: string | null, html: string | null): Buffer {
  return compose({
    from: { email: "a@b.example" },
    to: [{ email: "c@d.example" }],
    subject: "x",
    text,
    html,
    messageId: "<x@b.example>",
    date: 0,
  }).raw;
}

function lines(...all: string[]): Buffer {
  return Buffer.from(`${all.join("\r\n")}\r\n`);
}

const UTF8 = "Content-Type: text/plain; charset=utf-8";
const SIMPLE = [
  ...TEXTS.flatMap((text) => [composed(text, null), composed(text, HTML)]),
  composed(null, HTML),
  lines("From: a@b.example", UTF8, "", "grün"),
  lines(
    "From: a@b.example",
    UTF8,
    "Content-Transfer-Encoding: base64",
    "",
    Buffer.from("grün\n").toString("base64"),
  ),
  lines(
    'Content-Type: TEXT/HTML; charset="UTF-8"',
    "Content-Transfer-Encoding: Quoted-Printable",
    "",
    "<p>=C3=BC=",
    "</p>",
  ),
  lines(
    "Content-Type: multipart/alternative; boundary=b",
    "",
    "--b",
    UTF8,
    "",
    "a",
    "",
    "--b",
    "Content-Type: text/html; charset=us-ascii",
    "",
    "<p>",
    "--b--",
  ),
];

test("the texts of a simple message are those that the full parser finds", async () => {
  for (const raw of SIMPLE) {
    const found = simpleTexts(raw);
    if (found === null) continue;
    const { text, html } = await parseMail(raw);
    expect(found).toEqual({ text, html });
  }
  expect(SIMPLE.filter((raw) => simpleTexts(raw) !== null).length).toBeGreaterThan(SIMPLE.length / 2);
});

test("a message that counts as simple has a text and no file, for the full parser, too", async () => {
  const notUtf8 = Buffer.from(`${UTF8}\r\n\r\n\xff\r\n`, "latin1");
  const all = [...SIMPLE, notUtf8, lines(UTF8, 'Content-Disposition: inline; filename="a.txt"', "", "a")];
  const simple = all.filter((raw) => isSimple(raw));
  for (const raw of simple) {
    const { text, html, attachments } = await parseMail(raw);
    expect({ hasText: text !== null || html !== null, attachments }).toEqual({
      hasText: true,
      attachments: [],
    });
  }
  expect(simple.length).toBeGreaterThan(all.length / 2);
});

test.each([
  ["with a file", lines(UTF8, "Content-Disposition: attachment", "", "a")],
  ["in another charset", lines("Content-Type: text/plain; charset=iso-8859-1", "", "a")],
  ["without a charset", lines("From: a@b.example", "", "a")],
  ["with flowed lines", lines(`${UTF8}; format=flowed`, "", "a ", "b")],
  ["whose octets are not UTF-8", Buffer.from(`${UTF8}\r\n\r\n\xff\r\n`, "latin1")],
  [
    "with other alternatives",
    lines(
      "Content-Type: multipart/alternative; boundary=b",
      "",
      "--b",
      "Content-Type: text/calendar",
      "",
      "x",
      "--b--",
    ),
  ],
  [
    "with a mixed body",
    lines("Content-Type: multipart/mixed; boundary=b", "", "--b", UTF8, "", "x", "--b--"),
  ],
  ["without anything", lines("")],
])("a message %s is left to the full parser", (_, raw) => {
  expect(simpleTexts(raw)).toBeNull();
});
