import { describe, expect, test } from "bun:test";
import { wholeText } from "../../src/mail/reading/mail-text.ts";
import type { TextKind } from "../../src/mail/reading/mime-part.ts";
import { openMail, parseMail } from "../../src/mail/reading/parse.ts";
import {
  MAX_HTML_MADE_CHARS,
  MAX_HTML_READ_CHARS,
  rendered,
  roomFor,
} from "../../src/mail/reading/rendered-text.ts";

const PAGE = "<p>a &amp; b</p>";
const shown = (text: string, as: TextKind, chars: number): string =>
  [...rendered(() => text.match(/.{1,5}/gs) ?? [], as)({ chars })].join("");

describe("html whose text stands beside a mail's own", () => {
  test.each([
    ["is all of it that there is room for", PAGE, PAGE.length, "\n\na & b\n"],
    ["ends where the room does", PAGE, PAGE.length - 5, "\n\na & "],
    ["has nothing of a tag that is cut in two", PAGE, PAGE.length - 2, "\n\na & b"],
    ["has nothing of a character of two units that is cut in two", "<p>a \u{1f600}</p>", 6, "a"],
    ["a tag that never ends is text", "a <b", 4, "a <b"],
    ["is nothing where there is no room", PAGE, 0, ""],
  ])("%s", (_, html, room, text) => {
    expect(shown(html, "plain", room).trim()).toBe(text.trim());
  });

  test("of several parts share the room, each time that they are read", () => {
    const parts = [PAGE, PAGE, PAGE].map((html) => rendered(() => [html], "plain"));
    const read = (): string[] => {
      const room = { chars: PAGE.length * 2 - 5 };
      return parts.map((part) => [...part(room)].join("").trim());
    };
    expect(read()).toEqual(["a & b", "a &", ""]);
    expect(read()).toEqual(["a & b", "a &", ""]);
  });
});

describe("text whose html stands beside a mail's own", () => {
  const whole = "<div>x&#x3C;<br />y</div>";
  const marks = whole.length - "<div></div>".length;

  test("is all of it that there is room for, and ends with whole characters and tags", () => {
    expect(shown(" x<\ny ", "html", marks)).toBe(whole);
    expect(shown("x<\nyy?", "html", marks + 1)).toBe("<div>x&#x3C;<br />yy</div>");
    expect(shown("x<\nyy", "html", 3)).toBe("<div></div>");
  });

  test("ends for good: what follows does not take the place of what has none", () => {
    const room = { chars: 20 };
    const parts = ["?".repeat(4), "b"].map((text) => [...rendered(() => [text], "html")(room)].join(""));
    expect(parts).toEqual(["<div></div>", "<div></div>"]);
  });

  test("is at most so long, though it be of marks alone", () => {
    const piece = "<".repeat(64 * 1024);
    const text = function* (): Generator<string> {
      for (let at = 0; at < 400; at++) yield piece;
    };
    let length = 0;
    for (const html of rendered(text, "html")(roomFor("html"))) length += html.length;
    const one = piece.length * "&#x3C;".length;
    expect(length).toBe("<div></div>".length + Math.floor(MAX_HTML_MADE_CHARS / one) * one);
  });
});

describe("a mail that shows a text and much html", () => {
  const mail = (octets: number): Buffer => {
    const html = `<p>first</p>${"<i>x</i>\r\n".repeat(octets / 10)}`.padEnd(octets - 4, " ");
    const parts = [
      "--b\r\nContent-Type: text/plain\r\n\r\nown\r\n",
      `--b\r\nContent-Type: text/html\r\n\r\n${html}last\r\n`,
      "--b\r\nContent-Type: text/plain\r\n\r\nfooter\r\n",
    ];
    const head = "Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n";
    return Buffer.from(`${head}${parts.join("")}--b--\r\n`, "latin1");
  };

  test("shows the html wholly, and of its text the beginning beside all of its own", async () => {
    const { text, html } = await parseMail(mail(2 * MAX_HTML_READ_CHARS));
    expect(text).toMatch(/^own\n\s*first\s/);
    expect(text).toMatch(/\sfooter\n$/);
    expect(text).not.toContain("last");
    expect(html).toContain("<p>first</p>");
    expect(html).toMatch(/last\n\n<div>footer<\/div>$/);
  });

  test("and all of the text of html that is not larger", async () => {
    expect((await parseMail(mail(MAX_HTML_READ_CHARS / 2))).text).toContain("last");
  });

  test("says the same each time that it is read", async () => {
    const opened = await openMail(mail(2 * MAX_HTML_READ_CHARS));
    const { text } = await parseMail(mail(2 * MAX_HTML_READ_CHARS));
    if (opened.text === null) throw new Error("the mail has a text");
    expect(wholeText(opened.text) === text).toBe(true);
    expect(wholeText(opened.text) === text).toBe(true);
  });
});
