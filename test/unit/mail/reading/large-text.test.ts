import { describe, expect, test } from "bun:test";
import PostalMime from "postal-mime";
import { systemClock } from "../../../../src/clock.ts";
import { inspectMail } from "../../../../src/flows/mime/inspect.ts";
import { chunkPieces, encodeBody } from "../../../../src/flows/mime/body-encoder.ts";
import { BEGINNING_CHARS, mailText, wholeText } from "../../../../src/mail/reading/mail-text.ts";
import { openMail, parseMail } from "../../../../src/mail/reading/parse.ts";
import { WINDOW_OCTETS } from "../../../../src/mail/reading/part-octets.ts";
import { newPart } from "../../../../src/mail/text/reply-text.ts";
import { storedText } from "../../../../src/mail/text/stored-text.ts";
import { CHUNK_OCTETS, newContent } from "../../../../src/store/contents/content-bytes.ts";
import { bodyBytes } from "../../../../src/store/contents/message-body.ts";

const mail = (fields: readonly string[], body: string): Buffer =>
  Buffer.from(["Subject: x", ...fields, "", body].join("\r\n"), "latin1");
const latin1 = (text: string): string => Buffer.from(text).toString("latin1");

const QP = "Content-Transfer-Encoding: quoted-printable";
const BASE64 = "Content-Transfer-Encoding: base64";
const UTF8 = "Content-Type: text/plain; charset=utf-8";
const BODY = "One line.\r\n\r\n  Another\twith spaces.  \r\n.\r\n--\r\n-- b\r\nFrom: within\r\nlast\r\n";

const BODIES: readonly [string, readonly string[], string][] = [
  ["no fields of MIME", [], BODY],
  ["no last line end", [], BODY.trimEnd()],
  [
    "a charset in quotes, a fold, other letter case",
    ['Content-Type: Text/Plain;\r\n\tcharset="US-ASCII"'],
    BODY,
  ],
  ["html", ["Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: 8bit"], `<p>${BODY}</p>`],
  ["controls", [], `a\0b\x1b[31mc\x7f\r\n${BODY}`],
  ["empty lines alone", [], "\r\n\r\n\r\n"],
  ["bare line ends", [], `a\nb\rc\r\r\nd\r\r`],
  ["CRs at the end", [], `${BODY}a\r\r\r`],
  ["no body", [], ""],
  ["characters of several octets", [UTF8], latin1("ü€日😀\r\n")],
  ["a charset of two octets", ["Content-Type: text/plain; charset=utf-16le"], "a\0b\0\xac\x20\n\0"],
  ["a charset with states", ["Content-Type: text/plain; charset=iso-2022-jp"], '\x1b$B$"\x1b(B x\r\n'],
  ["a charset by another name", ["Content-Type: text/plain; charset=cp932"], "\x82\xa0\r\n"],
  ["another, four octets", ["Content-Type: text/plain; charset=cp936"], "\xc4\xe3\x81\x30\x81\x31\x81\r\n"],
  [
    "another, three octets",
    ["Content-Type: text/plain; charset=cp51932"],
    "\xb0\xa1\x8f\xb0\xa1\x8e\xb1\r\n",
  ],
  ["another, html", ["Content-Type: text/html; charset=x-euckr"], "<p>\xb0\xa1\xff</p>\r\n"],
  ["another, two characters of one", ["Content-Type: text/plain; charset=cp950"], "\xa7\x41\x88\x62\r\n"],
  ["another with states", ["Content-Type: text/plain; charset=iso-2022-jp-2"], '\x1b$B$"$\x1b(B x\r\n'],
  ["an unknown charset", ["Content-Type: text/plain; charset=x-foo"], "\x80\xe9\r\n"],
  ["escapes", [UTF8, QP], "Gr=C3=BC=c3=9fe=\r\n=\r\n on=20\r\n"],
  ["an invalid escape", [UTF8, QP], "a=b==\r\n=4\r\n=4=\r\n=A=41=ZZ==3D=\r\r\nend="],
  ["base64", [UTF8, BASE64], "R3LDvMOf\r\nZQ==\r\n"],
  ["base64 padded within, with junk, cut off", [UTF8, BASE64], "QQ==QUI=!Q U J D=\r\nQ=QUJDRA"],
  ["empty base64", [UTF8, BASE64], "!!\r\n"],
];

