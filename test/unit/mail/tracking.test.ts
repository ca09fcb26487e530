import { describe, expect, test } from "bun:test";
import {
  isMachine,
  MAX_USER_AGENT_CHARS,
  PREFETCH_WINDOW_MS,
  type Visit,
} from "../../../src/core/machine-agents.ts";
import { newId } from "../../../src/core/ids.ts";
import { MIN_TEXT_FOR_PICTURE } from "../../../src/core/messages/tracking.ts";
import { openUrl, sealUrl } from "../../../src/core/crypto/tracking-token.ts";
import { recipientToken } from "../../../src/flows/mime/recipient-token.ts";
import { clickOn, openedBy, trackedHtml } from "../../../src/flows/mime/tracking-links.ts";
import { unsubscribeUrl } from "../../../src/flows/mime/unsubscribe.ts";
import {
  decodeAttribute,
  hrefUrl,
  isTrackableUrl,
  locationOf,
  MAX_ATTRIBUTE_CHARS,
  MAX_TRACKED_URL_BYTES,
} from "../../../src/mail/text/href.ts";
import { MAX_TRACKED_LINKS, trackHtml } from "../../../src/mail/tracking.ts";

const PIXEL_URL = "https://t.test/o/abc";
const PIXEL = `<div style="width:1px;height:1px;background-image:url(${PIXEL_URL})"><!--[if mso]><img src="${PIXEL_URL}" alt="" width="1" height="1" style="border:0"><![endif]--></div>`;

/** The html, with each link replaced by `[its URL]`. */
function links(html: string): string {
  return trackHtml(html, { pixelUrl: null, linkFor: (url) => `[${url}]` });
}

function pixel(html: string): string {
  return trackHtml(html, { pixelUrl: PIXEL_URL, linkFor: null });
}

describe("a link is replaced by a tracking link", () => {
  test.each([
    [`<a href="https://a.test/">x</a>`, `<a href="[https://a.test/]">x</a>`],
    [`<a href='http://a.test'>x</a>`, `<a href="[http://a.test]">x</a>`],
    [`<a href=http://a.test/b class=c>x</a>`, `<a href="[http://a.test/b]" class=c>x</a>`],
    [`<A CLASS="c" HREF="HTTPS://A.TEST/">x</A>`, `<A CLASS="c" HREF="[HTTPS://A.TEST/]">x</A>`],
    [`<map><area href="https://a.test/"></map>`, `<map><area href="[https://a.test/]"></map>`],
    [`<a href="\n https://a.test/ \t">x</a>`, `<a href="[https://a.test/]">x</a>`],
    [`<a href="https://a.test/?a=1&amp;b=2">x</a>`, `<a href="[https://a.test/?a=1&amp;b=2]">x</a>`],
    [`<a href="&#104;&#x74;tps&#58;//a.test">x</a>`, `<a href="[https://a.test]">x</a>`],
    [`<a href="https://münchen.test/ä?ü">x</a>`, `<a href="[https://münchen.test/ä?ü]">x</a>`],
    [
      `<a href="https://a.test/" href="https://b.test/">x</a>`,
      `<a href="[https://a.test/]" href="https://b.test/">x</a>`,
    ],
    [`<svg><a href="https://a.test/"></a></svg>`, `<svg><a href="[https://a.test/]"></a></svg>`],
    [`<p><a href="https://a.test/"><b>never closed`, `<p><a href="[https://a.test/]"><b>never closed`],
  ])("%s", (html, marked) => {
    expect(links(html)).toBe(marked);
  });
});

