import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compose } from "../../../../src/mail/composing/compose.ts";
import {
  headerBlock,
  MAX_HEADER_VALUE_CHARS,
  MAX_MESSAGE_ID_CHARS,
  MAX_REFERENCES,
} from "../../../../src/mail/reading/header-block.ts";
import { MAX_NESTING_DEPTH, MAX_PARTS } from "../../../../src/mail/reading/mime-tree.ts";
import { MAX_LINES, MAX_MAILBOXES, mailboxes, parseMail } from "../../../../src/mail/reading/parse.ts";
import { PREVIEW_CHARS, previewOf } from "../../../../src/mail/text/preview.ts";
import {
  countFields,
  findHeaderEnd,
  MAX_HEADER_FIELDS,
  MAX_HEADER_OCTETS,
  rawFields,
} from "../../../../src/mail/reading/raw-headers.ts";
import { storedLine, storedText } from "../../../../src/mail/text/stored-text.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

function bytes(...lines: string[]): Buffer {
  return Buffer.from(lines.join("\r\n"), "latin1");
}

describe("a received message", () => {
  test("a received message is read into the values it was made of", async () => {
    const { raw } = compose({
      from: { email: "ann@example.com", name: "Änn" },
      to: [{ email: "bob@example.org", name: "Bob, B." }, { email: "eve@example.org" }],
      cc: [{ email: "c@example.net" }],
      replyTo: [{ email: "r@example.com" }],
      subject: "Grüße 🎉",
      text: "Hallo\nWelt\n",
      html: '<p>Hallo <img src="cid:logo@x"></p>',
      headers: { "X-One": "1" },
      extraHeaders: [
        ["In-Reply-To", "<b@x.example>"],
        ["References", "<a@x.example> <b@x.example>"],
      ],
      attachments: [
        {
          filename: "Übersicht.pdf",
          contentType: "application/pdf",
          bytes: Buffer.from("%PDF"),
          disposition: "attachment",
        },
        {
          filename: "logo.png",
          contentType: "image/png",
          bytes: Buffer.from("PNG"),
          disposition: "inline",
          contentId: "logo@x",
        },
      ],
      messageId: "<m1@example.com>",
      date: 1_700_000_000_000,
    });
    const mail = await parseMail(raw);
    expect(mail).toMatchObject({
      unread: null,
      from: { email: "ann@example.com", name: "Änn" },
      to: [{ email: "bob@example.org", name: "Bob, B." }, { email: "eve@example.org" }],
      cc: [{ email: "c@example.net" }],
      replyTo: [{ email: "r@example.com" }],
      subject: "Grüße 🎉",
      messageId: "<m1@example.com>",
      inReplyTo: "<b@x.example>",
      references: ["<a@x.example>", "<b@x.example>"],
      preview: "Hallo Welt",
      autoSubmitted: null,
    });
    expect(mail.text?.trim()).toBe("Hallo\nWelt");
    expect(mail.fields.find(({ name }) => name === "X-One")?.value).toBe("1");
    const parts = mail.attachments.map(({ bytes: content, ...rest }) => ({
      ...rest,
      content: Buffer.from(content).toString(),
    }));
    expect(parts).toContainEqual({
      filename: "Übersicht.pdf",
      contentType: "application/pdf",
      size: 4,
      contentId: null,
      disposition: "attachment",
      content: "%PDF",
    });
    expect(parts).toContainEqual({
      filename: "logo.png",
      contentType: "image/png",
      size: 3,
      contentId: "logo@x",
      disposition: "inline",
      content: "PNG",
    });
  });

  test("a received message keeps a nested message as one attachment", async () => {
    const mail = await parseMail(
      bytes(
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "",
        "outer",
        "--b",
        "Content-Type: message/rfc822",
        "",
        "Subject: in",
        "",
        "inner",
        "--b--",
        "",
      ),
    );
    expect(mail.text?.trim()).toBe("outer");
    expect(mail.attachments.map(({ filename, contentType }) => [filename, contentType])).toEqual([
      ["message.eml", "message/rfc822"],
    ]);
  });

  test.each([
    ["7bit", "a\r\nb", "a\r\nb"],
    ["7bit", "a\r\nb\r\n", "a\r\nb\r\n"],
    ["8bit", "\xff\r\n\r\n", "\xff\r\n\r\n"],
    ["binary", "", ""],
    ["7Bit (x)", "a", "a"],
    ["quoted-printable", "a=\r\nb=0A=41", "ab\nA"],
    ["quoted-printable", "a=0D=0A", "a\r\n"],
    ["quoted-printable", "a= \t\r\nb=\t\r\nc= \r\n", "abc"],
    ["quoted-printable", `a=${" ".repeat(76)}\r\nb=${" ".repeat(77)}\r\nc`, `ab=${" ".repeat(77)}\r\nc`],
    ["quoted-printable", "a= b= =41=  =", "a= b= A=  "],
    ["quoted-printable", "a=0A=", "a\n"],
    ["x-quoted-printable", "a=41", "aA"],
    ["x-uuencode", "begin 644 a\r\n#86)C\r\nend", "begin 644 a\r\n#86)C\r\nend"],
    ["quoted-printable", "a=0A==\r\n", "a\n="],
    ["base64", "YQo=\r\n", "a\n"],
    ["base64", "YQo=\r\n\r\nThe footer of a list\r\n", "a\n"],
    ["base64", "YQo=\r\n_____\r\nThe footer of a list\r\n", "a\n"],
    ["base64", "YWJj\r\n\r\n-- \r\nThe footer of a list\r\n", "abc"],
    ["base64", "YWJj\r\n\r\n\r\n\r\nZGVm\r\n", "abcdef"],
    ["base64", "YWI\r\n \r\n__\r\nThe footer of a list\r\n", "ab"],
    ["base64", "\r\n\r\n!\r\nYWJj\r\n\r\nZGVm\r\nZw==\r\naA==\r\n", "abcdefgh"],
  ])(
    "a received message has attachments with their original bytes: %s %j",
    async (encoding, body, content) => {
      for (const type of ["text/csv", "message/rfc822", "application/x"]) {
        const { attachments } = await parseMail(
          bytes(
            "Content-Type: multipart/mixed; boundary=b",
            "",
            "--b",
            `Content-Type: ${type}`,
            "Content-Disposition: attachment; filename=a",
            `Content-Transfer-Encoding: ${encoding}`,
            "",
            body,
            "--b--",
            "",
          ),
        );
        expect(attachments.map(({ bytes: found }) => Buffer.from(found).toString("latin1"))).toEqual([
          content,
        ]);
      }
    },
  );

  test.each([
    ["next to a text", "multipart/mixed", 'application/ms-tnef; name="winmail.dat"'],
    ["next to a text, without a name", "multipart/mixed", "application/ms-tnef"],
    ["as another form of the text", "multipart/alternative", "application/vnd.ms-tnef"],
  ])(
    "a received message keeps a file that Outlook packs, whole and under its usual name: %s",
    async (_where, whole, type) => {
      const packed = Buffer.from("789f3e220100000d0a000d0aff", "hex");
      const { text, attachments } = await parseMail(
        bytes(
          `Content-Type: ${whole}; boundary=b`,
          "",
          "--b",
          "Content-Type: text/plain",
          "",
          "hello",
          "--b",
          `Content-Type: ${type}`,
          "Content-Transfer-Encoding: base64",
          "",
          packed.toString("base64"),
          "--b--",
          "",
        ),
      );
      expect(text?.trim()).toBe("hello");
      expect(attachments.map(({ filename, bytes: found }) => [filename, Buffer.from(found)])).toEqual([
        ["winmail.dat", packed],
      ]);
    },
  );

  test("a received message has its header text in UTF-8 and on one line", async () => {
    const mail = await parseMail(Buffer.from("From: Jürgen <j@exämple.org>\r\nSubject: Grü\r\n ße\r\n\r\nx"));
    expect(mail).toMatchObject({
      from: { email: "j@xn--exmple-cua.org", name: "Jürgen" },
      subject: "Grü ße",
    });
  });

  test("a received message has a preview of its text, or else of its html's text, of at most 200 characters", () => {
    expect(previewOf(" a\n\n b ", "<p>c</p>")).toBe("a b");
    expect(
      previewOf(
        "  ",
        "<style>p{}</style><p>c &amp; <a href='https://x.example'>d</a></p><script>e()</script>",
      ),
    ).toBe("c & d");
    expect(previewOf(null, null)).toBe("");
    expect(previewOf("x".repeat(PREVIEW_CHARS + 1), null)).toHaveLength(PREVIEW_CHARS);
    // Rows of spaces and of invisible characters take the place of text.
    const rows = " a\n".repeat(PREVIEW_CHARS).padStart(20 * PREVIEW_CHARS - 1, "b");
    expect(previewOf(`b${" ".repeat(3 * PREVIEW_CHARS)}${rows}`, null)).toBe(
      `b ${"b".repeat(PREVIEW_CHARS - 2)}`,
    );
    expect(previewOf(`b ${"\u200b ".repeat(PREVIEW_CHARS)}${rows}`, null)).toBe(
      `b ${"b".repeat(PREVIEW_CHARS - 2)}`,
    );
  });
});