describe("a text equals the one that the MIME reader finds", () => {
  /** Octets before it: none, or so many that each position is once the end of a piece. */
  const before = (body: string): number[] => [
    -1,
    ...Array.from({ length: Math.min(body.length, 40) + 2 }, (_, at) => WINDOW_OCTETS - at - 3),
  ];

  test.each(BODIES)("%s", async (_, fields, body) => {
    for (const octets of before(body)) {
      // In base64 they are digits, in a two-octet charset they are characters.
      const raw = mail(
        fields,
        octets < 0 ? body : `${"AAAA".repeat(octets / 4)}${"\r\n".repeat(octets % 4)}${body}`,
      );
      const { text, html } = await PostalMime.parse(raw);
      const found = await parseMail(raw);
      const shown = (said: string | undefined) => (said === undefined ? null : storedText(said));
      expect([found.text === shown(text), found.html === shown(html)]).toEqual([true, true]);
    }
  });
});

describe("a large text", () => {
  test("a large text that is read only up to the limit starts like the whole text", async () => {
    const quoted = "\r\n\r\nOn 1 May 2020 at 10:00, A <a@b.example> wrote:\r\n> old\r\n";
    for (const body of [
      `new${quoted}${BODY.repeat(4000)}`,
      BODY.repeat(4000),
      `${" \r\n".repeat(60_000)}late`,
    ]) {
      for (const html of ["", "\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>page</p>"]) {
        const raw = mail(
          ['Content-Type: multipart/alternative; boundary="b"'],
          `--b\r\n\r\n${body}${html}\r\n--b--`,
        );
        const whole = await parseMail(raw);
        const opened = await openMail(raw);
        expect(opened.text?.whole).toBe(false);
        const beginning = { text: opened.text?.beginning ?? null, html: opened.html?.beginning ?? null };
        const [reply, found] = [newPart(whole), newPart(beginning)];
        expect(found === beginning.text ? whole.text : found).toBe(reply);
        expect(opened.preview).toBe(whole.preview);
      }
    }
  });

  test("a large text is complete up to the characters that are read, and not beyond", () => {
    const said = (count: number) => mailText(() => ["x".repeat(count - 1), "y"]);
    expect(said(BEGINNING_CHARS - 1)?.whole).toBe(true);
    expect(said(BEGINNING_CHARS)?.whole).toBe(false);
  });

  test("a large text is never cut within a line end or a character at the end of a piece", () => {
    const text = "a\r\nb\r\r\n😀\ud83d \udc00\r";
    const found = mailText(() => [..."a\r\nb\r\r\n", "\ud83d", "\ude00", "\ud83d", " ", "\udc00", "\r"]);
    expect(found === null ? null : wholeText(found)).toBe(storedText(text));
  });

  test("a body without content is absent, and one of only control characters is empty", () => {
    expect(mailText(() => ["", ""])).toBeNull();
    expect(mailText(() => ["\0"])).toMatchObject({ beginning: "", whole: true });
  });

  test("a large text in a message that shows parts of both kinds is rendered as the MIME reader does", async () => {
    const printable = Array.from({ length: 95 }, (_, at) => String.fromCharCode(0x20 + at)).join("");
    const parts = [
      `--b\r\nContent-Type: text/plain\r\n\r\n \r\n${`${printable}\t\r\n\r\n`.repeat(2000)} \r\n`,
      "--b\r\nContent-Type: text/html\r\n\r\n<p>page</p>\r\n",
    ];
    const raw = mail(["Content-Type: multipart/mixed; boundary=b"], `${parts.join("")}--b--\r\n`);
    const { text, html } = await PostalMime.parse(raw);
    const found = await parseMail(raw);
    expect([found.text, found.html]).toEqual([storedText(text ?? ""), storedText(html ?? "")]);
  });

  test("a large text that is rendered from html is rendered once, because that takes long", async () => {
    const page = "<p>one &amp; two</p>\r\n".repeat(7000);
    const raw = mail(
      ["Content-Type: multipart/mixed; boundary=b"],
      `--b\r\n\r\nown\r\n--b\r\nContent-Type: text/html\r\n\r\n${page}--b--\r\n`,
    );
    const { text } = await openMail(raw);
    expect(text?.whole).toBe(false);
    const { text: said } = await PostalMime.parse(raw);
    // If it were read again, it would be empty.
    raw.fill(0x20, raw.indexOf("<p>"));
    expect(text === null ? null : wholeText(text)).toBe(storedText(said ?? ""));
  });
});

