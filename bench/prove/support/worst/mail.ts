/** Messages that are bad for the readers of MIME, headers, plain text and HTML. */
import { systemClock } from "../../../../src/clock.ts";
import { inspectMail } from "../../../../src/flows/mime/inspect.ts";
import { MAX_NESTING_DEPTH } from "../../../../src/mail/reading/mime-tree.ts";
import { MAX_HEADER_OCTETS } from "../../../../src/mail/reading/raw-headers.ts";
import { asOctets, casesOf, filled, type WorstCase } from "./worst-case.ts";

/** As `MAX_MESSAGE_BYTES` has it. */
export const MAX_MAIL_OCTETS = 25 * 1024 * 1024;
const HEAD = "From: a@bank.example\r\nTo: b@mail.test\r\nSubject: s\r\nMIME-Version: 1.0\r\n";

type Shapes = Record<string, (octets: number) => string>;

/** Reads a message as the inspector's thread does, without authenticating it. */
function read(raw: Buffer): Promise<unknown> {
  const resolve = (): Promise<never> => Promise.reject(new Error("nothing is asked"));
  return inspectMail({ host: "mx.mail.test", clock: systemClock, resolve }, { raw, session: null });
}

/** Messages whose body repeats a piece. */
function bodies(kind: string, header: string, pieces: readonly string[]): Shapes {
  return Object.fromEntries(
    pieces.map((piece) => [
      `${kind} ${JSON.stringify(piece)}`,
      (octets: number) => `${HEAD}${header}\r\n${filled(piece, octets - HEAD.length - header.length - 2)}`,
    ]),
  );
}

/** Messages with a field that repeats a piece, in their own header or in that of a part. */
function fields(name: string, begin: string, pieces: readonly string[], end = "", part = false): Shapes {
  const before = part ? `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n` : HEAD;
  return Object.fromEntries(
    pieces.map((piece) => [
      `${part ? "part's " : ""}${name} ${begin}${JSON.stringify(piece)}`,
      (octets: number) =>
        `${before}${name}: ${begin}${filled(piece, octets - before.length - name.length - begin.length)}${end}\r\n\r\nx`,
    ]),
  );
}

const TEXT = "Content-Type: text/plain; charset=utf-8\r\n";
const HTML = "Content-Type: text/html; charset=utf-8\r\n";
const MIXED = "Content-Type: multipart/mixed; boundary=b\r\n";

function multiparts(kind: string, parts: readonly string[]): Shapes {
  return bodies(kind, MIXED, parts);
}

/** Nested multiparts, each with its own boundary, and then a piece. */
function nested(levels: number, piece: string): (octets: number) => string {
  const begins = Array.from(
    { length: levels },
    (_, at) => `Content-Type: multipart/mixed; boundary=b${at}x\r\n\r\n--b${at}x\r\n`,
  ).join("");
  return (octets) => `${HEAD}${begins}\r\n${filled(piece, octets - HEAD.length - begins.length)}`;
}

const ADDRESS_PIECES = [
  "a@b.example, ",
  ":",
  ",",
  "<",
  '"',
  "(",
  "\\",
  "@",
  ";",
  "g:a@b;",
  "<a@b",
  '"a" ',
  "a b ",
  "=?utf-8?q?a?= ",
  "=?utf-8?b?YQ==?= ",
  "=?utf-8?q?",
  "(a) ",
  '"a"@',
  "a.",
  "<@a:",
  "\u00e9",
];
const WORD_PIECES = [
  "a",
  " ",
  "=?",
  "?=",
  "=?utf-8?q?",
  "=?utf-8?b?YQ==?=\r\n ",
  "=?x?q?=41?= ",
  "=?us-ascii?q?a?",
  "=?iso-2022-jp?b?GyRC?= ",
  "\r\n a",
  "?",
  "=?utf-7?q?+AGE-?= ",
];
const PARAMETER_PIECES = [
  "; a=b",
  ";",
  "; name*0=a",
  "; name*0*=utf-8''%41",
  "; name*1*=%41",
  '; a="',
  '"',
  "(",
  "(a)",
  "\\",
  "=",
  "; boundary=",
  "; name==?utf-8?q?a?=",
  " ",
  "; name*=utf-8''%",
];

/** Parameters that each continue the one before (RFC 2231 §3). */
function continued(part: boolean): (octets: number) => string {
  const before = part ? `${HEAD}${MIXED}\r\n--b\r\n` : HEAD;
  const begin = `${before}Content-Type: text/plain`;
  return (octets) => {
    const parameters = [];
    for (let at = 0, left = octets - begin.length; left > 0; at++) {
      const parameter = `;\r\n name*${at}=a`;
      parameters.push(parameter);
      left -= parameter.length;
    }
    return `${begin}${parameters.join("")}\r\n\r\nx`;
  };
}

