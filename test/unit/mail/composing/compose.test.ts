import { describe, expect, test } from "bun:test";
import MailComposer from "nodemailer/lib/mail-composer";
import PostalMime, { decodeWords } from "postal-mime";
import { isReservedHeader } from "../../../../src/core/messages/send-rules.ts";
import { compose, type OutgoingMail } from "../../../../src/mail/composing/compose.ts";
import { wireFault } from "../../../../src/mail/composing/wire.ts";

const BASE: OutgoingMail = {
  from: { email: "ann@example.com", name: "Ann Example" },
  to: [{ email: "bob@example.org" }],
  subject: "Hello",
  text: "Hi Bob\n",
  messageId: "<m1@example.com>",
  date: Date.UTC(2024, 1, 29, 12, 30, 5),
};

function header(raw: Buffer): string {
  return raw.toString("latin1").split("\r\n\r\n", 1)[0] ?? "";
}

const PNG = Buffer.from("89504e470d0a1a0a", "hex");

describe("a composed message reads the same as nodemailer's", () => {
  const attachment = {
    filename: "plan.pdf",
    contentType: "application/pdf",
    bytes: PNG,
    disposition: "attachment",
  } as const;
  const image = {
    filename: "logo.png",
    contentType: "image/png",
    bytes: PNG,
    disposition: "inline",
    contentId: "logo@x",
  } as const;
  const table: [name: string, part: Partial<OutgoingMail>][] = [
    ["plain text", {}],
    ["no body at all", { text: "" }],
    ["html only", { text: null, html: "<p>Hi</p>" }],
    ["text and html", { html: "<p>Hi</p>" }],
    ["text beyond ASCII", { text: "Grüße, naïve café\n\n  indented \t\nend" }],
    ["text in another script", { text: "こんにちは世界。\n".repeat(30), html: "<p>Привет, мир</p>" }],
    ["long lines", { text: `${"word ".repeat(400)}\n${"x".repeat(3000)}` }],
    ["lines that begin with From and a dot", { text: "From here\n.\n..\n--\nFrom there" }],
    ["trailing spaces", { text: "a \nb\t\nc " }],
    ["equals signs and the look of an encoding", { text: "a=20b=\nc=3D" }],
    ["an emoji on every column", { text: "🎉".repeat(200) }],
    [
      "names beyond ASCII",
      {
        from: { email: "a@example.com", name: "Jürgen Müller" },
        to: [{ email: "b@example.org", name: "名前 テスト ".repeat(9).trim() }],
      },
    ],
    ["names with specials", { from: { email: "a@example.com", name: 'Ann "A, B" <x@y> (c); \\o/' } }],
    [
      "several recipients",
      {
        to: Array.from({ length: 20 }, (_, i) => ({ email: `user${i}@example.org`, name: `User ${i}` })),
        cc: [{ email: "c@example.net" }],
      },
    ],
    ["reply-to", { replyTo: [{ email: "r@example.com" }, { email: "s@example.com", name: "S" }] }],
    [
      "a long subject",
      { subject: "The quick brown fox jumps over the lazy dog, again and again. ".repeat(8).trim() },
    ],
    ["a long subject beyond ASCII", { subject: "Straßenüberquerungsgenehmigung ".repeat(8).trim() }],
    ["an attachment", { attachments: [attachment] }],
    [
      "html, an image shown in it, and an attachment",
      { html: '<img src="cid:logo@x">', attachments: [image, attachment] },
    ],
    [
      "an attachment named beyond ASCII",
      { attachments: [{ ...attachment, filename: "Übersicht – 名前 (1).pdf" }] },
    ],
    [
      "an attachment with a long name",
      { attachments: [{ ...attachment, filename: `${"long name ".repeat(15)}.pdf` }] },
    ],
    ["a custom header", { headers: { "X-Campaign": "spring 2024" } }],
  ];
  test.each(table)("%s", async (_name, part) => {
    const mail = { ...BASE, ...part };
    expect(await meaning(compose(mail).raw)).toEqual(await meaning(await byNodemailer(mail)));
  });
});

