import { describe, expect, test } from "bun:test";
import {
  MAX_TEXT_SOURCE_CHARS,
  MAX_TEXT_SOURCE_CHILDREN,
  MAX_TEXT_SOURCE_DEPTH,
  textFromHtml,
} from "../../../../src/mail/composing/text-from-html.ts";

describe("a text part made from html", () => {
  test.each([
    ["paragraphs and lines", "<p>Hello\n Ana</p><p>One<br>two</p>", "Hello Ana\n\nOne\ntwo\n"],
    ["headings as written", "<h1>Your order</h1>Thanks", "Your order\n\nThanks\n"],
    [
      "the address of a link",
      '<a href="https://x.test/a?b=1&amp;c=2">Read</a>',
      "Read <https://x.test/a?b=1&c=2>\n",
    ],
    [
      "an address that is its own text once",
      '<a href="https://x.test/">https://x.test/</a>',
      "https://x.test/\n",
    ],
    [
      "a linked picture",
      '<a href="https://x.test/"><img src="p.png" alt="Shop"></a>',
      "Shop <https://x.test/>\n",
    ],
    ["mail addresses", '<a href="mailto:ana@x.test">Write</a>', "Write <mailto:ana@x.test>\n"],
    ["no address of a program or an anchor", '<a href="javascript:x()">a</a> <a href="#b">b</a>', "a b\n"],
    ["lists", "<ul><li>one<ol><li>two</li></ol></li><li>three</li></ul>", "- one\n- two\n- three\n"],
    [
      "rows of tables",
      "<table><tr><td>Tea</td><td>3 €</td></tr><tr><td>Cake</td></tr></table>",
      "Tea 3 €\nCake\n",
    ],
    [
      "no style, script or hidden words",
      '<style>a{}</style><script>b</script><p style="display:none">c</p>d',
      "d\n",
    ],
    [
      "entities as characters",
      "a &lt; b &amp;&nbsp;c &#x1f600;",
      "a < b & c \u{1f600}\n".replace("& c", "&\u00a0c"),
    ],
    ["no control characters", "a\0b\u001bc&#7;", "abc\n"],
  ])("a text part made from html has %s", (_, html, text) => {
    expect(textFromHtml(html)).toBe(text);
  });

  test.each([
    ["nothing", ""],
    ["white space", " <p>&nbsp;</p>\n"],
    ["a picture without words", '<img src="p.png">'],
  ])("a text part made from html is left out for html of %s", (_, html) => {
    expect(textFromHtml(html)).toBeNull();
  });

  const nested = (levels: number): string => `${"<b>".repeat(levels)}x`;
  const lines = (children: number): string => "<br>".repeat(children - 1) + "x";
  test.each([
    ["characters", (most: number) => "x".repeat(most), MAX_TEXT_SOURCE_CHARS],
    ["nested levels", nested, MAX_TEXT_SOURCE_DEPTH],
    ["children of one element", (most: number) => lines(most), MAX_TEXT_SOURCE_CHILDREN],
  ])(
    "a text part made from html is left out if the html has too many %s, because half a text would mislead",
    (_, html, most) => {
      expect(html(most).length).toBeLessThanOrEqual(MAX_TEXT_SOURCE_CHARS);
      expect(textFromHtml(html(most))).not.toBeNull();
      expect(textFromHtml(html(most + 1))).toBeNull();
    },
  );

  test("a text part made from html does not multiply nested lists, quotes and links", () => {
    const deep = (tag: string): string => `<${tag}>`.repeat(45) + "<br>x".repeat(5000);
    for (const tag of ["blockquote", "ul", "ul><li", 'a href="https://x.test/"'])
      expect(textFromHtml(deep(tag))?.length).toBeLessThan(2 * deep(tag).length);
  });
});
