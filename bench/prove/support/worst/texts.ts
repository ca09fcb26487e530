/**
 * Strings in requests that are bad for our readers: addresses, cursors, links, URLs, templates, composed content.
 */
import { addressKey, normalizeDomain } from "../../../../src/core/addresses.ts";
import { decodeCursor, encodeCursor } from "../../../../src/core/crypto/cursors.ts";
import { parseTime } from "../../../../src/core/time/date-times.ts";
import { isMachine } from "../../../../src/core/machine-agents.ts";
import { clientAddress } from "../../../../src/core/networks.ts";
import { organizationalDomain } from "../../../../src/core/public-suffix.ts";
import { MAX_NAME_CHARS, readAddress } from "../../../../src/core/messages/address-input.ts";
import { MAX_SUBJECT_CHARS } from "../../../../src/core/messages/send-item.ts";
import { MAX_BODY_PART_BYTES } from "../../../../src/core/messages/send-rules.ts";
import { renderTemplate, templateVariables } from "../../../../src/core/templates/render.ts";
import { clickOn } from "../../../../src/flows/mime/tracking-links.ts";
import { replySubject } from "../../../../src/flows/accept/reply-subject.ts";
import { slugOf } from "../../../../src/core/text.ts";
import { webhookUrl } from "../../../../src/flows/webhooks/webhook-url.ts";
import { compose } from "../../../../src/mail/composing/compose.ts";
import { encodeVerp } from "../../../../src/mail/verp.ts";
import { MAX_HEADER_VALUE_CHARS } from "../../../../src/mail/reading/header-block.ts";
import { extractsOf } from "../../../../src/mail/text/extracts.ts";
import { newPart } from "../../../../src/mail/text/reply-text.ts";
import { trackHtml } from "../../../../src/mail/tracking.ts";
import { casesOf, filled, repeated, type WorstCase } from "./worst-case.ts";

/** Bytes of a request's head that Bun reads. */
const MAX_HEAD_OCTETS = 16 * 1024;
/** Characters of a string that a body of 1 MiB may hold. */
const MAX_FIELD_CHARS = 1024 * 1024;
const MEBIBYTE = 1024 * 1024;
const KEY = Buffer.alloc(32, 1);

/** Reads a string, whether the reader refuses it or not. */
function whatever<Input>(read: (input: Input) => unknown): (input: Input) => unknown {
  return (input) => {
    try {
      return read(input);
    } catch {
      return null;
    }
  };
}

function address(text: string): unknown {
  return [
    addressKey(text),
    normalizeDomain(text),
    organizationalDomain(text.slice(0, 253)),
    readAddress(text),
  ];
}

const LINKS = { trackingKey: KEY, publicUrl: "https://mail.test" };
const TOKEN = encodeVerp(KEY, Buffer.alloc(16, 1), 0);

function requestText(text: string): unknown {
  return [
    whatever(() => decodeCursor(KEY, "scope", text))(text),
    whatever(() => decodeCursor(KEY, "scope", encodeCursor(KEY, "scope", text)))(text),
    clickOn(LINKS, `${TOKEN}.${text}`),
    isMachine({ method: "GET", userAgent: text, purpose: text, ip: text }, null),
    clientAddress("127.0.0.1", text, ["127.0.0.0/8"]),
    whatever(() => webhookUrl(`https://${text}`, { mayReach: () => true, allowPrivate: false }))(text),
    parseTime(text),
  ];
}