/** The parts of a message that a reader sees. */
async function meaning(raw: Buffer) {
  const { from, to, cc, replyTo, subject, messageId, date, text, html, attachments, headers } =
    await PostalMime.parse(raw);
  const parts = attachments.map(({ filename, mimeType, disposition, contentId, related, content }) => ({
    filename,
    mimeType,
    disposition: related ? "inline" : disposition,
    contentId,
    content: Buffer.from(content as ArrayBuffer).toString("hex"),
  }));
  const custom = headers.filter(({ key }) => key.startsWith("x-")).map(({ key, value }) => [key, value]);
  const bodies = [text, html].map((body) => (body ?? "").replace(/\r\n/g, "\n").replace(/\n+$/, ""));
  return { from, to, cc, replyTo, subject, messageId, date, bodies, parts, custom };
}

function byNodemailer(mail: OutgoingMail): Promise<Buffer> {
  const mailbox = ({ email, name }: { email: string; name?: string | undefined }) => ({
    address: email,
    name: name ?? "",
  });
  const composer = new MailComposer({
    disableFileAccess: true,
    disableUrlAccess: true,
    from: mailbox(mail.from),
    to: mail.to.map(mailbox),
    cc: (mail.cc ?? []).map(mailbox),
    replyTo: (mail.replyTo ?? []).map(mailbox),
    subject: mail.subject,
    text: mail.text ?? undefined,
    html: mail.html ?? undefined,
    messageId: mail.messageId,
    date: new Date(mail.date),
    headers: mail.headers,
    attachments: (mail.attachments ?? []).map((part) => ({
      filename: part.filename,
      contentType: part.contentType,
      content: Buffer.from(part.bytes),
      contentDisposition: part.disposition,
      cid: part.contentId ?? undefined,
    })),
  });
  return composer.compile().build();
}