describe("a link whose text is an address stays as it is", () => {
  test.each([
    "https://a.test/",
    "www.a.com/orders",
    "a.com",
    "Shop.Example.co.uk",
    "  <b>www.</b>a<i>.com</i> ",
    "mail@a.com",
    "(a.com)",
    "See https://a.test/ now",
    "a&#46;com",
    "münchen.de",
  ])("%s", (text) => {
    const html = `<p>Hi</p><a href="https://a.test/x">${text}</a>`;
    expect(links(html)).toBe(html);
  });

  test.each([
    "Shop",
    "Node.ts",
    "v1.2",
    "Save 3.50 now",
    "Read a.com now",
    "@ana",
    "",
    "<img src=https://a.com>",
  ])("and not if the text is %j", (text) => {
    expect(links(`<a href="https://a.test/x">${text}</a>`)).toBe(`<a href="[https://a.test/x]">${text}</a>`);
  });

  test("and another link to the same place is tracked", () => {
    const link = (text: string, url = "https://a.com/") => `<a href="${url}">${text}</a>`;
    expect(links(link("logo") + link("a.com") + link("home"))).toBe(
      link("logo", "[https://a.com/]") + link("a.com") + link("home", "[https://a.com/]"),
    );
  });

  test("which takes time in proportion to the html, whatever it is", () => {
    for (const piece of ["</a", "<a>.x</a", "a.".repeat(300), '<a href="https://a.com">a.com</a>']) {
      const html = piece.repeat(200_000 / piece.length);
      const begun = performance.now();
      links(html);
      expect(performance.now() - begun).toBeLessThan(1000);
    }
  });
});

describe("everything else stays the same, byte for byte", () => {
  const far = `https://a.test/${"x".repeat(MAX_TRACKED_URL_BYTES - 15)}`;
  test.each([
    "",
    "no markup at all",
    `<a>x</a><a name="y">x</a><a href>x</a><a href="">x</a>`,
    `<a href="mailto:a@b.test">x</a>`,
    `<a href="tel:+123">x</a><a href="sms:+123">x</a>`,
    `<a href="#part">x</a><a href="?q">x</a><a href="/path">x</a><a href="page.html">x</a>`,
    `<a href="//a.test/">x</a>`,
    `<a href="https:a.test">x</a><a href="https:/a.test">x</a><a href="https:\\\\a.test">x</a>`,
    `<a href="https:////a.test">x</a><a href="https://">x</a><a href="https://?">x</a>`,
    `<a href="javascript:alert(1)">x</a>`,
    `<a href="java&#10;script:alert(1)">x</a>`,
    `<a href="java&Tab;script:alert(1)">x</a>`,
    `<a href="java\nscript:alert(1)">x</a>`,
    `<a href="&#1;javascript:alert(1)">x</a>`,
    `<a href="data:text/html,https://a.test/">x</a><a href="vbscript:https://a.test">x</a>`,
    `<a href="ht\ntps://a.test/">x</a>`,
    `<a href="https://a.test/&#13;&#10;Set-Cookie: a=b">x</a>`,
    `<a href="https://a.test/&#x7f;">x</a><a href="https://a.test/\u0000">x</a>`,
    `<a href="https://user:secret@a.test/">x</a><a href="https://a.test@b.test/">x</a><a href="https://@b.test/">x</a>`,
    `<a href="https://a b.test/">x</a><a href="https://[::1/">x</a>`,
    `<a href="https://a.test/?a=1&copy;b">x</a><a href="https://a.test/?a=1&copy">x</a>`,
    `<a href="https://a.test/&#0;">x</a><a href="https://a.test/&#xd800;">x</a><a href="https://a.test/&#x110000;">x</a>`,
    `<a data-no-track href="https://a.test/">x</a><a DATA-NO-TRACK="" href="https://a.test/">x</a>`,
    `<link href="https://a.test/"><base href="https://a.test/"><img src="https://a.test/"><img src="cid:logo">`,
    `<form action="https://a.test/"></form><div href="https://a.test/">x</div>`,
    `<!-- <a href="https://a.test/">x</a> -->`,
    `<!--[if mso]><a href="https://a.test/">x</a><![endif]-->`,
    `<style>a[href="https://a.test/"]{}</style><script>"<a href='https://a.test/'>"</script>`,
    `<textarea><a href="https://a.test/">x</a></textarea><title><a href="https://a.test/"></title>`,
    `<a href="https://a.test/`,
    `text https://a.test/ and &lt;a href="https://a.test/"&gt;`,
    `<a href="${far}x">x</a>`,
  ])("%s", (html) => {
    expect(links(html)).toBe(html);
  });

  test("a URL of the greatest length is tracked, one byte more is not", () => {
    expect(far.length).toBe(MAX_TRACKED_URL_BYTES);
    expect(links(`<a href="${far}">`)).toBe(`<a href="[${far}]">`);
    const wide = `${far.slice(0, -1)}é`;
    expect(wide.length).toBe(MAX_TRACKED_URL_BYTES);
    expect(links(`<a href="${wide}">`)).toBe(`<a href="${wide}">`);
  });

  test("links beyond the limit, without counting those that are not tracked", () => {
    const one = `<a href="https://a.test/">x</a>`;
    const html = `<a href="mailto:a@b.test">x</a>${one.repeat(MAX_TRACKED_LINKS + 1)}`;
    const marked = links(html);
    expect(marked.split("[https://a.test/]")).toHaveLength(MAX_TRACKED_LINKS + 1);
    expect(marked.endsWith(one)).toBe(true);
  });

  test("an attribute longer than a URL of the greatest length", () => {
    const url = "https://a.test/";
    const most = url.padStart(MAX_ATTRIBUTE_CHARS);
    expect(hrefUrl(most)).toBe(url);
    expect(hrefUrl(` ${most}`)).toBeNull();
  });

  test("an attribute of endless white space takes linear time", () => {
    const html = `<a href="https://a.test/${" ".repeat(2_000_000)}x">x</a>`;
    expect(links(html)).toBe(html);
  });

  test("html on which the rewriting fails", () => {
    const html = `<a href="https://a.test/">x</a>`;
    const fails = (): string => {
      throw new Error("no link");
    };
    expect(trackHtml(html, { pixelUrl: PIXEL_URL, linkFor: fails })).toBe(html);
    // The failure does not affect the next message.
    expect(links(html)).not.toBe(html);
  });
});

