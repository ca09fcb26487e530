import { describe, expect, test } from "bun:test";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { fitForWire } from "../../../../src/mail/submitted/fit-wire.ts";

const LONG = "long ".repeat(300);

function mail(...lines: string[]): Buffer {
  return Buffer.from([...lines, ""].join("\r\n"));
}

/** Parts of a message with a text part, a file and a message, of which each has the line. */
function nested(line: string, encoding = "8bit"): Buffer {
  return mail(
    'Content-Type: multipart/mixed; boundary="b"',
    "",
    "--b",
    "Content-Type: text/html; charset=utf-8",
    `Content-Transfer-Encoding: ${encoding}`,
    "",
    line,
    "--b",
    "Content-Type: application/json",
    "Content-Disposition: attachment; filename=a.json",
    "",
    line,
    "--b",
    "Content-Type: text/plain",
    "",
    "short = as it is",
    "--b--",
  );
}

function isFit(raw: Buffer): boolean {
  const lines = raw.toString("latin1").split("\r\n");
  return lines.every((line) => line.length <= 998 && /^[\t\x20-\x7e]*$/.test(line));
}

describe("a body that servers might change on the way is encoded", () => {
  test.each([
    ["a line over 998 octets", LONG],
    ["octets beyond ASCII", "Grüße = 1 "],
    ["both, at the end", `x\r\nGrüße ${LONG}`],
  ])("%s", async (_, text) => {
    const raw = fitForWire(
      mail("From: a@b.example", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "", text),
    );
    expect(isFit(raw)).toBe(true);
    expect(raw.toString()).toContain("\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n");
    expect((await parseMail(raw)).text?.trimEnd().replaceAll("\r\n", "\n")).toBe(
      text.trimEnd().replaceAll("\r\n", "\n"),
    );
  });

  test.each([
    ["in UTF-8", Buffer.from("Grüße"), "utf-8"],
    ["in an unknown charset", Buffer.from("Grüße", "latin1"), "unknown-8bit"],
    ["in ASCII with a long line", Buffer.from(LONG), "us-ascii"],
  ])("and gets the fields of MIME if it has none: %s", (_, text, charset) => {
    const raw = fitForWire(
      Buffer.concat([mail("From: a@b.example", ""), text, Buffer.from("\r\n")]),
    ).toString();
    expect(raw).toStartWith(
      `From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=${charset}\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n`,
    );
  });

  test("within a multipart: texts in quoted-printable, files in base64, and no other part", async () => {
    const raw = fitForWire(nested(`{"a": "ü${LONG}"}`));
    expect(isFit(raw)).toBe(true);
    expect(raw.toString()).toEndWith("--b\r\nContent-Type: text/plain\r\n\r\nshort = as it is\r\n--b--\r\n");
    const { html, attachments } = await parseMail(raw);
    expect(html).toStartWith(`{"a": "ü${LONG}"}`);
    expect(
      Buffer.from(attachments[0]?.bytes ?? [])
        .toString()
        .trimEnd(),
    ).toBe(`{"a": "ü${LONG}"}`);
  });

  test("even if it is encoded already, in a line too long", () => {
    const text = Buffer.from(LONG.repeat(3)).toString("base64");
    const raw = fitForWire(
      mail("Content-Type: image/png", "Content-Transfer-Encoding: base64", "", text),
    ).toString();
    expect(raw.replaceAll("\r\n", "")).toEndWith(text);
    expect(isFit(Buffer.from(raw))).toBe(true);
  });
});

test.each<[string, Buffer]>([
  ["fits already, with a line of 998 octets", mail("From: ü@b.example", "", "x".repeat(998))],
  [
    "is signed as a whole",
    mail('Content-Type: multipart/signed; boundary="b"', "", "--b", "", `ü${LONG}`, "--b--"),
  ],
  ["is within the message", mail("Content-Type: message/rfc822", "", "Subject: x", "", `ü${LONG}`)],
  ["has an encoding that we do not know", mail("Content-Transfer-Encoding: x-uuencode", "", `ü${LONG}`)],
])("a body that %s stays as it is", (_, raw) => {
  expect(fitForWire(raw)).toEqual(raw);
});
