import { describe, expect, test } from "bun:test";
import { type ParsedMail, parseMail } from "../../../../src/mail/reading/parse.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

const HEAD = "From: a@x.test\r\nMIME-Version: 1.0\r\n";

/** Reads a message of these lines; one character an octet. */
async function read(...lines: string[]): Promise<ParsedMail> {
  return parseMail(Buffer.from(HEAD + lines.join("\r\n"), "latin1"));
}

const utf8 = (text: string): string => Buffer.from(text).toString("latin1");
const fileOf = ({ attachments }: ParsedMail): string =>
  Buffer.from(attachments[0]?.bytes ?? []).toString("latin1");

/** Returns a message that has text and a file. */
const withFile = (header: string, body: string): string[] => [
  "Content-Type: multipart/mixed; boundary=b",
  "",
  "--b",
  "Content-Type: text/plain",
  "",
  "see",
  "--b",
  header,
  "",
  body,
  "--b--",
  "",
];
const CSV = 'Content-Type: text/csv; charset=utf-8\r\nContent-Disposition: attachment; filename="a.csv"';

describe("a file is stored as it was sent", () => {
  test.each<[string, string, string, string]>([
    ["quoted-printable with a last line end", "quoted-printable", "a\r\nb=3D\r\n\r\n", "a\r\nb=\r\n\r\n"],
    ["quoted-printable without one", "quoted-printable", "a\r\nb", "a\r\nb"],
    ["an escaped line end, as Unix has it", "quoted-printable", "a=0Ab=0A", "a\nb\n"],
    ["an escaped line end above a hard one", "quoted-printable", "a=0A\r\nb", "a\n\r\nb"],
    ["a soft line end", "quoted-printable", "a=\r\nb\r\nc=", "ab\r\nc"],
    ["an equals sign before a line end that is no soft one", "quoted-printable", "a=4\r\nb", "a=4\r\nb"],
    ["base64 of Unix lines", "base64", Buffer.from("a\nb\n").toString("base64"), "a\nb\n"],
    ["base64 of DOS lines", "base64", Buffer.from("a\r\nb\r\n").toString("base64"), "a\r\nb\r\n"],
    ["7bit", "7bit", "a\r\nb\r\n", "a\r\nb\r\n"],
    ["8bit", "8bit", "\xe4\r\n\xf6", "\xe4\r\n\xf6"],
  ])("in %s", async (_name, encoding, body, content) => {
    const mail = await read(...withFile(`${CSV}\r\nContent-Transfer-Encoding: ${encoding}`, body));
    expect(fileOf(mail)).toBe(content);
    expect(mail.attachments[0]?.size).toBe(content.length);
  });

  test.each<[string, string, string]>([
    ["a charset is not converted", "text/plain; charset=iso-8859-2", "=B1=E6"],
    ["flowed lines are not joined", "text/plain; format=flowed; delsp=yes", "a =\r\n\r\nb"],
    ["a mark of UTF-16 stays", "text/plain; charset=utf-16", "=FE=FF=00a"],
  ])("%s", async (_name, type, body) => {
    const header = `Content-Type: ${type}; name=a.txt\r\nContent-Transfer-Encoding: quoted-printable`;
    const content = body
      .replace("=\r\n", "")
      .replace(/=(\w\w)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
    expect(fileOf(await read(...withFile(header, body)))).toBe(content);
  });

  test("a file of many windows has each line end", async () => {
    const line = "x".repeat(70);
    const lines = Array.from({ length: 5000 }, () => line);
    const header = `${CSV}\r\nContent-Transfer-Encoding: quoted-printable`;
    expect(fileOf(await read(...withFile(header, lines.join("\r\n"))))).toBe(lines.join("\r\n"));
  });

  test("a message that is a file keeps its last line end", async () => {
    const header = `${CSV}\r\nContent-Transfer-Encoding: quoted-printable`;
    expect(fileOf(await read(header, "", "a", "b", ""))).toBe("a\r\nb\r\n");
  });
});

const text = async (...lines: string[]): Promise<string> => ((await read(...lines)).text ?? "").trim();
const nested = (type: string, delimiter: string): string[] => [
  "Content-Type: multipart/mixed; boundary=b",
  "",
  "--b",
  type,
  "",
  `--${delimiter}`,
  "Content-Type: text/plain",
  "",
  "Text",
  `--${delimiter}`,
  "Content-Type: text/html",
  "",
  "<p>Html</p>",
  `--${delimiter}--`,
  "--b",
  "Content-Type: application/pdf; name=a.pdf",
  "",
  "x",
  "--b--",
  "",
];

describe("text below a damaged header is found", () => {
  test.each<[string, string, string]>([
    ["not folded", 'Content-Type: multipart/alternative;\r\nboundary="in"', "in"],
    ["not folded, without its semicolon", "Content-Type: multipart/alternative\r\nboundary=in", "in"],
    ["not folded, with colons", 'Content-Type: multipart/alternative;\r\nBoundary = "in:1"', "in:1"],
    ["below another parameter", "Content-Type: multipart/alternative;\r\n x=y;\r\nboundary=in", "in"],
    ["not named", "Content-Type: multipart/alternative", "in"],
    ["another one", "Content-Type: multipart/alternative; boundary=other", "in"],
    [
      "in a part without an empty line",
      "Content-Type: multipart/alternative;\r\n boundary=in\r\nText above",
      "in",
    ],
  ])("the boundary of a nested multipart is %s", async (_name, type, delimiter) => {
    const mail = await read(...nested(type, delimiter));
    expect([mail.text?.trim(), mail.html?.trim()]).toEqual(["Text", "<p>Html</p>"]);
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(["a.pdf"]);
  });

  test("the boundary of the message is not folded", async () => {
    expect(await text("Content-Type: multipart/mixed;", 'boundary="b"', "", "--b", "", "Text", "--b--")).toBe(
      "Text",
    );
  });

  test("a charset that is not folded counts", async () => {
    expect(await text("Content-Type: text/plain;", "charset=iso-8859-2", "", "\xb1")).toBe("ą");
  });

  test("a nested multipart without any part is text", async () => {
    const lines = ["--b", "Content-Type: multipart/alternative; boundary=c", "", "Text", "--b--", ""];
    expect(await text("Content-Type: multipart/mixed; boundary=b", "", ...lines)).toBe("Text");
  });

  test.each<[string, string[], string]>([
    [
      "at its first line",
      ["Content-Type: text/plain", "Hello,", "it is ready", "", "Bye"],
      "Hello,\nit is ready\n\nBye",
    ],
    ["and no other empty line", ["Subject: x", "Hello,", "it is ready"], "Hello,\nit is ready"],
    [
      "although a line looks like a field",
      ["Subject: x", "Hello,", "Note: closed", "", "Bye"],
      "Hello,\nNote: closed\n\nBye",
    ],
    ["in quoted-printable", ["Content-Transfer-Encoding: quoted-printable", "Gr=C3=BC=C3=9Fe", ""], "Grüße"],
    [
      "in another language",
      ["Subject: x", utf8("Здравствуйте!"), utf8("Заказ готов")],
      "Здравствуйте!\nЗаказ готов",
    ],
  ])("the empty line below the header is missing, %s", async (_name, lines, want) => {
    expect(await text(...lines)).toBe(want);
  });

  test.each<[string, string[], string]>([
    ["below a field", ["Content-Type: text/plain", "Hello,", "Ben"], "Hello,\nBen"],
    ["without any field", ["Hello,", "Ben"], "Hello,\nBen"],
    ["above an empty line", ["Content-Type: text/plain", "Hello,", "", "Ben"], "Hello,\n\nBen"],
    ["above a web address", ["Content-Type: text/plain", "See", "https://x.test/"], "See\nhttps://x.test/"],
  ])("the empty line below a part's header is missing, %s", async (_name, lines, want) => {
    expect(await text("Content-Type: multipart/mixed; boundary=b", "", "--b", ...lines, "--b--", "")).toBe(
      want,
    );
  });

  test("the empty line above the first delimiter is missing", async () => {
    const parts = ["--b", "Content-Type: text/plain", "", "Text", "--b--", ""];
    expect(await text("Content-Type: multipart/mixed; boundary=b", ...parts)).toBe("Text");
    const inner = nested("Content-Type: multipart/alternative; boundary=in", "in");
    const mail = await read(...inner.filter((line, at) => !(line === "" && inner[at + 1] === "--in")));
    expect([mail.text?.trim(), mail.html?.trim()]).toEqual(["Text", "<p>Html</p>"]);
  });

  test("a line that is no field above an author does not begin the text", async () => {
    const mail = await parseMail(Buffer.from("Subject: x\r\nnonsense\r\nFrom: a@x.test\r\n\r\nText\r\n"));
    expect([mail.from?.email, mail.text?.trim()]).toEqual(["a@x.test", "Text"]);
    expect(await text("Subject: x", "", "Text\r\nFrom: here")).toBe("Text\nFrom: here");
  });

  test("a line that is no field above the part's type does not begin the text", async () => {
    const part = ["nonsense", "Content-Type: text/html", "", "<p>Html</p>"];
    const mail = await read("Content-Type: multipart/mixed; boundary=b", "", "--b", ...part, "--b--", "");
    expect(mail.html?.trim()).toBe("<p>Html</p>");
  });

  test.each<[string, string]>([
    ["plain/text; charset=iso-8859-2", "ą"],
    ["text/txt; charset=iso-8859-2", "ą"],
    ["text/plaintext; charset=iso-8859-2", "ą"],
    ["text/plain charset=iso-8859-2", "ą"],
    ['text/plain, charset="iso-8859-2"', "ą"],
  ])("a misspelt type is text: %s", async (type, want) => {
    expect(await text(`Content-Type: ${type}`, "", "\xb1")).toBe(want);
    const part = ["--b", `Content-Type: ${type}`, "", "\xb1", "--b--", ""];
    expect(await text("Content-Type: multipart/mixed; boundary=b", "", ...part)).toBe(want);
  });

  test.each<[string, string, string]>([
    ["text/markdown", "# Hello\r\n*there*", "# Hello\n*there*"],
    ["text/x-markdown; charset=utf-8", utf8("Grüße"), "Grüße"],
    ["text/x-web-markdown", "a", "a"],
    ["text/org", "* a", "* a"],
    ["text/x-unknown", "a", "a"],
    ["text/enriched", "<bold>Hello</bold> there", "Hello there"],
    ["text/enriched; charset=iso-8859-1", "Gr\xfc\xdfe\r\nvon\r\n\r\nAnn", "Grüße von\nAnn"],
    ["text/enriched", "<color><param>red</param>1 << 2</color>", "1 < 2"],
    ["text/enriched", "<nofill>a\r\nb</nofill>", "a\nb"],
    ["text/richtext", "<comment>no</comment>a<nl>b<lt>", "a\nb<"],
  ])("%s is shown as text: %j", async (type, body, want) => {
    expect(await text(`Content-Type: ${type}`, "", body)).toBe(want);
    const part = ["--b", `Content-Type: ${type}`, "", body, "--b--", ""];
    expect(await text("Content-Type: multipart/mixed; boundary=b", "", ...part)).toBe(want);
  });

  test("text of another kind is the plain text of a message that has only html besides", async () => {
    for (const [type, body] of [
      ["text/markdown", "Hello"],
      ["text/enriched", "<bold>Hello</bold>"],
    ]) {
      const parts = [
        "--b",
        `Content-Type: ${type}`,
        "",
        body ?? "",
        "--b",
        "Content-Type: text/html",
        "",
        "<p>Html</p>",
      ];
      const mail = await read("Content-Type: multipart/alternative; boundary=b", "", ...parts, "--b--", "");
      expect([mail.text?.trim(), mail.html?.trim(), mail.attachments]).toEqual(["Hello", "<p>Html</p>", []]);
    }
  });

  test("text of another kind stays a file if it has a name, is data, or repeats the message", async () => {
    for (const type of ["text/markdown; name=a.md", "text/csv", "text/calendar", "text/rfc822-headers"]) {
      const mail = await read(...withFile(`Content-Type: ${type}`, "x"));
      expect([type, mail.text?.trim(), mail.attachments.length]).toEqual([type, "see", 1]);
    }
    const parts = [
      "--b",
      "Content-Type: text/plain",
      "",
      "Text",
      "--b",
      "Content-Type: text/enriched",
      "",
      "E",
      "--b--",
    ];
    expect(await text("Content-Type: multipart/alternative; boundary=b", "", ...parts, "")).toBe("Text");
  });
});

describe("charsets are read as their writers meant them", () => {
  const subject = async (value: string): Promise<string> =>
    (await read(`Subject: ${value}`, "", "x")).subject;
  const cut = (value: string): string => utf8(value).slice(0, -1);

  test.each<[string, string, string]>([
    ["Cyrillic", cut("Ваш счёт за ноябрь"), "Ваш счёт за ноябр\ufffd"],
    ["Japanese", cut("ご注文の確認"), "ご注文の確\ufffd"],
    ["an emoji", cut("Sale 🎉 today 🎉"), "Sale 🎉 today \ufffd"],
    ["one letter in many", cut("Grüße aus Köln, schöne Grüß"), "Grüße aus Köln, schöne Grü\ufffd"],
    ["within the line", `${cut("Счёт")} ${utf8("готов")}`, "Счё\ufffd готов"],
    ["windows-1252, which is no UTF-8", "Gr\xfc\xdfe aus K\xf6ln", "Grüße aus Köln"],
    ["windows-1252 that holds two octets of UTF-8 by chance", "\xdc\xbb Gr\xfc\xdfe", "Ü» Grüße"],
  ])("a subject whose UTF-8 is broken: %s", async (_name, value, want) => {
    expect(await subject(value)).toBe(want);
  });

  test("a file name whose UTF-8 is cut", async () => {
    const name = `Content-Type: application/pdf; name="${cut("Счёт за май")}"`;
    expect((await read(...withFile(name, "x"))).attachments[0]?.filename).toBe("Счёт за ма\ufffd");
    expect(
      (await read(`Content-Disposition: attachment; filename="${cut("請求書")}"`, "", "x")).attachments[0]
        ?.filename,
    ).toBe("請求\ufffd");
  });

  test.each<[string, string, string]>([
    ["Latin", "=?iso-8859-1?Q?Gr\xfc=DFe_aus_K\xf6ln?=", "Grüße aus Köln"],
    ["Polish", "=?iso-8859-2?Q?za\xbf\xf3=B3\xe6?=", "zażółć"],
    ["Cyrillic", "=?windows-1251?q?\xcf\xf0\xe8=E2\xe5\xf2?=", "Привет"],
    ["UTF-8", `=?utf-8?Q?${utf8("Grü")}=C3=9Fe?=`, "Grüße"],
    ["UTF-8 in a word that names Latin", `=?iso-8859-1?Q?${utf8("Grü")}=DFe?=`, "Grüße"],
    ["two words", "=?iso-8859-1?Q?Gr\xfc?= =?iso-8859-1?Q?=DFe?=", "Grüße"],
    ["a word and raw text", "\xfcber =?iso-8859-1?Q?Gr\xfc=DFe?=", "über Grüße"],
  ])("a raw octet in an encoded word: %s", async (_name, value, want) => {
    expect(await subject(value)).toBe(want);
  });

  test.each<[string, string]>([
    ["=?utf-8?Q?Gr=C3=BC=C3=9Fe", "Grüße"],
    ["=?utf-8?Q?Gr=C3=BC=C3=9Fe?", "Grüße"],
    ["=?utf-8?B?R3LDvMOfZQ", "Grüße"],
    ["=?utf-8?Q?Gr=C3=BC?= =?utf-8?Q?=C3=9Fe", "Grüße"],
    ["is 1 =?x", "is 1 =?x"],
  ])("an encoded word that was cut: %s", async (value, want) => {
    expect(await subject(value)).toBe(want);
  });

  const be = (value: string): Buffer => Buffer.from(value, "utf16le").swap16();
  const BIG = Buffer.concat([Buffer.from([0xfe, 0xff]), be("Grüße 日本")]);
  const LITTLE = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("Grüße 日本", "utf16le")]);

  test.each<[string, Buffer]>([
    ["utf-16", BIG],
    ["utf-16", LITTLE],
    ["UTF16", BIG],
    ["utf-16le", BIG],
    ["utf-16be", LITTLE],
    ["unicode", BIG],
    ["ucs-2", BIG],
    ["iso-10646-ucs-2", BIG],
    ["utf-8", BIG],
    ["utf-16be", be("Grüße 日本")],
    ["utf-16", be("Grüße 日本")],
    [
      "utf-32",
      Buffer.from(Uint32Array.from("\ufeffGrüße 日本", (letter) => letter.codePointAt(0) ?? 0).buffer),
    ],
  ])("the byte order of a text named %s", async (charset, octets) => {
    const body = ["Content-Transfer-Encoding: base64", "", octets.toString("base64"), ""];
    expect(await text(`Content-Type: text/plain; charset=${charset}`, ...body)).toBe("Grüße 日本");
    if (charset !== "utf-8")
      expect(await subject(`=?${charset}?B?${octets.toString("base64")}?=`)).toBe("Grüße 日本");
  });

  test.each<[string, string, string]>([
    ["'iso-8859-2'", "\xb1", "ą"],
    ["`iso-8859-2`", "\xb1", "ą"],
    ["iso8859_2", "\xb1", "ą"],
    ["x-iso-8859-2", "\xb1", "ą"],
    ["8859_2", "\xb1", "ą"],
    ["latin-2", "\xb1", "ą"],
    ["win-1251", "\xcf\xf0", "Пр"],
    ["win1251", "\xcf\xf0", "Пр"],
    ["windows1251", "\xcf\xf0", "Пр"],
    ["windows_1251", "\xcf\xf0", "Пр"],
    ["cp-1251", "\xcf\xf0", "Пр"],
    ["x-cp1252", "\x80", "€"],
    ["ms-ansi", "\x80", "€"],
    ["cp-850", "\x81", "ü"],
    ["dos-850", "\x81", "ü"],
    ["koi8", "\xf0\xd2", "Пр"],
    ["koi-8-r", "\xf0\xd2", "Пр"],
    ["utf8mb4", utf8("ü"), "ü"],
    ["utf-8-sig", utf8("ü"), "ü"],
    ["UTF_8", utf8("ü"), "ü"],
    ["x-utf-8", utf8("ü"), "ü"],
    ["unicode-1-1-utf-7", "+APw-", "ü"],
    ["x-unicode-2-0-utf-7", "+APw-", "ü"],
    ["utf_7", "+APw-", "ü"],
    ["x-mac-roman", "\x9f", "ü"],
    ["gb-2312", "\xc4\xe3", "你"],
    ["s-jis", "\x82\xa0", "あ"],
    ["iso-2022-jp-ms", '\x1b$B$"\x1b(B', "あ"],
  ])("the charset %s", async (charset, octets, want) => {
    const written = Array.from(
      octets,
      (octet) => `=${octet.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`,
    );
    expect(await text(`Content-Type: text/plain; charset=${charset}`, "", octets)).toBe(want);
    expect(await subject(`=?${charset}?Q?${written.join("")}?=`)).toBe(want);
  });
});