describe("references in an attribute are decoded as HTML does", () => {
  test.each([
    ["a&amp;b", "a&b"],
    ["a&ampb", "a&ampb"],
    ["a&amp=b", "a&amp=b"],
    ["a&amp", "a&"],
    ["a&amp;amp;", "a&amp;"],
    ["a&b=1&c", "a&b=1&c"],
    ["?a&copy=1&reg=2&lang", "?a&copy=1&reg=2&lang"],
    ["&quot;&apos;&lt;&gt;&AMP;", `"'<>&`],
    ["&#38;&#38&#x26;&#X26", "&&&&"],
    ["&#x1F600;", "😀"],
    ["&;&#;&#x;& ", "&;&#;&#x;& "],
    ["&copy;", null],
    ["&copy/", null],
    ["&unknown;", null],
    ["&constructor;", null],
    ["&#0;", null],
    ["&#128;", null],
    ["&#xdfff;", null],
    [`&#${"9".repeat(400)};`, null],
  ])("%s", (source, value) => {
    expect(decodeAttribute(source)).toBe(value);
  });
});

describe("the tracking pixel is inserted", () => {
  test.each([
    ["", PIXEL],
    ["hi", `hi${PIXEL}`],
    ["<p>hi", `<p>hi${PIXEL}`],
    ["<html><body><p>hi</p></body></html>", `<html><body><p>hi</p>${PIXEL}</body></html>`],
    ["<BODY>hi</BODY >", `<BODY>hi${PIXEL}</BODY >`],
    ["<body>never closed", `<body>never closed${PIXEL}`],
    ["never opened</body></html>", `never opened</body></html>${PIXEL}`],
    ["<body>a</body><body>b</body>", `<body>a${PIXEL}</body><body>b</body>`],
    ["<body><!-- </body> -->x</body>", `<body><!-- </body> -->x${PIXEL}</body>`],
    ["<body><textarea></body></textarea></body>", `<body><textarea></body></textarea>${PIXEL}</body>`],
    [`<body><a title="</body>">x</a></body>`, `<body><a title="</body>">x</a>${PIXEL}</body>`],
  ])("the tracking pixel is inserted at the end of the body, once: %s", (html, marked) => {
    expect(pixel(html)).toBe(marked);
  });

  test.each([
    "hi <!-- never closed",
    "hi <textarea>never closed",
    "<title>never closed",
    "<plaintext>hi",
    "<style>never closed",
    `hi <a href="https://a.test/`,
    `hi <a title="a > b`,
  ])("the tracking pixel is inserted never where it would be text: %s", (html) => {
    expect(pixel(html)).toBe(html);
  });

  test("the tracking pixel is inserted in its own message only, whatever the previous message had", () => {
    const other = "https://t.test/o/other";
    const both = { pixelUrl: PIXEL_URL, linkFor: () => "https://t.test/c/one" };
    const html = `<a href="https://a.test/">x</a>`;
    trackHtml(html, both);
    expect(trackHtml(html, { pixelUrl: other, linkFor: null })).toBe(
      `${html}${PIXEL.replaceAll(PIXEL_URL, other)}`,
    );
    expect(trackHtml(`hi${PIXEL}`, { pixelUrl: other, linkFor: null })).toContain(PIXEL_URL);
  });

  test("the tracking pixel is inserted with its address escaped", () => {
    const marked = trackHtml("", { pixelUrl: `https://t.test/?a="&b`, linkFor: null });
    expect(marked).toContain(`src="https://t.test/?a=&quot;&amp;b"`);
    expect(marked).toContain(`background-image:url(https://t.test/?a=%22&amp;b)"`);
  });
});

