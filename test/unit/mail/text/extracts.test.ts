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

/** Texts on which a careless search takes quadratic time. */
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
