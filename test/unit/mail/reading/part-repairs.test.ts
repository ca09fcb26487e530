import { describe, expect, test } from "bun:test";
import { parseMail, partBytes } from "../../../../src/mail/reading/parse.ts";
import { MAX_PARTS } from "../../../../src/mail/reading/mime-tree.ts";
import { unflowed } from "../../../../src/mail/decoding/flowed.ts";
import { WINDOW_OCTETS } from "../../../../src/mail/reading/part-octets.ts";

/** Lines as latin1 octets with CRLF between them. */
function bytes(...lines: string[]): Buffer {
  return Buffer.from(lines.join("\r\n"), "latin1");
}

function unflow(pieces: readonly string[], deleteSpace: boolean): string {
  return [...unflowed(pieces, deleteSpace)].join("");
}

function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

describe("text without a charset, or with a wrong one", () => {
  test("html in ASCII that claims UTF-16", async () => {
    const page = "<meta charset=utf-16><p>Gr\xfc\xdfe</p>";
    expect((await parseMail(bytes("Content-Type: text/html", "", page))).html).toContain("<p>Grüße</p>");
  });

  test.each([
    ["no Content-Type, UTF-8", "X: y", latin1("Grüße ✓"), "Grüße ✓"],
    ["no Content-Type, not UTF-8", "X: y", "Gr\xfc\xdfe \x80", "Grüße €"],
    [
      "text that claims us-ascii but is not",
      "Content-Type: text/plain; charset=us-ascii",
      "Gr\xfc\xdfe",
      "Grüße",
    ],
    ["no charset", "Content-Type: text/plain", "\x93it\x92s\x94", "“it’s”"],
    ["an unknown charset, UTF-8", "Content-Type: text/plain; charset=x-foo", latin1("abé"), "abé"],
    ["an unknown charset", "Content-Type: text/plain; charset=x-foo", "ab\xe9", "abé"],
    ["a name that only the MIME reader knows", "Content-Type: text/plain; charset=x-gbk", "\xc4\xe3", "你"],
    ["a charset that is named", "Content-Type: text/plain; charset=koi8-r", "\xf0", "П"],
    [
      "a charset that is named, of octets that are UTF-8, too",
      "Content-Type: text/plain; charset=koi8-r",
      "\xd0\xb0",
      "п╟",
    ],
    ["ASCII by its full name", "Content-Type: text/plain; charset=ANSI_X3.4-1968", latin1("Grüße"), "Grüße"],
    ["UTF-8 that is broken", "Content-Type: text/plain; charset=utf-8", `a\xe9b${latin1("ü")}`, "a\ufffdbü"],
    [
      "UTF-8 that has lost a character",
      "Content-Type: text/plain; charset=utf-8",
      latin1("a\ufffdb"),
      "a\ufffdb",
    ],
    ["not UTF-8 at all", "Content-Type: text/plain; charset=utf-8", "Gr\xfc\xdfe", "Grüße"],
    [
      "UTF-8 that is called Latin",
      "Content-Type: text/plain; charset=iso-8859-1",
      latin1("Grüße ✓"),
      "Grüße ✓",
    ],
    ["Latin", "Content-Type: text/plain; charset=iso-8859-1", `Gr\xfc\xdfe ${latin1("ü")}`, "Grüße Ã¼"],
    ...[1, 2, 3, 4].map((ahead): [string, string, string, string] => {
      const text = "x".repeat(ahead) + "😀✓ü".repeat(WINDOW_OCTETS / 8);
      const type = "Content-Type: text/plain; charset=iso-8859-1";
      return [
        `UTF-8 that is called Latin, of which a piece ends elsewhere (${ahead})`,
        type,
        latin1(text),
        text,
      ];
    }),
  ])("%s", async (_name, field, body, expected) => {
    expect((await parseMail(bytes("Subject: x", field, "", body, ""))).text?.trim()).toBe(expected);
  });

  test("html that names it in its head", async () => {
    const page = '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>\xf0</p>';
    expect((await parseMail(bytes("Content-Type: text/html", "", page))).html).toContain("<p>П</p>");
  });

  test("a wrong charset in a header field", async () => {
    const { subject, from } = await parseMail(
      bytes("From: J\xf6rg <j@x.test>", "Subject: Gr\xfc\xdfe", "", "x"),
    );
    expect({ subject, from }).toEqual({ subject: "Grüße", from: { name: "Jörg", email: "j@x.test" } });
  });
});