const KEY = Buffer.alloc(32, 1);
const OTHER_KEY = Buffer.alloc(32, 2);
const MESSAGE = newId("msg", 1_700_000_000_000);
const OTHER = newId("msg", 1_700_000_000_001);
const LINKS = { publicUrl: "https://mail.test", trackingKey: KEY };
const URL_ = "https://a.test/?a=1&b=ä";
const token = (messageId: string, ord: number, key: Uint8Array = KEY) =>
  recipientToken(key, { messageId, ord });

describe("a tracking link", () => {
  const own = token(MESSAGE, 0);
  const sealed = sealUrl(KEY, own, URL_);

  test("a tracking link names its recipient and contains its URL", () => {
    const click = {
      recipient: { messageId: MESSAGE, ord: 0 },
      url: URL_,
      location: "https://a.test/?a=1&b=%C3%A4",
    };
    expect(clickOn(LINKS, `${own}.${sealed}`)).toEqual(click);
    expect(clickOn(LINKS, `${own.toUpperCase()}.${sealed}`)).toEqual(click);
  });

  test("a tracking link is invalid if any character is altered", () => {
    for (let at = 0; at < sealed.length; at++) {
      const altered = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1);
      expect(clickOn(LINKS, `${own}.${altered}`)).toBeNull();
    }
    for (let at = 0; at < own.length; at++) {
      const altered = own.slice(0, at) + (own[at] === "0" ? "1" : "0") + own.slice(at + 1);
      expect(clickOn(LINKS, `${altered}.${sealed}`)).toBeNull();
    }
  });

  test.each([
    ["another message's recipient", token(OTHER, 0), sealed],
    ["another recipient", token(MESSAGE, 1), sealed],
    ["a token of another key", token(MESSAGE, 0, OTHER_KEY), sealed],
    ["a URL sealed with another key", own, sealUrl(OTHER_KEY, own, URL_)],
    ["no URL", own, ""],
    ["a tag alone", own, sealUrl(KEY, own, "")],
    ["the URL alone", own, Buffer.from(URL_).toString("base64url")],
    ["the URL in the open", own, URL_],
    ["padding", own, `${sealed}=`],
    ["white space", own, `${sealed} `],
    [
      "the other base64 alphabet",
      own,
      sealUrl(KEY, own, "https://a.test/???>>>").replaceAll("_", "/").replaceAll("-", "+"),
    ],
    ["additional characters", own, `${sealed}AAAA`],
    ["invalid characters", own, "é\u0000"],
    ["no token", "", sealed],
  ])("a tracking link is invalid with %s", (_what, recipient, target) => {
    expect(clickOn(LINKS, `${recipient}.${target}`)).toBeNull();
  });

  test.each([
    "javascript:alert(1)",
    "JavaScript://a.test/%0aalert(1)",
    "data:text/html,x",
    "//evil.test/",
    "/path",
    "\\\\evil.test",
    "https://a.test/\r\nSet-Cookie: a=b",
    "https://a.test/\u0085",
    " https://a.test/",
    "https://user:pw@a.test/",
    "file:///etc/passwd",
    "ftp://a.test/",
    `https://a.test/${"x".repeat(MAX_TRACKED_URL_BYTES)}`,
  ])("leads to web pages only, even if we sealed it: %s", (url) => {
    expect(openUrl(KEY, own, sealUrl(KEY, own, url))).toBe(url);
    expect(isTrackableUrl(url)).toBe(false);
    expect(clickOn(LINKS, `${own}.${sealUrl(KEY, own, url)}`)).toBeNull();
  });

  test("a tracking link is not valid as a pixel address, nor the other way round", () => {
    expect(openedBy(LINKS, sealed)).toBeNull();
    expect(openedBy(LINKS, own)).toEqual({ messageId: MESSAGE, ord: 0 });
    for (const name of [own, `${own}.`, `${own}.${own}`, `.${sealed}`, "."])
      expect(clickOn(LINKS, name)).toBeNull();
  });

  test.each([
    ["https://a.test/b?c=%2F&d#e", "https://a.test/b?c=%2F&d#e"],
    ["HTTP://A.test:80", "HTTP://A.test:80"],
    ["https://a.test/b c", "https://a.test/b%20c"],
    ["https://münchen.test/ä", "https://xn--mnchen-3ya.test/%C3%A4"],
  ])("redirects to an ASCII form, unchanged if it is ASCII already: %s", (url, location) => {
    expect(hrefUrl(url)).toBe(url);
    expect(locationOf(url)).toBe(location);
  });
});

