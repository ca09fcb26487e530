import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MAX_CODES } from "../../../../src/mail/text/codes.ts";
import { extractsOf, MAX_LINKS } from "../../../../src/mail/text/extracts.ts";
import { MAX_LINK_TEXT_CHARS, MAX_SCANNED_CHARS } from "../../../../src/mail/text/html-scan.ts";

const CORPUS = readFileSync(join(import.meta.dir, "../../../fixtures/test-mail.tsv"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => {
    const [name = "", subject = "", codes = "", links = "", body = ""] = line.split("\t");
    return { name, subject, codes, links, body: body.replaceAll("\\n", "\n") };
  });

test("the corpus has three hundred messages, half of them without a code", () => {
  expect(CORPUS.length).toBeGreaterThanOrEqual(300);
  const share = CORPUS.filter(({ codes }) => codes === "").length / CORPUS.length;
  expect(share).toBeGreaterThan(0.4);
  expect(share).toBeLessThan(0.6);
});

for (const { name, subject, codes, links, body } of CORPUS)
  test(`${name}: ${codes || "no code"}`, () => {
    const isHtml = body.startsWith("<");
    const found = extractsOf({ subject, html: isHtml ? body : null, text: isHtml ? null : body });
    expect(found.codes).toEqual(codes === "" ? [] : codes.split(","));
    expect(found.links.map(({ url, text }) => `${url}=${text}`).join("|")).toBe(links);
  });

const only = (html: string) => extractsOf({ subject: "", html, text: null });

test("links beyond the hundredth are left out, and so is a long text's end", () => {
  const anchors = Array.from(
    { length: MAX_LINKS + 1 },
    (_, at) => `<a href="https://a.example/${at}">${at}</a>`,
  );
  expect(only(anchors.join("")).links).toHaveLength(MAX_LINKS);
  const long = "x".repeat(MAX_LINK_TEXT_CHARS + 1);
  expect(only(`<a href="https://a.example/">${long}</a>`).links[0]?.text).toHaveLength(MAX_LINK_TEXT_CHARS);
});

test("html is scanned up to a limit", () => {
  const anchor = '<a href="https://a.example/">x</a>';
  expect(only(" ".repeat(MAX_SCANNED_CHARS - anchor.length) + anchor).links).toHaveLength(1);
  expect(only(" ".repeat(MAX_SCANNED_CHARS) + anchor).links).toHaveLength(0);
});

test("codes beyond the fifth are left out", () => {
  const codes = Array.from({ length: MAX_CODES + 1 }, (_, at) => String(483_910 + at));
  expect(extractsOf({ subject: "Your codes", html: null, text: codes.join("\n") }).codes).toHaveLength(
    MAX_CODES,
  );
});

const codesOf = (text: string, subject = "") => extractsOf({ subject, html: null, text }).codes;

test.each<[what: string, text: string, codes: string[]]>([
  ["eight digits", "Your code is 12345678", ["12345678"]],
  ["nine digits, which are a telephone number", "Your code is 123456789", []],
  ["a word for it three lines above", "Your code:\na\nb\n493817", ["493817"]],
  [
    "a place within the first 1000 characters of a line",
    `https://${"x".repeat(972)} Your code is 493817`,
    ["493817"],
  ],
  ["a place past the first 1000 characters of a line", `https://${"x".repeat(978)} Your code is 493817`, []],
  ["a place within the first 32 KiB", `${"\n".repeat(32 * 1024 - 19)}Your code is 493817`, ["493817"]],
  ["a place past the first 32 KiB", `${"\n".repeat(32 * 1024)}Your code is 493817`, []],
])("a code with %s is found, or is none", (_what, text, codes) => {
  expect(codesOf(text)).toEqual(codes);
});

test("the first 20 numbers and words like codes of a line are looked at, and the first 500 of a message", () => {
  let made = 1000;
  const words = (count: number) => Array.from({ length: count }, () => `AB${made++}`).join(" ");
  expect(codesOf(`${words(19)} Your code is 493817`)).toContain("493817");
  expect(codesOf(`${words(20)} Your code is 493817`)).not.toContain("493817");
  const lines = (last: number) =>
    `${Array.from({ length: 24 }, () => words(20)).join("\n")}\n${words(last)}\n.\n.\n.\nYour code is 493817`;
  expect(codesOf(lines(19))).toEqual(["493817"]);
  expect(codesOf(lines(20))).toEqual([]);
});

test("a tag is searched for its address up to 16 KiB", () => {
  const linked = (spaces: number) => only(`<a ${" ".repeat(spaces)} href="https://a.example/">x</a>`).links;
  const rest = '<a  href="https://a.example/"'.length;
  expect(linked(16 * 1024 - rest)).toHaveLength(1);
  expect(linked(16 * 1024 - rest + 1)).toHaveLength(0);
});

/** Inputs on which a careless search takes quadratic time. */
const HOSTILE: readonly (readonly [string, string])[] = [
  ["tags that do not end", "<a href="],
  ["comments that do not end", "<!-- "],
  ["scripts that do not end", "<script>"],
  ["links that do not end", '<a href="https://a.example/">'],
  ["spaces", " "],
  ["line ends", "\n"],
  ["references", "&amp"],
  ["digits", "1 "],
  ["codes", "code 123456\n"],
  ["groups", "AAA-"],
  ["brackets after an address", "https://a)))))))))))))))))))))))))))))))))))))) "],
  ["quotes", `<a title="'`],
  ["requests to enter a code", "Use 123456 to sign in. "],
  ["words between a verb and its code", "enter the the the "],
  ["numbers of their own line", "sign in:\n123456\n"],
];

test.each(HOSTILE)("%s are read in proportion to their length", async (_name, piece) => {
  const text = piece.repeat(Math.ceil(MAX_SCANNED_CHARS / piece.length));
  const half = text.slice(0, text.length / 2);
  for (const of of [half, text]) extractsOf({ subject: "code", html: of, text: of });
  expect(extractsOf({ subject: "code", html: text, text }).codes.length).toBeLessThanOrEqual(MAX_CODES);
});
