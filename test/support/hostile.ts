import type { Place } from "./openapi-document.ts";

/** A nesting depth that would overflow the stack of a recursive reader. */
const NESTED_LEVELS = 1000;
const LONG_CHARS = 100_000;

/** Strings that have broken mail and web services before: [name, JavaScript string]. */
export const TEXTS: readonly (readonly [string, string])[] = [
  ["empty", ""],
  ["a header after CR LF", "a\r\nX-Injected: 1"],
  ["a header after LF", "a\nX-Injected: 1"],
  ["a header after CR", "a\rX-Injected: 1"],
  ["a body after CR LF CR LF", "a\r\n\r\n<script>x</script>"],
  ["a header after a folded line", "a\r\n X-Injected: 1\r\nX-Injected: 2"],
  ["NUL", "a\u0000b"],
  ["controls", "\u0001\u0008\u000b\u001b[31m\u007f\u0085"],
  ["line separators", "a\u2028b\u2029c"],
  ["bidi controls", "\u202egpj.exe\u202c\u2066x\u2069"],
  ["4-byte characters", "\u{1F600}\u{10FFFF}\u{2F800}"],
  ["a lone high surrogate", "a\ud800b"],
  ["a lone low surrogate", "\udc00"],
  ["a byte order mark", "\ufeffa"],
  ["over-long", "x".repeat(LONG_CHARS)],
  ["over-long in 4-byte characters", "\u{1F600}".repeat(LONG_CHARS / 10)],
  ["an encoded word with a header", "=?utf-8?q?a=0D=0AX-Injected:_1?="],
  ["an address with a command", "a@example.com>\r\nRCPT TO:<b@example.com"],
  ["an address with NUL", "a@example.com\u0000.example.org"],
  ["an address in quotes", '"a\r\nX-Injected: 1"@example.com'],
  ["two addresses", "a@example.com, b@example.com"],
  ["an address literal", "a@[127.0.0.1]"],
  ["a bidi address", "a\u202e@example.com"],
  ["an address of a lone surrogate", "a\ud800@example.com"],
  ["a private URL", "https://127.0.0.1/"],
  ["a URL with CR LF", "https://example.com/\r\nX-Injected: 1"],
  ["a file URL", "file:///etc/passwd"],
  ["SQL", "'; DROP TABLE messages; --"],
  ["a wildcard", "%_%"],
  ["a path", "../../../../etc/passwd"],
  ["markup", "</title><script>alert(1)</script>"],
  [
    "a template that reads outside its data",
    "{{ constructor.constructor }}{{ __proto__ }}{% include '/etc/passwd' %}",
  ],
  ["a template that never ends", "{% for i in (1..1000000000) %}x{% endfor %}"],
  ["a template left open", "{{ a {% if"],
  ["a prototype", "__proto__"],
  ["a constructor", "constructor"],
  ["a method", "toString"],
  ["a far time", "+275760-09-13T00:00:00.001Z"],
  ["a text that is not a time", "2026-02-30T25:61:61Z"],
  ["a year before all", "0000-01-01T00:00:00Z"],
];

const deep = (open: string, close: string) => `${open.repeat(NESTED_LEVELS)}1${close.repeat(NESTED_LEVELS)}`;

/** JSON of a wrong type, or of a kind that is easily misread: [name, JSON text]. */
export const VALUES: readonly (readonly [string, string])[] = [
  ["null", "null"],
  ["true", "true"],
  ["a number", "0"],
  ["a negative zero", "-0"],
  ["a fraction", "0.1"],
  ["beyond the safe integers", "9007199254740993"],
  ["beyond 64 bits", "18446744073709551616"],
  ["beyond a double", "1e400"],
  ["almost beyond a double", "-1.7976931348623157e308"],
  ["an empty list", "[]"],
  ["a list of null", "[null]"],
  ["a long list", `[${Array(300).fill("1").join()}]`],
  ["an empty object", "{}"],
  ["a polluted prototype", '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'],
  ["an object that imitates a string", '{"length":1e9,"toString":null,"valueOf":1}'],
  ["lists 1000 deep", deep("[", "]")],
  ["objects 1000 deep", deep('{"a":', "}")],
  ["a list of objects 1000 deep", `[${deep('{"a":', "}")}]`],
];