const bodyShapes: Shapes = {
  ...bodies("text", TEXT, [
    "a",
    "a ",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\0",
    ">",
    "> a\r\n",
    "a: b\r\n",
    "On 1 May 2026 a wrote:\r\n",
    "-- \r\n",
    "__\r\n\r\n",
    "From: a\r\n",
    "Sent from my x\r\n",
    "<a@b> ",
    "\u00e9",
    "=",
    "--\r\n",
  ]),
  ...bodies("flowed", "Content-Type: text/plain; format=flowed; delsp=yes\r\n", ["a ", "> a \r\n", ">", " "]),
  ...bodies("base64", `${TEXT}Content-Transfer-Encoding: base64\r\n`, ["YWFh", "=", "YQ==\r\n", "\r\n", "-"]),
  ...bodies("base64 file", "Content-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n", ["YWFh", "=", "\n"]),
  ...bodies("quoted-printable", `${TEXT}Content-Transfer-Encoding: quoted-printable\r\n`, [
    "=",
    "=\r\n",
    "= ",
    "=3D",
    "=4",
    "=C3=A9",
    " \r\n",
  ]),
  ...Object.assign(
    {},
    ...["utf-16le", "iso-2022-jp", "gb18030", "utf-7"].map((charset) =>
      bodies(charset, `Content-Type: text/plain; charset=${charset}\r\n`, ["\x1b$B", "\u00e9", "+AGE-"]),
    ),
  ),
  ...bodies("html", HTML, [
    "<",
    "<a ",
    "<div>",
    "</div>",
    "<p>",
    "<!--",
    '<a href="',
    "<a href='x' ",
    "&",
    "&amp;",
    "&#x41;",
    "<style>",
    "<script>",
    "<title>",
    "<table><tr><td>",
    "<br>",
    "<blockquote>",
    "<![CDATA[",
    "<?",
    "x ",
    '<b style="display:none',
    "<ul><li>",
    "<pre>\n",
    "<textarea>",
    "<body>",
    "<a b=c d>",
    "<svg>",
  ]),
  ...multiparts("parts", [
    "--b\r\n\r\n",
    "--b\r\n\r\na\r\n",
    "--b\r\nContent-Type: text/html\r\n\r\n<b>a\r\n",
    "--b x\r\n",
    "--",
    "--b\r\nContent-Type: message/rfc822\r\n\r\n",
    "--b--\r\n",
    "--b \r\n",
    "--b",
    "\r\n--",
    "--b\r\na:b\r\n",
    "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n",
  ]),
  "parts of text, then of html": (octets) =>
    `${HEAD}${MIXED}\r\n${filled("--b\r\n\r\na\r\n--b\r\nContent-Type: text/html\r\n\r\n<b>a\r\n", 40_000)}${filled("<b>a", octets - 40_200)}`,
  "no such boundary": (octets) =>
    `${HEAD}Content-Type: multipart/mixed; boundary=x\r\n\r\n${filled("--y\r\n", octets - 150)}`,
  "boundary of a megabyte": (octets) =>
    `${HEAD}Content-Type: multipart/mixed; boundary="${filled("b", octets / 2)}"\r\n\r\n${filled("--bbb\r\n", octets / 2 - 150)}`,
  "nested, delimiters": nested(MAX_NESTING_DEPTH - 1, "--b0x "),
  "nested, lines of dashes": nested(MAX_NESTING_DEPTH - 1, "--\r\n"),
  "nested too deep": nested(2 * MAX_NESTING_DEPTH, "--b0x\r\n"),
  "nested messages": (octets) =>
    `${HEAD}${filled("Content-Type: message/rfc822\r\n\r\n", octets - HEAD.length)}`,
};

const headerShapes: Shapes = {
  "many fields": (octets) => `${HEAD}${filled("a:b\r\n", octets - HEAD.length)}`,
  "many To fields": (octets) => `${HEAD}${filled("To: a@b.example\r\n", octets - HEAD.length)}`,
  "lines that are no field": (octets) => `${HEAD}${filled("a\r\n", octets - HEAD.length)}`,
  folds: (octets) => `${HEAD}X: ${filled("\r\n a", octets - HEAD.length)}`,
  "name without end": (octets) => filled("a", octets),
  "spaces before a colon": (octets) => `X${filled(" ", octets - 10)}: a\r\n\r\n`,
  ...fields("To", "", ADDRESS_PIECES),
  ...fields("Cc", '"', ["a"]),
  ...fields("Subject", "", WORD_PIECES),
  ...fields("References", "", ["<a@b> ", "<", "@", ">", "< ", "a@b "]),
  ...fields("Message-ID", "", ["@", "<", " "]),
  ...fields("Auto-Submitted", "", ["a"]),
  ...fields("Content-Type", "text/plain", PARAMETER_PIECES),
  ...fields("Content-Type", "text/plain", PARAMETER_PIECES, "", true),
  ...fields("Content-Disposition", "attachment", PARAMETER_PIECES, "", true),
  ...fields("Content-Description", "", WORD_PIECES, "", true),
  ...fields("Content-ID", "", ["<", ">", "<a>"], "", true),
  ...fields("Content-Transfer-Encoding", "", ["base64", "(", " "], "", true),
  ...fields("To", "", [":", ","], "", true),
  "continued parameters": continued(false),
  "part's continued parameters": continued(true),
};

/** All of them. */
export const MAIL_CASES: readonly WorstCase[] = [
  ...casesOf("mail", MAX_MAIL_OCTETS, read, asOctets(bodyShapes)),
  ...casesOf("mail's header", 2 * MAX_HEADER_OCTETS, read, asOctets(headerShapes)),
];