describe("a message of one recipient", () => {
  const message = { id: MESSAGE, trackOpens: true, trackClicks: true, linkUrl: LINKS.publicUrl };
  const html = `<a href="https://a.test/">x</a>`;

  test("a message of one recipient has the tracking that its switches request", () => {
    const link = `https://mail.test/c/${token(MESSAGE, 2)}.${sealUrl(KEY, token(MESSAGE, 2), "https://a.test/")}`;
    const picture = `<div style="width:1px;height:1px;background-image:url(https://mail.test/o/${token(MESSAGE, 2)})">`;
    const marked = trackedHtml(LINKS, message, 2, html);
    expect(marked).toContain(`href="${link}"`);
    expect(marked).toContain(picture);
    expect(trackedHtml(LINKS, { ...message, trackOpens: false }, 2, html)).toBe(`<a href="${link}">x</a>`);
    expect(trackedHtml(LINKS, { ...message, trackClicks: false }, 2, html)).toStartWith(`${html}${picture}`);
    expect(trackedHtml(LINKS, { ...message, trackOpens: false, trackClicks: false }, 2, html)).toBe(html);
    const auto = { ...message, trackOpens: "auto", trackClicks: false } as const;
    const short = `<style>${"x".repeat(MIN_TEXT_FOR_PICTURE)}</style>${"ab cd ".repeat(MIN_TEXT_FOR_PICTURE / 4)}`;
    expect(trackedHtml(LINKS, auto, 2, short.slice(0, -3))).not.toContain("<img");
    expect(trackedHtml(LINKS, auto, 2, short)).toContain("<img");
  });

  test("a message of one recipient leaves the unsubscribe link and tracked links alone", () => {
    const unsubscribe = unsubscribeUrl({ publicUrl: LINKS.publicUrl, unsubscribeKey: OTHER_KEY }, MESSAGE, 0);
    const once = trackedHtml(LINKS, { ...message, trackOpens: false }, 0, html);
    for (const kept of [`<a href="${unsubscribe}">x</a>`, `<a href="https://mail.test&#x2F;u/x">x</a>`, once])
      expect(trackedHtml(LINKS, { ...message, trackOpens: false }, 0, kept)).toBe(kept);
  });

  test("a message of one recipient has its links at the host of its domain, and leaves those at PUBLIC_URL alone", () => {
    const linkUrl = "https://links.news.test";
    const marked = trackedHtml(LINKS, { ...message, linkUrl }, 0, html);
    expect(marked).toContain(`href="${linkUrl}/c/`);
    expect(marked).toContain(`src="${linkUrl}/o/`);
    expect(marked).not.toContain(LINKS.publicUrl);
    for (const base of [linkUrl, LINKS.publicUrl]) {
      const kept = `<a href="${unsubscribeUrl({ publicUrl: base, unsubscribeKey: OTHER_KEY }, MESSAGE, 0)}">x</a>`;
      expect(trackedHtml(LINKS, { ...message, linkUrl, trackOpens: false }, 0, kept)).toBe(kept);
    }
  });
});

