import { describe, expect, test } from "bun:test";
import PostalMime from "postal-mime";
import { sizedMail } from "../../src/mail/reading/parse.ts";
import { MIN_PLAIN_OCTETS, plainBody } from "../../src/mail/reading/plain-body.ts";
import { storedText } from "../../src/mail/stored-text.ts";

const mail = (fields: readonly string[], body: string): Buffer =>
  Buffer.from(["Subject: x", ...fields, "", body].join("\r\n"), "latin1");

const BODY = "One line.\r\n\r\n  Another\twith spaces.  \r\n.\r\n--\r\n-- b\r\nFrom: within\r\nlast\r\n";

const READ: readonly [string, readonly string[], string][] = [
  ["no fields of MIME", [], BODY],
  ["no last line end", [], BODY.trimEnd()],
  ["text", ["Content-Type: text/plain"], BODY],
  ["a charset", ["Content-Type: text/plain; charset=utf-8"], BODY],
  ["a charset in quotes, a fold, other case", ['Content-Type: Text/Plain;\r\n\tcharset="US-ASCII"'], BODY],
  ["an encoding that changes nothing", ["Content-Transfer-Encoding: 7bit"], BODY],
  ["html", ["Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: 8bit"], `<p>${BODY}</p>`],
  ["a field that says nothing of the body", ["Content-Language: en"], BODY],
  ["controls", [], `a\0b\x1b[31mc\x7f\r\n${BODY}`],
  ["empty lines alone", [], "\r\n\r\n\r\n"],
];

const LEFT: readonly [string, readonly string[], string][] = [
  ["a multipart", ['Content-Type: multipart/mixed; boundary="b"'], BODY],
  ["another text", ["Content-Type: text/calendar"], BODY],
  ["flowed text", ["Content-Type: text/plain; format=flowed"], BODY],
  ["a charset that writes in ASCII", ["Content-Type: text/plain; charset=iso-2022-jp"], BODY],
  ["quoted-printable", ["Content-Transfer-Encoding: quoted-printable"], BODY],
  ["base64", ["Content-Transfer-Encoding: base64"], "QUJD\r\n"],
  ["an attachment", ["Content-Disposition: attachment"], BODY],
  ["two types", ["Content-Type: text/plain", "Content-Type: text/html"], BODY],
  ["octets beyond ASCII", [], `caf\xe9\r\n${BODY}`],
  ["a bare LF", [], `a\nb\r\n${BODY}`],
  ["a bare CR", [], `a\rb\r\n${BODY}`],
  ["a CR too many", [], `a\r\r\n${BODY}`],
  ["a CR at the end", [], `${BODY}a\r`],
  ["no body", [], ""],
];

describe("a body that needs no decoding is what the MIME reader finds", () => {
  test.each(READ)("%s", async (_, fields, body) => {
    const raw = mail(fields, body);
    const found = plainBody(raw, 0);
    const email = await PostalMime.parse(raw);
    const shown = (text: string | undefined) => (text === undefined ? null : storedText(text));
    expect([shown(found?.text), shown(found?.html)]).toEqual([shown(email.text), shown(email.html)]);
    expect(found?.attachments).toEqual([]);
    expect(email.attachments).toEqual([]);
  });
});

describe("any other mail is left to the MIME reader", () => {
  test.each(LEFT)("%s", (_, fields, body) => {
    expect(plainBody(mail(fields, body), 0)).toBeNull();
  });

  test("a small one, to the octet", () => {
    const [head, line] = [mail([], ""), "x".repeat(98)];
    const large = Buffer.concat([head, Buffer.from(`${line}\r\n`.repeat(MIN_PLAIN_OCTETS / 100 + 1))]);
    expect(plainBody(large.subarray(0, MIN_PLAIN_OCTETS - 1))).toBeNull();
    expect(plainBody(large.subarray(0, MIN_PLAIN_OCTETS))).not.toBeNull();
  });
});

test("a large text is read whole", async () => {
  const body = `${"line of text ".repeat(6)}\r\n`.repeat(20_000);
  const { ok, text, html, attachments, preview } = await sizedMail(mail(["From: a@b.example"], body));
  expect([ok, html, attachments]).toEqual([true, null, []]);
  expect(text).toBe(body.replaceAll("\r\n", "\n"));
  expect(preview).toStartWith("line of text line of text");
});