describe("no value of a message breaks its storage", () => {
  const UNSTORABLE =
    /[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
  test.each([
    ["a\0b\x1b[31mc\x85d\r\ne\rf\tg", "ab[31mcd\ne\nf\tg"],
    ["\ud800x\udc00🎉", "\ufffdx\ufffd🎉"],
  ])("%j is stored as %j", (text, expected) => {
    expect(storedText(text)).toBe(expected);
  });

  test("a cut line never splits a character", () => {
    expect(storedLine("a🎉", 2)).toBe("a\ufffd");
    expect(storedLine(" a\r\n\tb ", 10)).toBe("a b");
  });

  test("control characters and wrong bytes anywhere do not break storage", async () => {
    const mail = await parseMail(
      bytes(
        'From: "a\0\x1b" <x\0y@example.com>',
        "Subject: =?utf-8?q?a=00=1B=C2=85b?=",
        "Message-ID: <a\0b@c>",
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "Content-Type: text/html",
        "",
        "a\0\x07",
        "--b",
        'Content-Type: "a\0b"/x',
        'Content-Disposition: attachment; filename="a\0\x1b=?utf-8?q?=00?="',
        "Content-ID: <a\0b>",
        "",
        "x",
        "--b--",
      ),
    );
    const { attachments, ...rest } = mail;
    const texts = JSON.stringify([rest, attachments.map(({ bytes: _, ...values }) => values)]);
    expect(
      JSON.parse(texts, (_key, value) =>
        typeof value === "string" && UNSTORABLE.test(value) ? expect.unreachable(value) : value,
      ),
    ).toBeTruthy();
  });
});

describe("garbage never throws an error", () => {
  const cases: [string, Buffer][] = [
    ["nothing", Buffer.alloc(0)],
    ["one NUL", Buffer.alloc(1)],
    ["only line ends", Buffer.from("\r\n\n\r\r\n")],
    ["only a header", Buffer.from("From: a@b.example")],
    ["no header", Buffer.from("hello")],
    ["all octets", Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
    [
      "an unclosed multipart",
      bytes(
        "Content-Type: multipart/mixed; boundary=x",
        "",
        "--x",
        "Content-Type: multipart/alternative; boundary=x",
        "",
        "--x",
      ),
    ],
    [
      "an unknown charset and encoding",
      bytes("Content-Type: text/plain; charset=nope", "Content-Transfer-Encoding: x-what", "", "a\xff"),
    ],
    ["broken base64", bytes("Content-Type: text/plain", "Content-Transfer-Encoding: base64", "", "!!!=a")],
    ["broken encoded words", bytes("Subject: =?utf-8?b?/////?= =?nope?q?x?= =?", "", "")],
    ["a field name with spaces and controls", bytes("A B: c", "\x01: d", ": e", "F : g", "", "")],
  ];
  test.each(cases)("%s", async (_name, raw) => {
    const mail = await parseMail(raw);
    expect(mail.attachments).toBeArray();
    expect(mail.references).toBeArray();
  });

  const folder = join(import.meta.dir, "../../../../../shared/corpora");
  test.skipIf(!existsSync(folder))(
    "the corpora of other parsers (skipped if the folder shared/corpora is absent)",
    async () => {
      const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
        /\.(?:eml|msg|txt)$/.test(name),
      );
      let withText = 0;
      for (const file of files) {
        const mail = await parseMail(readFileSync(join(folder, file)));
        if (mail.text !== null || mail.html !== null) withText++;
      }
      expect(withText).toBeGreaterThan(files.length / 2);
    },
  );
});

describe("limits", () => {
  const nested = (depth: number) =>
    Buffer.from(
      Array.from(
        { length: depth },
        (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\r\n\r\n--b${i}\r\n`,
      )
        .concat("\r\nx")
        .join(""),
    );
  const parts = (count: number) =>
    Buffer.from(
      `From: a@b.example\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n${"--b\r\n\r\nx\r\n".repeat(count)}`,
    );

  /** The names and texts of a message's files. */
  const filesIn = ({ attachments }: Awaited<ReturnType<typeof parseMail>>) =>
    attachments.map(({ filename, bytes }) => [filename, Buffer.from(bytes).toString()]);

  test("multiparts nested past the limit are one file, after what could be read", async () => {
    expect(filesIn(await parseMail(nested(MAX_NESTING_DEPTH)))).toEqual([]);
    const beyond = await parseMail(nested(MAX_NESTING_DEPTH + 1));
    expect(beyond.unread).toBe("nested_too_deep");
    expect(filesIn(beyond)).toEqual([["unread-parts.txt", `--b${MAX_NESTING_DEPTH}\r\n\r\nx\r\n`]]);
  });

  test("parts past the limit of all headers are one file, after those that could be read", async () => {
    const last = (octets: number) =>
      Buffer.from(
        `From: a@b.example\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n\r\nx\r\n--b\r\n${"X: é\r\n".repeat(octets / 5)}\r\ny\r\n`,
      );
    const [most, root] = [MAX_HEADER_OCTETS, 'Content-Type: multipart/mixed; boundary="b"'.length];
    const whole = await parseMail(last(most - root - ((most - root) % 5)));
    expect(whole).toMatchObject({ unread: null, text: "x\n\ny\n" });
    const beyond = await parseMail(last(most));
    expect(beyond).toMatchObject({ unread: "part_headers_too_long", text: "x\n" });
    expect(filesIn(beyond)).toMatchObject([
      ["unread-parts.txt", expect.stringMatching(/^--b\r\n(?:X: é\r\n)+\r\ny\r\n$/)],
    ]);
  });

  test("parts past the limit are one file, after those that could be read", async () => {
    expect((await parseMail(parts(MAX_PARTS))).unread).toBeNull();
    const beyond = await parseMail(parts(MAX_PARTS + 1));
    expect(beyond).toMatchObject({ unread: "too_many_parts", from: { email: "a@b.example" } });
    expect(beyond.text?.match(/x/g)).toHaveLength(MAX_PARTS);
    expect(filesIn(beyond)).toEqual([["unread-parts.txt", "--b\r\n\r\nx\r\n"]]);
  });

  test.each([
    ["as it is", "boundary=b", "--b"],
    ["in sections (RFC 2231 §3)", "boundary*0=ab; boundary*1=cd", "--abcd"],
    ["percent-encoded (RFC 2231 §4)", "boundary*=utf-8''%41%42", "--AB"],
    ["with an escape", 'boundary="a\\bc"', "--abc"],
    ["of two words", "boundary=a b", "--a b"],
    ["with a space at its end, which is lost on the way", 'boundary="ab "', "--ab"],
    ["with a space at its end, which is kept", 'boundary="ab "', "--ab "],
    ["of more octets than one may have", `boundary="${"A".repeat(199)} B"`, `--${"A".repeat(199)} B`],
  ])("parts whose boundary is written %s", async (_, field, delimiter) => {
    const of = (count: number) =>
      bytes(
        `Content-Type: multipart/mixed; ${field}`,
        "",
        ...Array.from({ length: count }, () => [delimiter, "Content-Type: a/b", "", "x"]).flat(),
        `${delimiter}--`,
        "",
      );
    expect((await parseMail(of(MAX_PARTS))).attachments.length).toBe(MAX_PARTS);
    const beyond = await parseMail(of(MAX_PARTS + 1));
    expect([beyond.unread, beyond.attachments.length]).toEqual(["too_many_parts", MAX_PARTS + 1]);
    expect(beyond.attachments.at(-1)?.filename).toBe("unread-parts.txt");
  });

  test.each([
    ["comments", "-- sql comment"],
    ["those of another boundary", "--c"],
    ["delimiters of a nested message", "--b2"],
  ])("lines that only look like delimiters do not start parts: %s", async (_, line) => {
    const { unread, text } = await parseMail(
      bytes(
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "Content-Type: text/plain; charset=utf-8; boundary=b2",
        "",
        ...Array.from({ length: MAX_PARTS * 2 }, () => line),
        "--b--",
        "",
      ),
    );
    expect([unread, text?.length]).toEqual([null, (line.length + 1) * MAX_PARTS * 2]);
  });

  test("characters of a Message-ID", () => {
    const named = (characters: number) => `<${"a".repeat(characters - 6)}@b.c>`;
    const found = (id: string) => headerBlock(bytes(`Message-ID: ${id}`, "", "")).messageId;
    const longest = named(MAX_MESSAGE_ID_CHARS);
    expect([found(longest), found(named(MAX_MESSAGE_ID_CHARS + 1))]).toEqual([longest, null]);
  });

  test("a message with too many lines is not read", async () => {
    expect((await parseMail(Buffer.from(`\n\n${"x\n".repeat(MAX_LINES)}`))).unread).toBe("too_many_lines");
  });

  test("if the header is longer than the limit, no body is read", async () => {
    const header = (octets: number) =>
      Buffer.from(`From: a@b.example\r\nX: ${"a".repeat(octets - 24)}\r\n\r\nbody`);
    expect(await parseMail(header(MAX_HEADER_OCTETS - 2))).toMatchObject({ unread: null, text: "body\n" });
    expect(await parseMail(header(MAX_HEADER_OCTETS + 1))).toMatchObject({
      unread: "header_too_long",
      from: { email: "a@b.example" },
      text: null,
    });
  });

  test("fields that the MIME reader gets: those of the structure, the first of each", async () => {
    const mail = await parseMail(
      bytes(
        `To: ${"a:".repeat(500_000)}`,
        "Content-Type: text/html",
        "Content-Type: text/plain",
        "",
        "<p>x</p>",
      ),
    );
    expect(mail).toMatchObject({ unread: null, html: "<p>x</p>\n", text: null });
  });

  test("fields are counted in any letter case, and only in the header", () => {
    const raw = bytes(
      "Received: a",
      "RECEIVED: b",
      "X: c",
      " received: d",
      "receivedx: e",
      "",
      "Received: f",
    );
    expect(countFields(raw, "received")).toBe(2);
  });

  test("header fields past the limit are dropped", () => {
    expect(rawFields(Buffer.from(`${"a: b\n".repeat(MAX_HEADER_FIELDS + 1)}\n`))).toHaveLength(
      MAX_HEADER_FIELDS,
    );
  });

  test("mailboxes past the limit are dropped", () => {
    expect(mailboxes("a@b.example,".repeat(MAX_MAILBOXES + 1))).toHaveLength(MAX_MAILBOXES);
  });

  test("of too many references the first and the newest are kept", () => {
    const ids = Array.from({ length: MAX_REFERENCES + 1 }, (_, i) => `<${i}@x>`);
    const { references } = headerBlock(bytes(`References: ${ids.join("\r\n ")}`, "", ""));
    expect(references).toHaveLength(MAX_REFERENCES);
    expect([references[0], references[1], references.at(-1)]).toEqual([
      "<0@x>",
      "<2@x>",
      `<${MAX_REFERENCES}@x>`,
    ]);
  });
});

describe("the end of a header", () => {
  test.each([
    ["\nbody", 0, 1],
    ["\r\nbody", 0, 2],
    ["\rA: b\n\nbody", 6, 7],
    ["A: b\n\nbody", 5, 6],
    ["A: b\r\n\r\nbody", 6, 8],
    ["A: b\n\r\nbody", 5, 7],
    ["A: b\r\n\nbody", 6, 7],
    ["A: b\r\n\rC: d\r\n", 13, 13],
    ["A: b\n", 5, 5],
    ["", 0, 0],
  ])("the header of %j ends at %i, and its body begins at %i", (text, header, body) => {
    expect(findHeaderEnd(Buffer.from(text))).toEqual({ header, body });
  });
});

describe("a header block", () => {
  test("a header block gives the first id of a long References field and as many of the newest as fit", () => {
    const ids = Array.from({ length: 60 }, (_, n) => `<${n}${"x".repeat(500)}@far.test>`);
    const { fields } = headerBlock(bytes(`References: ${ids.join("\r\n ")}`, "", ""));
    const shown = fields[0]?.value.split(" ") ?? [];
    const room = MAX_HEADER_VALUE_CHARS - (fields[0]?.value.length ?? 0);
    expect(shown).toEqual([ids[0] ?? "", ...ids.slice(1 - shown.length)]);
    expect(room).toBeWithin(0, (ids.at(-1)?.length ?? 0) + 1);
  });

  test("a header block gives the facts that threading and loop protection need, with CRLF or LF", () => {
    for (const end of ["\r\n", "\n"]) {
      const block = headerBlock(
        Buffer.from(
          [
            "Received: a",
            "Received: b",
            "Auto-Submitted: Auto-Replied; x=y",
            "message-id: <a@b>",
            "In-Reply-To: (x) <c@d>",
            "References: <e@f>",
            "\t<c@d>",
            "Subject: =?utf-8?q?=C3=BC?=",
            "",
            "References: <no@no>",
            "",
          ].join(end),
        ),
      );
      expect(block).toMatchObject({
        messageId: "<a@b>",
        inReplyTo: "<c@d>",
        references: ["<e@f>", "<c@d>"],
        autoSubmitted: "auto-replied",
        subject: "ü",
      });
    }
  });

  test.each([
    ["<a@b>", "<a@b>"],
    ["a@b", "<a@b>"],
    ["  <a b@c> <d@e>", "<d@e>"],
    ["< a@b\t>", "<a@b>"],
    ["", null],
    ["junk", null],
    ["@b", null],
    ["a@", null],
    ["a@@b", "<a@@b>"],
    ["a@b c", null],
    [`<${"x".repeat(998)}>`, null],
  ])("a Message-ID %j is %j", (value, expected) => {
    expect(headerBlock(bytes(`Message-ID: ${value}`, "", "")).messageId).toBe(expected);
  });

  test("finding ids takes linear time", () => {
    const value = `${"@".repeat(60_000)} x`;
    const started = cpuMs();
    headerBlock(bytes(`Message-ID: ${value}`, `In-Reply-To: ${value}`, `References: ${value}`, "", ""));
    expect(cpuMs() - started).toBeLessThan(1000);
  });
});