const BROWSER =
  "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15";
const VISIT: Visit = { method: "GET", ip: "192.0.2.1", userAgent: BROWSER, purpose: null };

describe("a machine is distinguished from a person", () => {
  const WEBKIT = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)";
  test.each<[string, Partial<Visit>, number | null, boolean]>([
    ["a browser", {}, null, false],
    [
      "Thunderbird",
      { userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.1" },
      null,
      false,
    ],
    [
      "Outlook",
      { userAgent: "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; ms-office; MSOffice 16)" },
      null,
      false,
    ],
    ["a mail program on a telephone", { userAgent: "okhttp/4.12.0" }, null, false],
    [
      "a CUBOT telephone",
      { userAgent: "Mozilla/5.0 (Linux; Android 12; CUBOT NOTE 20) Chrome/120.0 Mobile Safari/537.36" },
      null,
      false,
    ],
    ["Apple Mail without a proxy", { userAgent: WEBKIT }, null, false],
    ["a person in Apple's network", { ip: "17.58.1.2" }, null, false],
    ["a person with something else that ends in 17", { ip: "117.0.0.1", userAgent: WEBKIT }, null, false],
    ["Apple's proxy", { userAgent: "Mozilla/5.0" }, null, true],
    ["Apple's network without a browser", { ip: "17.58.1.2", userAgent: WEBKIT }, null, true],
    ["the same on a dual-stack listener", { ip: "::ffff:17.58.1.2", userAgent: WEBKIT }, null, true],
    [
      "Gmail's proxy",
      {
        userAgent:
          "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
      },
      null,
      true,
    ],
    [
      "Yahoo's proxy",
      { userAgent: "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html" },
      null,
      true,
    ],
    ["a preview", { userAgent: `${BROWSER} BingPreview/1.0b` }, null, true],
    ["Office", { userAgent: "Microsoft Office Existence Discovery" }, null, true],
    ["a gateway", { userAgent: "Mozilla/5.0 (compatible; Barracuda Sentinel (EE))" }, null, true],
    [
      "a crawler",
      { userAgent: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)" },
      null,
      true,
    ],
    [
      "a chat program",
      { userAgent: "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)" },
      null,
      true,
    ],
    [
      "a browser without a person",
      { userAgent: "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/120.0" },
      null,
      true,
    ],
    ["a library", { userAgent: "python-requests/2.31.0" }, null, true],
    ["nobody", { userAgent: null }, null, true],
    ["an empty name", { userAgent: "" }, null, true],
    ["HEAD", { method: "HEAD" }, null, true],
    ["a prefetch", { purpose: "prefetch;prerender" }, null, true],
    ["Safari's preview", { purpose: "preview" }, null, true],
    ["some other purpose", { purpose: "navigate" }, null, false],
    ["before the delivery was recorded", {}, 0, true],
    ["just within the window", {}, PREFETCH_WINDOW_MS - 1, true],
    ["just after the window", {}, PREFETCH_WINDOW_MS, false],
    [
      "a name past the part that is read",
      { userAgent: `${"x".repeat(MAX_USER_AGENT_CHARS)} Googlebot` },
      null,
      false,
    ],
  ])("%s", (_who, visit, sinceDelivery, machine) => {
    expect(isMachine({ ...VISIT, ...visit }, sinceDelivery)).toBe(machine);
  });
});
