import { describe, expect, test } from "bun:test";
import {
  contentIdsIn,
  MAX_INLINE_CHARS,
  MAX_OPEN_ELEMENTS,
  MAX_PREVIEW_CHARS,
  previewPage,
  shownPart,
} from "../../../../src/core/messages/preview-page.ts";

const PICTURE = "data:image/png;base64,AAAA";

function page(html: string, images: [string, string][] = [], cut = false): string {
  return previewPage({ html, cut, images: new Map(images) }, "light");
}

describe("the page of a preview", () => {
  test.each([
    '<link rel=preconnect href="//a">',
    "<LINK\nrel=preload>",
    "<link/rel=icon>",
    "<link>",
    "<meta http-equiv=refresh content=0>",
    "<BASE target=_top>",
    "<iframe src=//a></iframe>",
    "<frame\fsrc=//a>",
    "<object data=//a></object>",
    "<embed src=//a>",
  ])("the page of a preview has no tag such as %j, which acts by itself", (tag) => {
    const own = page("").length;
    expect(page(`a${tag}b`).slice(own)).not.toMatch(/<\/?(?:link|meta|base|i?frame|object|embed)\b/i);
  });

  test("the page of a preview keeps tags that only begin like one of them", () => {
    for (const tag of ["<metal>", "<linked>", "<basefont>", "<header>"]) expect(page(tag)).toEndWith(tag);
  });

  test("lets no image set its own referrer policy", () => {
    expect(page('<img ReferrerPolicy="unsafe-url">')).toEndWith('<img inert-ReferrerPolicy="unsafe-url">');
  });

  test.each([
    ["", "dark", "light"],
    ["<p style='color:#111'>", "dark", "light"],
    ['<meta name="color-scheme" content="light dark">', "dark", "dark"],
    ["<style>@media (prefers-color-scheme: dark) {p {color: #eee}}</style>", "dark", "dark"],
    ['<meta name="color-scheme" content="light dark">', "light", "light"],
  ] as const)("the page of %p in the %s theme is %s", (html, theme, shown) => {
    const shownPage = previewPage({ html, cut: false, images: new Map() }, theme);
    expect(shownPage).toContain(`:root{color-scheme:${shown};`);
  });
});

describe("the message's own images", () => {
  test.each([
    ['<img src="cid:a@b">', "a@b"],
    ["<img src='cid:a%40b'>", "a@b"],
    ["<img src=CID:a@b >", "a@b"],
    ["<td style='background:url(cid:a@b)'>", "a@b"],
    ['<img src="cid:a&amp;b">', "a&b"],
    ['<img src="cid:%">', "%"],
  ])("the message's own images are found in %s and put into the page", (html, id) => {
    expect(contentIdsIn(html)).toEqual([id]);
    expect(page(html, [[id, PICTURE]])).toContain(PICTURE);
    expect(page(html, [[id, PICTURE]])).not.toMatch(/cid:/i);
  });

  test("the message's own images that are missing are empty, and text that looks like one stays", () => {
    expect(page('<img src="cid:none">')).toEndWith('<img src="data:,">');
    expect(page("<p>see cid:none</p>")).toEndWith("<p>see cid:none</p>");
    expect(contentIdsIn("<p>see cid:none</p>")).toEqual([]);
  });

  test("the message's own images have a limit together, however often one is used", () => {
    const large = `data:image/png;base64,${"A".repeat(MAX_INLINE_CHARS / 4)}`;
    const shown = page('<img src="cid:a">'.repeat(10), [["a", large]]);
    expect(shown.split(large)).toHaveLength(4);
    expect(shown.split("data:,")).toHaveLength(8);
  });
});

describe("a message that is too large for browsers", () => {
  test("a message that is too large for browsers is shown up to its limit of characters, with a note", () => {
    const just = "x".repeat(MAX_PREVIEW_CHARS);
    expect(shownPart(just)).toBe(just);
    expect(shownPart(`${just}x`)).toBe(just);
    expect(page("x", [], true)).toContain("too large for a preview");
    expect(page("x")).not.toContain("too large");
  });

  test("a message that is too large for browsers is shown up to its limit of open elements", () => {
    const just = "<div>".repeat(MAX_OPEN_ELEMENTS);
    expect(shownPart(`${just}x`)).toBe(`${just}x`);
    expect(shownPart(`${just}x<b>y`)).toBe(`${just}x`);
  });

  test("a message that is too large for browsers may have any number of elements one after the other", () => {
    for (const part of ["<i>x</i>", "<p>x", "<li>x", "<br>", "<img src=x>", "<tr><td>x", "</div>"]) {
      const html = part.repeat(10_000);
      expect(shownPart(html)).toBe(html);
    }
  });
});