describe("flowed text (RFC 3676)", () => {
  test.each([
    ["a line that ends in a space continues", "one \ntwo\nthree", "one two\nthree"],
    ["a quoted line continues without its mark", "> one \n> two\n>> three", "> one two\n>> three"],
    ["an answer below it stays a line of its own", "> one? \nyes \nit is", "> one? \nyes it is"],
    ["quoted deeper is another paragraph", "> one \n>> two", "> one \n>> two"],
    ["a stuffed space is removed", " From here", "From here"],
    ["the line above a signature stays", "one \n-- \nme", "one \n-- \nme"],
    ["empty lines stay", "one\n\n>\n> two\n", "one\n\n>\n> two\n"],
  ])("%s", (_name, text, expected) => {
    expect(unflow([text], false)).toBe(expected);
    // However it is cut into pieces.
    expect(unflow([...text], false)).toBe(expected);
  });

  test("in flowed text with DelSp the space is removed", () => {
    expect(unflow(["日本 \n語"], true)).toBe("日本語");
  });

  test("flowed text (RFC 3676) is decoded when a message is read", async () => {
    const mail = bytes("Content-Type: text/plain; format=flowed", "", "> one? ", "yes", "");
    expect((await parseMail(mail)).text).toBe("> one? \nyes\n");
  });
});

describe("a multipart without a boundary parameter", () => {
  const parts = (boundary: string): string[] => [
    `--${boundary}`,
    "Content-Type: text/plain",
    "",
    "plain",
    `--${boundary}`,
    "Content-Type: text/html",
    "",
    "<p>html</p>",
    `--${boundary}--`,
    "",
  ];
  test.each([
    ["no boundary", "multipart/alternative", parts("--=_Part")],
    ["another one", 'multipart/alternative; boundary="abc"', ["prologue", ...parts("xyz")]],
  ])("%s: the boundary is found in the body", async (_name, type, body) => {
    const mail = await parseMail(bytes("Subject: x", `Content-Type: ${type}`, "", ...body));
    expect(mail).toMatchObject({ unread: null, text: "plain\n", html: "<p>html</p>\n", subject: "x" });
  });

  test.each([
    ["no boundary", "multipart/mixed", "Just text."],
    ["one that never comes", "multipart/mixed; boundary=foo", "Just text."],
    ["one that only ends parts", "multipart/mixed; boundary=end", "Just text.\n--end--"],
    [
      "another one with a character of latin1",
      "multipart/mixed; boundary=foo",
      "--\u00fc\nContent-Type: text/plain\n\nx",
    ],
  ])("a multipart without a boundary parameter or parts is text (%s)", async (_name, type, body) => {
    const lines = Buffer.from(`Content-Type: ${type}\n\n${body}\n`, "latin1");
    expect((await parseMail(lines)).text).toBe(`${body}\n`);
  });

  test("a multipart without a boundary parameter is text if the empty line below its header is missing", async () => {
    expect((await parseMail(bytes("Content-Type: multipart/mixed", "Just text.", ""))).text).toBe(
      "Just text.\n",
    );
  });

  test("a multipart without a boundary parameter without parts has no text", async () => {
    const mail = await parseMail(bytes("Content-Type: multipart/mixed; boundary=b", "", "--b--", ""));
    expect(mail).toMatchObject({ unread: null, text: null, html: null, attachments: [] });
  });

  test.each([MAX_PARTS, MAX_PARTS + 1])(
    "a multipart without a boundary parameter has at most that many parts: %d",
    async (count) => {
      const body = Array.from({ length: count }, () => [
        "--b",
        "Content-Type: application/x-y",
        "",
        "z",
      ]).flat();
      const { attachments, text } = await parseMail(bytes("Content-Type: multipart/mixed", "", ...body));
      expect(attachments.length).toBe(count > MAX_PARTS ? 0 : count);
      expect(text === null).toBe(count <= MAX_PARTS);
    },
  );
});