describe("the composed bytes", () => {
  test.each([
    [null, "multipart/mixed"],
    [undefined, "multipart/mixed"],
    ["", "multipart/mixed"],
    ["<img src='cid:a@x'>", "multipart/related"],
  ])("an inline image is with an html of %p in a %s", (html, type) => {
    const named = { filename: "a", contentType: "image/png", contentId: "a@x" };
    const attachments = [{ ...named, bytes: PNG, disposition: "inline" as const }];
    const raw = compose({ ...BASE, html, attachments }).raw.toString();
    expect(raw).toContain("Content-ID: <a@x>\r\n");
    expect(raw.match(/multipart\/(?:mixed|related)/g)).toEqual([type]);
  });

  test("a control character in a text is encoded, because some servers refuse it", () => {
    const { raw } = compose({ ...BASE, text: "delete \x7f\n" });
    expect(raw.toString()).toContain("delete =7F\r\n");
  });

  test("a reference too long for a line is left out and the message is composed", () => {
    const long = `<${"i".repeat(1000)}@example.org>`;
    const { raw } = compose({ ...BASE, headers: { References: `<a@example.org> ${long} <b@example.org>` } });
    expect(header(raw).split("\r\n")).toContain("References: <a@example.org> <b@example.org>");
  });

  test("the composed bytes are the same for the same input, so that a retry sends the same message", () => {
    const mail = {
      ...BASE,
      html: "<p>ü</p>",
      attachments: [
        { filename: "a", contentType: "text/plain", bytes: PNG, disposition: "attachment" as const },
      ],
    };
    expect(compose(mail).raw.equals(compose(mail).raw)).toBe(true);
  });

  test("the composed bytes have the fields in the order From, To, Cc, Reply-To, Subject, Message-ID, Date, MIME, own, custom", () => {
    const raw = compose({
      ...BASE,
      cc: [{ email: "c@example.net" }],
      replyTo: [{ email: "r@example.com" }],
      headers: { "X-One": "1" },
      extraHeaders: [["In-Reply-To", "<p@example.com>"]],
    }).raw;
    const names = header(raw)
      .split("\r\n")
      .map((line) => line.split(":", 1)[0]);
    expect(names).toEqual([
      "From",
      "To",
      "Cc",
      "Reply-To",
      "Subject",
      "Message-ID",
      "Date",
      "Content-Transfer-Encoding",
      "MIME-Version",
      "Content-Type",
      "In-Reply-To",
      "X-One",
    ]);
  });

  test("the composed bytes have To, Cc and Reply-To once each, however many addresses they hold (RFC 5322 §3.6)", () => {
    const two = (place: string) => [
      { email: `${place}1@example.org` },
      { email: `${place}2@example.org`, name: "Two, B." },
    ];
    const lines = header(compose({ ...BASE, to: two("t"), cc: two("c"), replyTo: two("r") }).raw).split(
      "\r\n",
    );
    expect(lines.slice(1, 4)).toEqual([
      'To: t1@example.org, "Two, B." <t2@example.org>',
      'Cc: c1@example.org, "Two, B." <c2@example.org>',
      'Reply-To: r1@example.org, "Two, B." <r2@example.org>',
    ]);
    expect(lines.filter((line) => /^(?:To|Cc|Reply-To):/i.test(line))).toHaveLength(3);
  });

  test.each([
    ["CR in text", { text: "a\rb" }],
    ["LF in text", { text: "a\nb\n\rc" }],
    ["NUL in text", { text: "a\0b" }],
    ["lone surrogate in html", { html: "a\ud800b" }],
    ["8-bit in html", { html: "é\r" }],
    ["a line of 100 000 characters", { text: "y".repeat(100_000) }],
    ["a custom value without spaces of 4096 characters", { headers: { "X-Token": "t".repeat(4096) } }],
    ["a custom value of 4094 spaces between two letters", { headers: { "X-A": `a${" ".repeat(4094)}b` } }],
    ["a subject of 996 spaces between two letters", { subject: `a${" ".repeat(996)}b` }],
    [
      "a name without spaces of 2000 characters",
      { from: { email: "a@example.com", name: "n".repeat(2000) } },
    ],
    ["NUL and DEL in a subject", { subject: "a\0b\x7fc" }],
    [
      "8-bit bytes in an attached message",
      {
        attachments: [
          {
            filename: "m.eml",
            contentType: "message/rfc822",
            bytes: Buffer.from("Subject: \xff\0\r\n\r\nx", "latin1"),
            disposition: "attachment" as const,
          },
        ],
      },
    ],
  ])(
    "the composed bytes never have a bare CR or LF, NUL, 8-bit octet or line over 998: %s",
    (_name, part) => {
      expect(wireFault(compose({ ...BASE, ...part }).raw, false)).toBeNull();
    },
  );

  test.each([
    ["a\rb\r\n", "a bare CR"],
    ["a\nb\r\n", "a bare LF"],
    ["\n", "a bare LF"],
    ["a\r\n\r", "a last line without its end"],
    ["a\0\r\n", "a NUL octet"],
    ["\xe9\r\n", "an octet beyond ASCII"],
    [`${"x".repeat(999)}\r\n`, "a line over 998 octets"],
  ])("the composed bytes are refused if they contain %j", (bytes, fault) => {
    expect(wireFault(Buffer.from(bytes, "latin1"), false)).toBe(fault);
  });

  test("the composed bytes may have lines of 998 octets", () => {
    expect(wireFault(Buffer.from(`${"x".repeat(998)}\r\n`), false)).toBeNull();
  });

  test("the composed bytes never name a Bcc recipient", () => {
    const withBcc = { ...BASE, bcc: [{ email: "secret@example.net" }] } as OutgoingMail;
    expect(compose(withBcc).raw.toString()).not.toContain("secret");
  });

  test('the composed bytes say "undisclosed recipients" if To is empty', () => {
    expect(header(compose({ ...BASE, to: [] }).raw)).toContain('To: "undisclosed-recipients":;');
  });
});