const HTML_PIECES = [
  "<",
  "<a ",
  '<a href="',
  "<a href='http://a/'>",
  "<a href=http://a/>x</a>",
  "<div>",
  "</body>",
  "<body>",
  "<!--",
  "<script>",
  "<textarea>",
  "&amp;",
  '<img src="x" width="1" height="1">',
  '<a href="&#x41;',
  "<svg>",
  "<b a b c ",
  "<table>",
  "\0",
  "<?",
  "</a ",
];
const REPLY_PIECES = [
  "a",
  "a ",
  "\n",
  "> ",
  ">\n",
  "On 1 May 2026 a wrote:\n",
  "On 1 May 2026, <a@b> wrote:\n> a\n",
  "-- \n",
  "__\n\n",
  "From: a\nSent: b\n",
  "From: ",
  "Sent from my x\n",
  "-----Original Message-----",
  "1:00 ",
  "<a@b>",
  ":",
  "a:\n",
  "Le 1 mai 2026 ",
  "--",
  "\u200e",
  "\u00a0",
  "Outlook ",
  "Von meinem ",
  "Sent from my iPhone x\n\n",
  "Sent from my 4G-x",
  "##- above this line",
  "<https://x>",
];
const CODES_PIECES = [
  "confirmation: 1234 x\n",
  "confirmation: ",
  "enter 1234 to sign in\n",
  "into the box ",
  "1234 ",
  "A-1",
  "code ",
];
const CODE_PIECES = [
  "{{ a }}",
  "{{",
  "{%",
  "{{ a | upcase }}",
  "{% if a %}",
  "{% for i in a %}",
  "{% raw %}",
  "{% comment %}",
  "{{ 'a",
  "{{ a | upcase | upcase",
  "{% assign a = a %}",
  "{% case a %}{% when a %}",
  "{{ a.b }}",
  "{% liquid\n",
  "{{- a -}} ",
  "{% capture a %}",
  "{% cycle a, b %}",
  "{%- # a %}",
  "}}",
  "%}",
  "a",
];
const EXPRESSIONS = [
  "a.",
  "a[",
  "a[0].",
  "a | upcase ",
  "a, ",
  "a and ",
  '"a" ',
  "(1..",
  "a:",
  " ",
  "\\",
  "'",
];

const data = { a: [1, 2, 3], b: { c: "d" } };
const source = (html: string) => ({ subject: "s", html, text: null });
const rendered = whatever((html: string) => renderTemplate(source(html), data));
const variables = whatever((html: string) => templateVariables(source(html)));

/** A list in the data, for what templates do with lists. */
const LIST_TEMPLATES: Readonly<Record<string, string>> = Object.fromEntries(
  [
    "join",
    "sort",
    "uniq",
    "reverse",
    "json",
    "map: 'b'",
    "where: 'b', 1",
    "group_by: 'b'",
    "concat: a",
    "size",
    "compact",
    "sum",
    "first",
    "json: 9",
    "sort_natural",
    "find: 'b', 1",
  ].map((filter) => [`list | ${filter}`, `{{ a | ${filter} }}`]),
);
const TEXT_TEMPLATES: Readonly<Record<string, string>> = Object.fromEntries(
  [
    "escape",
    "strip_html",
    "strip",
    "split: ''",
    "split: 'a'",
    "replace: 'a', 'bb'",
    "replace: ' ', ''",
    "upcase",
    "newline_to_br",
    "strip_newlines",
    "truncatewords: 9",
    "capitalize",
    "url_encode",
    "url_decode",
    "lstrip",
    "date: '%Y'",
    "remove_last: 'a'",
    "rstrip",
    "escape_once",
    "normalize_whitespace",
    "number_of_words",
    "slice: 1",
    "xml_escape",
    "base64_decode",
    "strip_html | strip",
    "squish",
  ].map((filter) => [`text | ${filter}`, `{{ a | ${filter} }}`]),
);

function filterCases(): WorstCase[] {
  const texts = [" ", "<", "a", "&", "\n", "<script", "%", "a "];
  return [
    ...Object.entries(LIST_TEMPLATES).flatMap(([name, html]) =>
      casesOf(
        "template",
        MEBIBYTE,
        whatever((a: unknown) => renderTemplate(source(html), { a })),
        {
          [name]: (octets) => Array.from({ length: octets / 4 }, (_, at) => (at % 3 === 0 ? { b: at } : at)),
        },
      ),
    ),
    ...Object.entries(TEXT_TEMPLATES).flatMap(([name, html]) =>
      casesOf(
        "template",
        MEBIBYTE,
        whatever((a: string) => renderTemplate(source(html), { a })),
        {
          [`${name} of ${texts.length} texts`]: (octets) =>
            texts.map((text) => filled(text, octets / texts.length)).join(""),
        },
      ),
    ),
  ];
}