describe("characters that reorder a line are left out", () => {
  const [OVERRIDE, EMBEDDING, ISOLATE, POP, POP_ISOLATE] = ["\u202e", "\u202b", "\u2067", "\u202c", "\u2069"];
  test.each<[string, string]>([
    [`invoice${OVERRIDE}fdp.exe`, "invoicefdp.exe"],
    [`${EMBEDDING}report${POP}.pdf`, "report.pdf"],
    [`a${ISOLATE}gpj.scr${POP_ISOLATE}`, "agpj.scr"],
    [`\u202d${OVERRIDE}x.js`, "x.js"],
    ["דו\u200fח.pdf", "דו\u200fח.pdf"],
  ])("characters that reorder a line are left out of the file name %j", async (name, want) => {
    const raw = `Content-Type: application/pdf; name="${utf8(name)}"`;
    const word = `Content-Disposition: attachment; filename="=?utf-8?B?${Buffer.from(name).toString("base64")}?="`;
    const extended = `Content-Disposition: attachment; filename*=UTF-8''${encodeURIComponent(name)}`;
    for (const header of [raw, word, extended])
      expect((await read(...withFile(header, "x"))).attachments[0]?.filename).toBe(want);
  });

  test("characters that reorder a line are left out of a subject, a display name and a preview", async () => {
    const mail = await parseMail(
      Buffer.from(
        `From: "${OVERRIDE}Ann" <a@x.test>\r\nSubject: ${EMBEDDING}שלום${POP} Ann\r\n\r\na${OVERRIDE}b\r\n`,
      ),
    );
    expect([mail.from?.name, mail.subject, mail.preview]).toEqual(["Ann", "שלום Ann", "ab"]);
    expect(mail.text).toBe(`a${OVERRIDE}b\n`);
  });
});