describe("header injection", () => {
  const EVIL = "x\r\nBcc: evil@example.net\r\n\r\nbody";
  test.each<[string, Partial<OutgoingMail>]>([
    ["subject", { subject: EVIL }],
    ["name", { from: { email: "a@example.com", name: EVIL } }],
    ["custom value", { headers: { "X-A": EVIL } }],
    ["own value", { extraHeaders: [["List-Unsubscribe", EVIL]] }],
    ["message ids", { extraHeaders: [["References", `<a@b>${EVIL}`]] }],
    ["message id", { messageId: `<a@b>${EVIL}` }],
    [
      "file name",
      { attachments: [{ filename: EVIL, contentType: "text/plain", bytes: PNG, disposition: "attachment" }] },
    ],
    [
      "content type",
      {
        attachments: [
          { filename: "a", contentType: `text/plain${EVIL}`, bytes: PNG, disposition: "attachment" },
        ],
      },
    ],
    [
      "content id",
      {
        html: "x",
        attachments: [
          { filename: "a", contentType: "image/png", contentId: EVIL, bytes: PNG, disposition: "inline" },
        ],
      },
    ],
  ])("header injection is impossible through the %s", (_name, part) => {
    expect(compose({ ...BASE, ...part }).raw.toString("latin1")).not.toMatch(/^Bcc:/im);
  });

  test.each([
    "Bcc",
    "from",
    "Content-Type",
    "MIME-Version",
    "ARC-Seal",
    "Received",
    "DKIM-Signature",
    "Subject",
    "Resent-Bcc",
  ])("a custom field %s is refused", (name) => {
    expect(isReservedHeader(name)).toBe(true);
    expect(() => compose({ ...BASE, headers: { [name]: "x" } })).toThrow();
  });

  test.each(["", "X A", "X:A", "X\r\nA", "Xé", "x".repeat(77)])("a field name %j is refused", (name) => {
    expect(() => compose({ ...BASE, headers: { [name]: "x" } })).toThrow();
  });

  test("a display name that looks like an encoded word reads back unchanged", async () => {
    const from = { email: "a@b.example", name: "=?utf-8?Q?Bank?= (really)" };
    const read = await PostalMime.parse(compose({ ...BASE, from }).raw);
    expect(read.from).toEqual({ address: from.email, name: from.name });
  });

  test("an invalid address is refused", () => {
    expect(() => compose({ ...BASE, to: [{ email: "a@b.example>, <c@d.example" }] })).toThrow();
  });
});