describe("parts that are files", () => {
  const mixed = (...parts: string[][]): Buffer =>
    bytes(
      "Content-Type: multipart/mixed; boundary=b",
      "",
      ...parts.flatMap((part) => ["--b", ...part]),
      "--b--",
      "",
    );
  const calendar = "BEGIN:VCALENDAR\r\nSUMMARY:T\xc3\xbc\r\nEND:VCALENDAR\r\n";

  test("a named text after the first part is a file, whatever its disposition", async () => {
    const named = ["Content-Type: text/plain; name=a.txt", "Content-Disposition: inline", "", "notes"];
    const mail = mixed(["Content-Type: text/plain", "", "main"], named);
    const { text, attachments } = await parseMail(mail);
    expect(text).toBe("main\n");
    expect(attachments).toMatchObject([{ filename: "a.txt", contentType: "text/plain", size: 5 }]);
    expect(Buffer.from((await partBytes(mail, 0)) ?? []).toString()).toBe("notes");
  });

  test.each([
    ["the first part", mixed(["Content-Type: text/plain; name=body.txt", "", "main"])],
    [
      "one that is an alternative to another",
      bytes(
        "Content-Type: multipart/alternative; boundary=b",
        "",
        "--b",
        "Content-Type: text/plain",
        "",
        "main",
        "--b",
        "Content-Type: text/html; name=body.html",
        "",
        "<p>main</p>",
        "--b--",
        "",
      ),
    ],
  ])("a named text is not a file if it is %s", async (_name, mail) => {
    expect(await parseMail(mail)).toMatchObject({ text: "main\n", attachments: [] });
  });

  test.each(["Content-Type: text", "Content-Type: ; charset=utf-8"])("%j is plain text", async (field) => {
    expect(await parseMail(bytes(field, "", "old mail", ""))).toMatchObject({
      text: "old mail\n",
      attachments: [],
    });
  });

  test.each([
    "Content-Type: text / html",
    "Content-Type: text/html, charset=utf-8",
    "Content-Type: Text/HTML text/plain; charset=utf-8",
  ])("%j is html", async (field) => {
    expect(await parseMail(bytes(field, "", "<p>old mail</p>", ""))).toMatchObject({
      html: "<p>old mail</p>\n",
      attachments: [],
    });
  });

  test.each([
    ["<a@b>", "a@b"],
    ["(c) <a@b> (d)", "a@b"],
    ["<a b>", "a b"],
    ["a@b", "a@b"],
    ["<a", "a"],
    [`<${"i".repeat(255)}>`, "i".repeat(255)],
    [`<${"i".repeat(300)}>`, "i".repeat(255)],
  ])("a Content-ID of %j is %j", async (value, contentId) => {
    const mail = mixed(["", "main"], ["Content-Type: image/png", `Content-ID: ${value}`, "", "x"]);
    expect((await parseMail(mail)).attachments).toMatchObject([{ contentId }]);
  });

  test("a file of a malformed type is still a file", async () => {
    const mail = mixed(["", "main"], ["Content-Type: pdf; name=a.pdf", "", "%PDF"]);
    expect((await parseMail(mail)).attachments).toMatchObject([
      { filename: "a.pdf", contentType: "pdf", size: 4 },
    ]);
  });

  test.each([
    ["base64", Buffer.from(calendar, "latin1").toString("base64")],
    ["8bit", calendar],
  ])("a calendar in %s keeps its bytes and gets a name", async (encoding, body) => {
    const part = [
      "Content-Type: text/calendar; method=REQUEST",
      `Content-Transfer-Encoding: ${encoding}`,
      "",
      body,
    ];
    const mail = mixed(["Content-Type: text/plain", "", "main"], part);
    const [attachment] = (await parseMail(mail)).attachments;
    expect(attachment).toMatchObject({ filename: "invite.ics", contentType: "text/calendar" });
    expect(Buffer.from(attachment?.bytes ?? []).toString("latin1")).toBe(calendar);
  });

  test("a message that is one file ends with its last line end", async () => {
    const { attachments } = await parseMail(bytes("Content-Type: text/calendar", "", calendar));
    expect(Buffer.from(attachments[0]?.bytes ?? []).toString("latin1")).toBe(calendar);
  });
});
