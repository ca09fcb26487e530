import { describe, expect, test } from "bun:test";
import { wholeText } from "../../../../src/mail/reading/mail-text.ts";
import type { TextKind } from "../../../../src/mail/decoding/mime-part.ts";
import { openMail, parseMail } from "../../../../src/mail/reading/parse.ts";
import {
  MAX_HTML_MADE_CHARS,
  MAX_HTML_READ_CHARS,
  rendered,
  roomFor,
} from "../../../../src/mail/reading/rendered-text.ts";

const PAGE = "<p>a &amp; b</p>";
const shown = (text: string, as: TextKind, chars: number): string =>
  [...rendered(() => text.match(/.{1,5}/gs) ?? [], as)({ chars })].join("");

describe("text rendered from html parts", () => {
  test.each([
    ["is complete if there is room for it", PAGE, PAGE.length, "\n\na & b\n"],
    ["ends where the room does", PAGE, PAGE.length - 5, "\n\na & "],
    ["has nothing of a tag that is cut in two", PAGE, PAGE.length - 2, "\n\na & b"],
    ["has nothing of a surrogate pair that is cut in two", "<p>a \u{1f600}</p>", 6, "a"],
    ["has an unclosed tag as text", "a <b", 4, "a <b"],
    ["is empty if there is no room", PAGE, 0, ""],
  ])("%s", (_, html, room, text) => {
    expect(shown(html, "plain", room).trim()).toBe(text.trim());
  });

  test("several html parts share the room for rendered text, each time that they are read", () => {
    const parts = [PAGE, PAGE, PAGE].map((html) => rendered(() => [html], "plain"));
    const read = (): string[] => {
      const room = { chars: PAGE.length * 2 - 5 };
      return parts.map((part) => [...part(room)].join("").trim());
    };
    expect(read()).toEqual(["a & b", "a &", ""]);
    expect(read()).toEqual(["a & b", "a &", ""]);
  });
});

describe("html rendered from text parts", () => {
  const whole = "<div>x&#x3C;<br />y</div>";
  const marks = whole.length - "<div></div>".length;

  test("html rendered from text parts is complete if there is room for it, and ends with whole characters and tags", () => {
    expect(shown(" x<\ny ", "html", marks)).toBe(whole);
    expect(shown("x<\nyy?", "html", marks + 1)).toBe("<div>x&#x3C;<br />yy</div>");
    expect(shown("x<\nyy", "html", 3)).toBe("<div></div>");
  });

  test("html rendered from text parts stays ended: later text does not fill room that earlier text was too large for", () => {
    const room = { chars: 20 };
    const parts = ["?".repeat(4), "b"].map((text) => [...rendered(() => [text], "html")(room)].join(""));
    expect(parts).toEqual(["<div></div>", "<div></div>"]);
  });

  test("html rendered from text parts is bounded in length, even if it consists of markup alone", () => {
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

describe("a message that shows a text and much html", () => {
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

  test("a message that shows a text and much html keeps its html, and of its rendered text the beginning after all of its own text", async () => {
    const { text, html } = await parseMail(mail(2 * MAX_HTML_READ_CHARS));
    expect(text).toMatch(/^own\n\s*first\s/);
    expect(text).toMatch(/\sfooter\n$/);
    expect(text).not.toContain("last");
    expect(html).toContain("<p>first</p>");
    expect(html).toMatch(/last\n\n<div>footer<\/div>$/);
  });

  test("a message that shows a text and much html keeps all rendered text of html that is not larger", async () => {
    expect((await parseMail(mail(MAX_HTML_READ_CHARS / 2))).text).toContain("last");
  });

  test("a message that shows a text and much html is the same each time that it is read", async () => {
    const opened = await openMail(mail(2 * MAX_HTML_READ_CHARS));
    const { text } = await parseMail(mail(2 * MAX_HTML_READ_CHARS));
    if (opened.text === null) throw new Error("the mail has a text");
    expect(wholeText(opened.text) === text).toBe(true);
    expect(wholeText(opened.text) === text).toBe(true);
  });
});