describe("text reads back as it was given", () => {
  test.each([
    "=?utf-8?q?x?=",
    "say =?utf-8?B?eA==?= loud",
    "a  b",
    'quote " and \\',
    "🎉".repeat(60),
    "x".repeat(2000),
    `a${" ".repeat(300)}b`,
  ])("a subject %j reads back", async (subject) => {
    expect((await PostalMime.parse(compose({ ...BASE, subject }).raw)).subject).toBe(subject);
  });

  test.each([
    ["as it is", "From here on\nFrom there\n"],
    ["after a soft line break", `${"word ".repeat(14)}From here é ${"and so on ".repeat(20)}\n`],
    ["at each column", Array.from({ length: 80 }, (_, i) => `x${"é".repeat(i)} From a\n`).join("")],
  ])("a line never begins with From and a space, %s", async (_name, text) => {
    const { raw } = compose({ ...BASE, text });
    expect(raw.toString("latin1")).not.toMatch(/^From /m);
    expect((await PostalMime.parse(raw)).text?.replace(/\r\n/g, "\n")).toBe(text);
  });

  test("encoded lines have at most 76 characters", () => {
    const text = Array.from({ length: 80 }, (_, i) => `${"é".repeat(i)}From F From =${"x".repeat(i)}\n`).join(
      "",
    );
    const body =
      compose({ ...BASE, text })
        .raw.toString("latin1")
        .split("\r\n\r\n")[1] ?? "";
    expect(Math.max(...body.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(76);
  });

  test.each([" ", "\t", " \n", " \n \t\n"])(
    "a text of white space alone %j does not become an empty body",
    (text) => {
      const { raw } = compose({ ...BASE, text });
      const body = raw.subarray(raw.indexOf("\r\n\r\n") + 4).toString();
      expect(body).toMatch(/=20|=09/);
    },
  );

  test("an empty subject still has a field", () => {
    expect(header(compose({ ...BASE, subject: " " }).raw)).toContain("\r\nSubject:\r\n");
  });

  test("a field name keeps its letter case", () => {
    expect(header(compose({ ...BASE, headers: { "x-mAiler-ID": "1" } }).raw)).toContain("x-mAiler-ID: 1");
  });

  test("an overlong name is cut where no reader shows more", () => {
    const name = "n".repeat(501);
    expect(header(compose({ ...BASE, from: { email: "a@example.com", name } }).raw)).toContain(
      `From: ${"n".repeat(500)}\r\n <a@example.com>`,
    );
  });

  const encoded = (text: string) => `=?UTF-8?Q?${text}?=`;
  test.each([
    ["Jürgen Müller <j@example.com>", `${encoded("J=C3=BCrgen_M=C3=BCller")} <j@example.com>`],
    ['"Müller, Jürgen" <j@example.com>', `${encoded("M=C3=BCller=2C_J=C3=BCrgen")} <j@example.com>`],
    ['Zoë <z@a.test>, "A. B" <b@a.test>', `${encoded("Zo=C3=AB")} <z@a.test>, "A. B" <b@a.test>`],
    [
      "<https://a.test/x>; Größe  ändern  jetzt",
      `<https://a.test/x>; ${encoded("Gr=C3=B6=C3=9Fe__=C3=A4ndern")}  jetzt`,
    ],
    ['sagte "süßes" gestern', `sagte ${encoded("=22s=C3=BC=C3=9Fes=22")} gestern`],
    ["=?UTF-8?Q?a?= ü", encoded("=3D=3FUTF-8=3FQ=3Fa=3F=3D_=C3=BC")],
  ])("only words beyond ASCII are encoded in the custom value %j", (value, wire) => {
    const raw = compose({ ...BASE, headers: { "X-A": value } }).raw;
    expect(header(raw).replaceAll("\r\n ", " ")).toContain(`X-A: ${wire}`);
  });

  test.each([
    `ü${" ".repeat(4000)}b`,
    `b${" ".repeat(4000)}ü`,
    `ü ${"b".repeat(4000)} c`,
    `${'"'.repeat(2000)} ü`,
    `"ü" <${"a".repeat(2000)}@${"b".repeat(2000)}>`,
  ])("a long custom value beyond ASCII keeps the line limit and reads back", (value) => {
    const { raw } = compose({ ...BASE, headers: { "X-A": value } });
    expect(wireFault(raw, false)).toBeNull();
    const field = /^X-A: (.*(?:\r\n .*)*)/m.exec(header(raw))?.[1] ?? "";
    expect(decodeWords(field.replaceAll("\r\n", ""))).toBe(value.replace('"ü" <', "ü <"));
  });

  test("a custom value in ASCII stays as given, because it may be structured", () => {
    expect(header(compose({ ...BASE, headers: { "X-Data": '{"a": "b"}' } }).raw)).toContain(
      'X-Data: {"a": "b"}',
    );
  });

  test("a text that contains the boundary cannot end its part", async () => {
    const boundary = /boundary="([^"]+)"/.exec(header(compose({ ...BASE, html: "x" }).raw))?.[1];
    const text = `a\n--${boundary}\n\nfake\n--${boundary}--\n`;
    const parsed = await PostalMime.parse(compose({ ...BASE, text, html: "real" }).raw);
    expect(parsed.text).toBe(`${text}\n`);
    expect(parsed.html?.trim()).toBe("real");
  });

  test("each text part states its own type and encoding, whatever messages came before", () => {
    const told = (text: string, html: string): string[] =>
      [
        ...compose({ ...BASE, text, html })
          .raw.toString("latin1")
          .matchAll(/Content-Type: (\S+); charset=utf-8\r\nContent-Transfer-Encoding: (\S+)\r\n\r\n/g),
      ].map(([, type, encoding]) => `${type} ${encoding}`);
    for (let round = 0; round < 2; round++) {
      expect(told("Hi", "<p>Hi</p>")).toEqual(["text/plain 7bit", "text/html 7bit"]);
      expect(told("Grüße", "名前".repeat(9))).toEqual(["text/plain quoted-printable", "text/html base64"]);
      expect(told("名前".repeat(9), "x".repeat(99))).toEqual([
        "text/plain base64",
        "text/html quoted-printable",
      ]);
    }
  });

  const file = (bytes: Uint8Array) => ({
    filename: "a.bin",
    contentType: "application/octet-stream",
    bytes,
    disposition: "attachment" as const,
  });

  test.each([1, 56, 57, 58, 262_143, 262_144, 262_145, 57 * 1024 * 5, 57 * 1024 * 5 + 1, 57 * 1024 * 6 - 1])(
    "an attachment of %d octets is encoded in lines of base64",
    (size) => {
      const bytes = Buffer.from(Array.from({ length: size }, (_, at) => (at * 7919) >> 3));
      const lines = bytes.toString("base64").replace(/.{76}(?=.)/g, "$&\r\n");
      for (const text of ["Hi", ""]) {
        const { raw } = compose({ ...BASE, text, attachments: [file(bytes)] });
        expect(raw.includes(`\r\n\r\n${lines}\r\n`)).toBe(true);
        expect(wireFault(raw, false)).toBeNull();
      }
    },
  );

  test.each([
    ["text/plain", "Grüße", "text/plain; charset=utf-8"],
    ["TEXT/calendar; method=REQUEST", "SUMMARY:Grüße", "TEXT/calendar; method=REQUEST; charset=utf-8"],
    ["text/csv", "plain", "text/csv"],
    ["text/csv", Buffer.from("Gr\xfc\xdfe", "latin1"), "text/csv"],
    ["text/html; charset=iso-8859-1", "Grüße", "text/html; charset=iso-8859-1"],
    ["application/json", '"Grüße"', "application/json"],
  ])("an attached %s gets a charset if its bytes have one", (contentType, content, told) => {
    const attachments = [{ ...file(Buffer.from(content as string)), contentType }];
    const { raw } = compose({ ...BASE, attachments });
    expect(raw.toString().replace(/\r\n /g, " ")).toContain(`\r\nContent-Type: ${told}; name=a.bin\r\n`);
  });

  test("an attached message stays message/rfc822 if it fits 7bit, or else becomes plain bytes", async () => {
    const eml = (bytes: string) => ({
      filename: "m.eml",
      contentType: "message/rfc822",
      bytes: Buffer.from(bytes, "latin1"),
      disposition: "attachment" as const,
    });
    const of = async (bytes: string) =>
      (
        await PostalMime.parse(compose({ ...BASE, attachments: [eml(bytes)] }).raw, {
          forceRfc822Attachments: true,
        })
      ).attachments[0]?.mimeType;
    expect(await of("Subject: x\n\ny\n")).toBe("message/rfc822");
    expect(await of("Subject: \xe9\r\n\r\ny\r\n")).toBe("application/octet-stream");
  });
});

describe("internationalised addresses", () => {
  test("a domain is written in A-labels and needs no SMTPUTF8", () => {
    const { raw, smtpUtf8 } = compose({ ...BASE, to: [{ email: "bob@exämple.org" }] });
    expect(header(raw)).toContain("To: bob@xn--exmple-cua.org");
    expect(smtpUtf8).toBe(false);
  });

  test("a local part beyond ASCII needs SMTPUTF8", () => {
    const { raw, smtpUtf8 } = compose({ ...BASE, cc: [{ email: "用户@exämple.org" }] });
    expect(raw.toString("utf8")).toContain("Cc: 用户@exämple.org");
    expect(smtpUtf8).toBe(true);
  });
});
