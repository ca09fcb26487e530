import { describe, expect, test } from "bun:test";
import { MAX_DASHED_LINES, MIN_OPAQUE_OCTETS, opaqueParts } from "../../src/mail/reading/opaque-parts.ts";
import { parseMail, partBytes, sizedMail } from "../../src/mail/reading/parse.ts";

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

/** Mails, and how many of their parts are passed over. */
const MAILS: readonly [string, Buffer, number][] = [
  ["one attachment", mail(TEXT + part(FILE, base64(BYTES))), 1],
  [
    "two, the second padded",
    mail(TEXT + part(FILE, base64(BYTES)) + part(FILE, base64(BYTES.subarray(2)))),
    2,
  ],
  ["a small one", mail(TEXT + part(FILE, base64(BYTES.subarray(0, 1000)))), 0],
  [
    "text in base64, which is to be shown",
    mail(
      part(
        ["Content-Type: text/plain", "Content-Transfer-Encoding: base64"],
        base64(Buffer.alloc(90_000, "text ")),
      ),
    ),
    0,
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
    1,
  ],
  ["what is no base64", mail(TEXT + part(FILE, `${base64(BYTES)}\r\n!`)), 0],
  ["base64 in pieces, each padded", mail(TEXT + part(FILE, `QQ==\r\n${base64(BYTES)}`)), 0],
  ["a digit too few", mail(TEXT + part(FILE, `A${base64(BYTES)}`)), 0],
  ["two encodings named", mail(TEXT + part([...FILE, "Content-Transfer-Encoding: 7bit"], base64(BYTES))), 0],
  [
    "an attachment of a message within the mail",
    mail(
      TEXT +
        part(
          ["Content-Type: message/rfc822"],
          `Subject: in\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${part(FILE, base64(BYTES), "c")}--c--`,
        ),
    ),
    0,
  ],
  [
    "an attachment of a multipart within",
    mail(
      part(["Content-Type: multipart/mixed; boundary=c"], `${part(FILE, base64(BYTES), "c")}--c--`) + TEXT,
    ),
    1,
  ],
  [
    "a delimiter that belongs to a multipart closed before, in text",
    mail(
      part(["Content-Type: multipart/mixed; boundary=c"], `${part(FILE, "QQ==", "c")}--c--`) +
        part(["Content-Type: text/plain"], `${part(FILE, base64(BYTES), "c")}`),
    ),
    1,
  ],
  [
    "a mark brought along",
    mail(part(FILE, base64(Buffer.from("opaque part 0"))) + part(FILE, base64(BYTES))),
    1,
  ],
  [
    "what an earlier version took for a mark, and a part that no reader meets",
    Buffer.concat([
      mail(TEXT + part(FILE, base64(Buffer.from("opaque part 0")))),
      Buffer.from(part(FILE, base64(BYTES)), "latin1"),
    ]),
    1,
  ],
  ["no boundary", Buffer.from(`${FILE.join("\r\n")}\r\n\r\n${base64(BYTES)}`), 0],
  ["a mail cut off", mail(TEXT + part(FILE, base64(BYTES))).subarray(0, 100_000), 0],
];

describe("a mail with attachments passed over reads as it does with all of them decoded", () => {
  test.each(MAILS)("%s", async (_, raw, passedOver) => {
    expect(opaqueParts(raw).length).toBe(passedOver);
    const { attachments, ...whole } = await parseMail(raw);
    const sized = await sizedMail(raw);
    expect(sized).toEqual({ ...whole, attachments: attachments.map(({ bytes: _bytes, ...shown }) => shown) });
    for (const [ord, { bytes }] of attachments.entries())
      expect(Buffer.from((await partBytes(raw, ord)) ?? []).equals(bytes)).toBe(true);
    expect(await partBytes(raw, attachments.length)).toBeNull();
  });
});

test("a body of one octet less than the limit is read", () => {
  const body = (octets: number): Buffer => mail(part(FILE, "A".repeat(octets)));
  // The line end before the next delimiter counts, and digits come in fours.
  expect(opaqueParts(body(MIN_OPAQUE_OCTETS)).length).toBe(1);
  expect(opaqueParts(body(MIN_OPAQUE_OCTETS - 4)).length).toBe(0);
});

test("a mail of too many lines like delimiters is read as a whole", () => {
  const lines = (count: number): Buffer =>
    mail(part(FILE, base64(BYTES)) + part(["A: b"], "--\r\n".repeat(count)));
  // Three of its own: two parts and the end.
  expect(opaqueParts(lines(MAX_DASHED_LINES - 3)).length).toBe(1);
  expect(opaqueParts(lines(MAX_DASHED_LINES - 2)).length).toBe(0);
});