/** Writes a string as JSON. A lone surrogate becomes an escape, as in `JSON.stringify`. */
export function jsonOf(text: string): string {
  return JSON.stringify(text);
}

/** Percent-encodes a string. A lone surrogate becomes the three bytes of its (invalid) UTF-8. */
export function percentOf(text: string): string {
  return [...text]
    .map((char) => {
      const code = char.codePointAt(0) ?? 0;
      const lone = code >= 0xd800 && code <= 0xdfff;
      const bytes = lone
        ? [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)]
        : Buffer.from(char);
      return [...bytes].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
    })
    .join("");
}

/** Placeholder for the hostile JSON. No test text contains it. */
const MARK = "@@hostile@@";

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a copy of `base` with `value` at the place. Missing parents are created. */
function put(base: unknown, [step, ...rest]: readonly string[], value: unknown): unknown {
  if (step === undefined) return value;
  if (step === "[]") {
    const list: unknown[] = Array.isArray(base) ? base : [];
    return [put(list[0], rest, value), ...list.slice(1)];
  }
  const fields = isObject(base) ? base : {};
  const name = step === "*" ? "X-Own" : step;
  return { ...fields, [name]: put(fields[name], rest, value) };
}

/** The body's JSON with `json` at the place. */
export function bodyWith(base: unknown, place: Place, json: string): string {
  return JSON.stringify(put(base, place.at, MARK)).replace(`"${MARK}"`, () => json);
}

/** The body's JSON with a client-chosen key in the record at the place. */
export function bodyWithKey(base: unknown, record: readonly string[], key: string): string {
  const text = JSON.stringify(put(base, [...record, MARK], "v"));
  return text.replace(`"${MARK}"`, () => JSON.stringify(key));
}

/** The body's JSON with each top-level field repeated as null, once before and once after the real one. */
export function withDoubles(base: unknown): string[] {
  if (!isObject(base)) return [];
  const text = JSON.stringify(base);
  return Object.keys(base).flatMap((name) => {
    const field = `${JSON.stringify(name)}:null`;
    return [`{${field},${text.slice(1)}`, `${text.slice(0, -1)},${field}}`];
  });
}

/** Whole bodies that are not an object of the expected kind, or not JSON. */
export const BODIES: readonly (readonly [string, string])[] = [
  ...VALUES,
  ["a text", '"text"'],
  ["no JSON", "{"],
  ["two values", "{}{}"],
  ["a comment", "{} // no"],
  ["a byte order mark", "\ufeff{}"],
  ["NaN", "NaN"],
  ["an unknown field of 1000 levels", `{"unknown":${deep("[", "]")}}`],
  ["100000 levels", `${"[".repeat(LONG_CHARS)}${"]".repeat(LONG_CHARS)}`],
];

/** Values of request headers that a client library lets through. */
export const HEADER_VALUES: readonly (readonly [string, string])[] = [
  ["empty", ""],
  ["spaces", "   "],
  ["a comma", "a, b"],
  ["quotes", '"; DROP TABLE senders; --'],
  ["Latin-1", "\u00e9\u00ff\u0080"],
  ["a tab", "a\tb"],
  ["over-long", "x".repeat(4000)],
  ["a prototype", "__proto__"],
  ["a path", "../../etc/passwd"],
  ["percent", "%00%0d%0aX-Injected: 1"],
];
export const HEADER_NAMES = [
  "X-Service-Product",
  "X-Service-Sender",
  "Idempotency-Key",
  "X-Request-Id",
  "Authorization",
  "Content-Type",
  "Accept",
  "Cookie",
  "X-Forwarded-For",
  "Forwarded",
  "Range",
  "If-None-Match",
  "Origin",
];