describe("damaged headers are read in proportion to their length", () => {
  const MEGABYTE = 1_000_000;
  test.each<[string, string, string]>([
    ["parameters that are not folded", "Content-Type: text/plain;\r\n", "a=b;\r\n"],
    ["lines that are no fields", "Subject: x\r\n", "no field\r\n"],
    [
      "lines that are no fields in a part",
      "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: x/y\r\n",
      "no field\r\nContent-X: y\r\n",
    ],
    [
      "multiparts without a boundary",
      "Content-Type: multipart/mixed; boundary=b\r\n\r\n",
      "--b\r\nContent-Type: multipart/mixed\r\n\r\n",
    ],
    ["raw words", "Subject: ", "=?x?q?\xff?= "],
    ["open words", "Subject: ", "=?x?q?\xff"],
    ["open commands", "Content-Type: text/enriched\r\n\r\n", "<a"],
    ["commands", "Content-Type: text/enriched\r\n\r\n", "<param>"],
  ])("%s", async (_name, begin, piece) => {
    const mail = Buffer.from(`${begin}${piece.repeat(MEGABYTE / piece.length)}`, "latin1");
    const before = cpuMs();
    await parseMail(mail);
    expect(cpuMs() - before).toBeLessThan(3000);
  });
});

test.each<[string, object]>([
  ["<mailto:b@x.test>", { email: "b@x.test" }],
  ["Ben <mailto:b@x.test>", { email: "b@x.test", name: "Ben" }],
  ["Ben <<b@x.test>>", { email: "b@x.test", name: "Ben" }],
  ["Example, Ben <b@x.test>", { email: "b@x.test", name: "Example, Ben" }],
  ["a@x.test, Ben <b@x.test>", { email: "a@x.test" }],
])("an author that is written carelessly: %s", async (value, want) => {
  expect((await parseMail(Buffer.from(`From: ${value}\r\n\r\nx`))).from).toEqual(want as never);
});