function composed(mail: { subject?: string; text?: string; html?: string; name?: string }): unknown {
  return compose({
    from: { email: "a@mail.test", name: mail.name },
    to: [{ email: "b@there.test", name: mail.name }],
    subject: mail.subject ?? "s",
    text: mail.text ?? null,
    html: mail.html ?? null,
    headers: { "X-A": mail.subject ?? "a", References: mail.subject ?? "<a@b>" },
    messageId: "<a@mail.test>",
    date: 0,
  });
}

const COMPOSED = [
  "a",
  "a ",
  "=",
  " ",
  "\t",
  "\r",
  "\n",
  "\u00e9",
  "\u{1f600}",
  "From \n",
  ".\n",
  "\0",
  "=_",
  "\ud800",
];

/** All of them. */
export const TEXT_CASES: readonly WorstCase[] = [
  ...casesOf(
    "address",
    MAX_FIELD_CHARS,
    address,
    repeated(["a", "@", ".", "a@", "a.", '"', "\u00e9", "e\u0301", "xn--", "\u{1f600}."], "a@"),
  ),
  ...casesOf(
    "cursor, link, URL",
    MAX_HEAD_OCTETS,
    requestText,
    repeated(["a", "-", "/", "127.0.0.1, ", "[", ".", "@", "%41", "0", ":", " ", "a.", "\u00e9"]),
  ),
  ...casesOf(
    "subject of a reply",
    MAX_HEADER_VALUE_CHARS,
    replySubject,
    repeated(["Re: ", " ", "Re", "Re[1]", "Re[1]:", "\u56de\u590d\uff1a", "Re "]),
  ),
  ...casesOf(
    "slug",
    MAX_FIELD_CHARS,
    (text: string) => slugOf(text.slice(0, 1000), 60),
    repeated(["a", "-", " ", "\u0301", "\ufdfa"]),
  ),
  ...casesOf(
    "reply text",
    4 * MEBIBYTE,
    (text: string) => newPart({ text, html: null }),
    repeated(REPLY_PIECES),
  ),
  ...casesOf(
    "codes",
    4 * MEBIBYTE,
    (text: string) => extractsOf({ subject: "sign in", html: null, text }),
    repeated(CODES_PIECES),
  ),
  ...casesOf(
    "reply html",
    4 * MEBIBYTE,
    (html: string) => newPart({ text: null, html }),
    repeated(HTML_PIECES),
  ),
  ...casesOf(
    "tracked html",
    MAX_BODY_PART_BYTES,
    (html: string) =>
      trackHtml(html, {
        pixelUrl: "https://mail.test/o/x",
        linkFor: (url) => `https://mail.test/c/${url.length}`,
      }),
    repeated(HTML_PIECES),
  ),
  ...casesOf("template", MAX_BODY_PART_BYTES, rendered, repeated(CODE_PIECES)),
  ...casesOf("template's variables", MAX_BODY_PART_BYTES, variables, repeated(CODE_PIECES)),
  ...casesOf(
    "template's expression",
    MEBIBYTE,
    (html: string) => [rendered(html), variables(html)],
    repeated(EXPRESSIONS, "{{ ", "a }}"),
  ),
  ...casesOf(
    "template's condition",
    MEBIBYTE,
    (html: string) => [rendered(html), variables(html)],
    repeated(EXPRESSIONS, "{% if ", "a %}{% endif %}"),
  ),
  ...filterCases(),
  ...casesOf("composed text", MAX_BODY_PART_BYTES, (text: string) => composed({ text }), repeated(COMPOSED)),
  ...casesOf(
    "composed html",
    MAX_BODY_PART_BYTES,
    (html: string) => composed({ html }),
    repeated(["<", "a", "\u00e9", " "]),
  ),
  ...casesOf(
    "composed header",
    MAX_SUBJECT_CHARS,
    (subject: string) => composed({ subject, name: subject.slice(0, MAX_NAME_CHARS) }),
    repeated(["a", " ", "\u00e9", '"', "a ", "<a@b>", "\u{1f600}", "=?", "(", "\\"]),
  ),
];
