import { describe, expect, test } from "bun:test";
import PostalMime from "postal-mime";
import { openMail, parseMail, partBytes } from "../../../../src/mail/reading/parse.ts";

const BYTES = Buffer.from(Uint8Array.from({ length: 90_001 }, (_, at) => (at * 7 + (at >> 8)) & 255));
const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes).toString("base64").replace(/.{76}/g, "$&\r\n");

const part = (fields: readonly string[], body: string, boundary = "b"): string =>
  `--${boundary}\r\n${fields.join("\r\n")}\r\n\r\n${body}\r\n`;
const FILE = [
  "Content-Type: application/pdf; name=a.pdf",
  "Content-Disposition: attachment; filename=a.pdf",
  "Content-Transfer-Encoding: base64",
];
const TEXT = part(["Content-Type: text/plain"], "Hello");
const mail = (parts: string, boundary = "b"): Buffer =>
  Buffer.from(
    `Subject: x\r\nContent-Type: multipart/mixed; boundary="${boundary}"\r\n\r\n${parts}--${boundary}--\r\n`,
    "latin1",
  );

const MAILS: readonly [string, Buffer][] = [
  ["one attachment", mail(TEXT + part(FILE, base64(BYTES)))],
  ["two, the second padded", mail(TEXT + part(FILE, base64(BYTES)) + part(FILE, base64(BYTES.subarray(2))))],
  ["a small one", mail(TEXT + part(FILE, base64(BYTES.subarray(0, 1000))))],
  [
    "text in base64 that is displayed",
    mail(
      part(
        ["Content-Type: text/plain", "Content-Transfer-Encoding: base64"],
        base64(Buffer.alloc(90_000, "text ")),
      ),
    ),
  ],
  [
    "text in base64 that is attached",
    mail(
      TEXT +
        part(
          [
            "Content-Type: text/plain",
            "Content-Disposition: attachment",
            "Content-Transfer-Encoding: base64",
          ],
          base64(Buffer.alloc(90_000, "text ")),
        ),
    ),
  ],
  ["invalid base64", mail(TEXT + part(FILE, `${base64(BYTES)}\r\n!`))],
  ["base64 in pieces, each padded", mail(TEXT + part(FILE, `QQ==\r\n${base64(BYTES)}`))],
  ["a digit too few", mail(TEXT + part(FILE, `A${base64(BYTES)}`))],
  ["two encodings named", mail(TEXT + part([...FILE, "Content-Transfer-Encoding: 7bit"], base64(BYTES)))],
  [
    "an attachment of a message within the mail",
    mail(
      TEXT +
        part(
          ["Content-Type: message/rfc822"],
          `Subject: in\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${part(FILE, base64(BYTES), "c")}--c--`,
        ),
    ),
  ],
  [
    "an attachment of a multipart within",
    mail(
      part(["Content-Type: multipart/mixed; boundary=c"], `${part(FILE, base64(BYTES), "c")}--c--`) + TEXT,
    ),
  ],
  [
    "a delimiter of a multipart that was closed before, in text",
    mail(
      part(["Content-Type: multipart/mixed; boundary=c"], `${part(FILE, "QQ==", "c")}--c--`) +
        part(["Content-Type: text/plain"], `${part(FILE, base64(BYTES), "c")}`),
    ),
  ],
  [
    "two attachments, one of them small",
    mail(part(FILE, base64(Buffer.from("small part"))) + part(FILE, base64(BYTES))),
  ],
  [
    "a part below the end",
    Buffer.concat([
      mail(TEXT + part(FILE, base64(Buffer.from("small part")))),
      Buffer.from(part(FILE, base64(BYTES)), "latin1"),
    ]),
  ],
  ["no boundary", Buffer.from(`${FILE.join("\r\n")}\r\n\r\n${base64(BYTES)}`)],
  ["a mail cut off", mail(TEXT + part(FILE, base64(BYTES))).subarray(0, 100_000)],
];

describe("large attachments have the bytes that the MIME reader finds", () => {
  test.each(MAILS)("%s", async (_, raw) => {
    const { attachments, text: __, html: ___, ...whole } = await parseMail(raw);
    const found = (await PostalMime.parse(raw, { forceRfc822Attachments: true })).attachments;
    expect(attachments.length).toBe(found.length);
    for (const [ord, { bytes, contentType }] of attachments.entries()) {
      // The MIME reader changes line ends of the content, so these lines are compared with the original.
      const { content = "" } = found[ord] ?? {};
      const expected = typeof content === "string" ? Buffer.from(content) : new Uint8Array(content);
      if (!/^(?:message|text)\//.test(contentType)) expect(Buffer.from(bytes).equals(expected)).toBe(true);
      expect(Buffer.from((await partBytes(raw, ord)) ?? []).equals(bytes)).toBe(true);
    }
    expect(await partBytes(raw, attachments.length)).toBeNull();
    const { text: ____, html: _____, ...opened } = await openMail(raw);
    expect(opened).toEqual({
      ...whole,
      attachments: attachments.map(({ bytes: _bytes, ...shown }) => shown),
    });
  });
});