describe("a body written in chunks equals the body written at once", () => {
  const more = { replyText: 'new "part"', headers: { Subject: "ü" } };
  const bytesOf = (chunks: Parameters<typeof chunkPieces>[0], size: number): Buffer => {
    const pieces = chunkPieces(chunks, size);
    const starts = Array.from({ length: chunks.length }, (_, ord) => ord * CHUNK_OCTETS);
    return Buffer.concat(starts.map((from) => pieces.subarray(from, from + CHUNK_OCTETS)));
  };

  test.each([
    ["ASCII", "a line of text\n"],
    ["two octets", 'ü"\n'],
    ["three octets", "€\\"],
    ["four octets", "😀"],
  ])("%s", (_, unit) => {
    // Wherever a character crosses the end of a chunk.
    for (let shift = 0; shift < 5; shift++) {
      const text = `${"x".repeat(shift)}${unit.repeat(600_000 / unit.length)}`;
      const body = mailText(() => [text]);
      const whole = Buffer.from(bodyBytes({ html: null, text, ...more }));
      const { content, chunks } = encodeBody({ html: null, text: body, ...more });
      expect(content).toMatchObject({ size: whole.length, key: newContent(whole).key, bytes: null });
      expect(bytesOf(chunks ?? [], content.size).equals(whole)).toBe(true);
    }
  });

  test("a body of one chunk is the same content, and one octet more makes chunks", () => {
    const written = (octets: number) => {
      // Its number of octets has six digits.
      const frame = bodyBytes({ html: null, text: "x".repeat(100_000), ...more }).length - 100_000;
      return encodeBody({ html: null, text: mailText(() => ["x".repeat(octets - frame)]), ...more });
    };
    expect(written(CHUNK_OCTETS).chunks).toBeNull();
    expect(written(CHUNK_OCTETS).content.bytes).not.toBeNull();
    expect(written(CHUNK_OCTETS + 1).chunks?.length).toBe(2);
  });

  test("a body written in chunks equals the body written at once is also stored for a message that only has a large header", async () => {
    const fields = Array.from({ length: 40 }, (_, at) => `X-${at}: ${"a".repeat(10_000)}`);
    const deps = { clock: systemClock, host: "mx.example", resolve: async () => [] };
    const { body, largeBody } = (await inspectMail(deps, { raw: mail(fields, "x"), session: null })).contents;
    const kept = bytesOf(largeBody ?? [], body.size);
    expect(kept.length).toBe(body.size);
    expect(newContent(kept).key).toEqual(body.key);
  });

  test("chunks that already have their stored form are passed on unchanged", () => {
    const body = mailText(() => ["a line of text\n".repeat(40_000)]);
    const { content, chunks } = encodeBody({ html: null, text: body, ...more });
    const pieces = chunkPieces(chunks ?? [], content.size);
    expect(content.encoding).toBe("zstd");
    expect(pieces.encoded?.(0, "plain")).toBeNull();
    expect(pieces.encoded?.(0, "zstd")).toBe(chunks?.[0]?.bytes ?? null);
  });
});
