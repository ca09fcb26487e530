import { describe, expect, test } from "bun:test";
import { joinedWords } from "../../../../src/mail/decoding/encoded-words.ts";
import { MAX_ADDRESS_FIELD_CHARS, parseMail } from "../../../../src/mail/reading/parse.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

/** Lines as latin1 octets with CRLF between them. */
function bytes(...lines: string[]): Buffer {
  return Buffer.from(lines.join("\r\n"), "latin1");
}

function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

describe("words of base64 that divide a character", () => {
  const octets = Buffer.from("我们的会议纪要");
  const word = (from: number, to?: number): string =>
    `=?utf-8?B?${octets.subarray(from, to).toString("base64")}?=`;
  const words = [word(0, 4), word(4, 11), word(11)];

  test("words of base64 that divide a character are decoded as one, in a subject, an author's name and a file's", async () => {
    const { subject, from, attachments } = await parseMail(
      bytes(
        `Subject: Re: ${words.join("\r\n ")} =?iso-8859-1?B?/A==?=`,
        `From: ${words.join(" ")} <a@x.test>`,
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "Content-Type: application/pdf",
        `Content-Disposition: attachment;\r\n filename="${words.join("\r\n ")}"`,
        "",
        "x",
        "--b",
        `Content-Type: application/pdf; name="${words.join(" ")}"`,
        "",
        "x",
        "--b--",
        "",
      ),
    );
    expect({ subject, name: from?.name, files: attachments.map(({ filename }) => filename) }).toEqual({
      subject: "Re: 我们的会议纪要ü",
      name: "我们的会议纪要",
      files: ["我们的会议纪要", "我们的会议纪要"],
    });
  });

  test.each([
    ["Japanese, each from and to ASCII", ["GyRCRnxLXBsoQg==", "GyRCOGwbKEI="], "iso-2022-jp", "日本語"],
    ["Japanese, that goes on in the next word", ["GyRCRnxL", "XDhsGyhC"], "iso-2022-jp", "日本語"],
  ])(
    "words of base64 that divide a character are decoded separately in a charset that resets its state in each: %s",
    async (_name, texts, charset, subject) => {
      const field = `Subject: ${texts.map((text) => `=?${charset}?B?${text}?=`).join("\r\n ")}`;
      expect((await parseMail(bytes(field, "", "x"))).subject).toBe(subject);
    },
  );

  test.each([
    "=?utf-8?B?YQ==?= ",
    "=?a?q?x",
    "=?a?q??",
    "=?a?B?",
    "=?utf-8?B?YQ==?=  ",
    "=?",
    "A",
    "=?a?b?A?=\t",
  ])("words of base64 that divide a character are found in linear time in %j repeated", (piece) => {
    const value = `=?utf-8?B?${piece.repeat(MAX_ADDRESS_FIELD_CHARS)}`.slice(0, MAX_ADDRESS_FIELD_CHARS);
    const started = cpuMs();
    joinedWords(value);
    expect(cpuMs() - started).toBeLessThan(500);
  });
});

test.each([
  ["question marks as they are", "=?utf-8?Q?Really??= =?utf-8?q?_Gr=C3=BC?!?=", "Really? Grü?!"],
  ["an empty charset", "=?unknown-8bit?Q?Gr=C3=BC?= =?us-ascii?B?w58=?=", "Grüß"],
  ["an empty charset, and not UTF-8", "=?unknown-8bit?Q?Gr=FC?=", "Grü"],
])("encoded words with %s are read", async (_name, value, subject) => {
  expect((await parseMail(bytes(`Subject: ${value}`, "", "x"))).subject).toBe(subject);
});

test.each([
  ["octets without a charset", 'attachment; filename="f\xfcr.pdf"', "für.pdf"],
  ["octets of UTF-8", `attachment; filename="${latin1("für ✓.pdf")}"`, "für ✓.pdf"],
  ["a way to another folder", 'attachment; filename="../../etc/passwd"', ".._.._etc_passwd"],
  ["a folder of Windows", "attachment; filename*=utf-8''C%3A%5Ca.pdf", "C:_a.pdf"],
  ["the folder above", 'attachment; filename=".."', "attachment"],
])("a file name of %s is %j", async (_, field, filename) => {
  const within = [`Content-Disposition: ${field}`, "Content-Type: application/pdf"];
  const alone = await parseMail(bytes(...within, "", "x"));
  const part = await parseMail(
    bytes("Content-Type: multipart/mixed; boundary=b", "", "--b", ...within, "", "x", "--b--"),
  );
  expect([...alone.attachments, ...part.attachments].map((file) => file.filename)).toEqual([
    filename,
    filename,
  ]);
});
