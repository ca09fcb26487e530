import { expect, test } from "bun:test";
import { type Draft, findingsIn } from "../../../../src/mail/text/findings.ts";

const MIB = 1024 * 1024;
const GOOD: Draft = {
  subject: "Your order",
  html: '<p>Hello, <a href="https://shop.example/1">your order</a></p> Unsubscribe',
  text: "Hello. Unsubscribe: https://x.example/u",
  makesText: false,
  unsubscribes: true,
  attachments: [],
  htmlOctets: 100,
};
const file = (filename: string, octets = 1) => ({ filename, octets });
const linked = (url: string, text: string) => ({ html: `Hello, <a href="${url}">${text}</a>` });
const sized = (htmlOctets: number) => ({ htmlOctets });

test.each<[name: string, change: Partial<Draft>, codes: string[]]>([
  ["nothing wrong", {}, []],
  ["only text", { html: null }, []],
  ["html alone", { text: null }, ["missing_text"]],
  ["html alone, from which a text is made", { text: null, makesText: true }, []],
  ["a blank text, for which none is made", { text: " \n", makesText: true }, ["missing_text"]],
  ["as much html as Gmail shows", sized(102 * 1024), []],
  ["an octet more html than Gmail shows", sized(102 * 1024 + 1), ["html_clipped"]],
  ["a blank subject", { subject: " " }, ["no_subject"]],
  ["a subject of 78 characters", { subject: "s".repeat(78) }, []],
  ["a subject of 79 characters", { subject: "s".repeat(79) }, ["long_subject"]],
  ["a link that names its host", linked("https://shop.example/1", "shop.example"), []],
  ["a link that names its host with www", linked("https://shop.example/1", "www.Shop.example/1"), []],
  ["a link to a host below the named one", linked("https://click.shop.example/", "shop.example"), []],
  ["a link to a host above the named one", linked("https://shop.example/", "eu.shop.example"), []],
  ["a link to another host", linked("https://evil.example/", "https://shop.example"), ["link_text_mismatch"]],
  [
    "a link to a host that only ends like the named one",
    linked("https://myshop.example/", "shop.example"),
    ["link_text_mismatch"],
  ],
  ["a link with a sentence that has a host", linked("https://a.example/", "see shop.example now"), []],
  ["a link without TLS", linked("http://shop.example/", "shop"), ["insecure_link"]],
  [
    "words that only speak of a browser",
    { html: "Voir dans votre navigateur<p>Hello</p>" },
    ["no_preheader"],
  ],
  ["html of a picture without words", { html: '<img src="https://shop.example/1.png">' }, ["no_preheader"]],
  ["a picture's name first", { html: '<img src="1.png" alt="Logo">Hello' }, ["no_preheader"]],
  ["a link first", { html: '<a href="https://shop.example/">Shop</a> Hello' }, ["no_preheader"]],
  ["the subject again", { html: "<title>x</title><h1>Your order:</h1><p>Hello</p>" }, ["no_preheader"]],
  ["a picture without a name first", { html: '<img src="1.png" alt="">Hello' }, []],
  ["hidden words first", { html: '<i style="display:none">Hello</i><img src="1.png" alt="Logo">' }, []],
  ["no way to unsubscribe", { unsubscribes: false, html: null, text: "Hello" }, ["no_unsubscribe"]],
  ["one click, and no link that shows it", { html: null, text: "Hello" }, ["no_visible_unsubscribe"]],
  [
    "one click, and the variable of its link",
    { html: '<p>Hello</p><a href="{{ unsubscribeUrl }}">Bye</a>' },
    [],
  ],
  ["a word for unsubscribing in its text", { unsubscribes: false, text: "Abmelden: hier" }, []],
  [
    "a word for unsubscribing in a link",
    { unsubscribes: false, ...linked("https://a.example/unsubscribe", "x") },
    [],
  ],
  ["a program", { attachments: [file("setup.EXE")] }, ["refused_attachment"]],
  ["an archive", { attachments: [file("photos.zip")] }, ["doubted_attachment"]],
  ["a file whose name only begins like a program's", { attachments: [file("a.exe.pdf")] }, []],
  ["an image of 1 MiB", { attachments: [file("a.png", MIB)] }, []],
  ["an image larger than 1 MiB", { attachments: [file("a.JPEG", MIB + 1)] }, ["large_image"]],
  ["a document larger than 1 MiB", { attachments: [file("a.pdf", MIB + 1)] }, []],
  ["10 MiB of attachments", { attachments: [file("a.pdf", 9 * MIB), file("b.pdf", MIB)] }, []],
  [
    "more than 10 MiB of attachments",
    { attachments: [file("a.pdf", 9 * MIB), file("b.pdf", MIB + 1)] },
    ["large_message"],
  ],
  [
    "a warning after a remark, which the warning precedes",
    { subject: "s".repeat(79), attachments: [file("a.exe")] },
    ["refused_attachment", "long_subject"],
  ],
])("a message with %s has the findings of it", (_name, change, codes) => {
  expect(findingsIn({ ...GOOD, ...change }).map(({ code }) => code)).toEqual(codes);
});

test("at most ten findings of a kind are shown, and every link without TLS is counted", () => {
  const ten = (count: number, piece: string) => `Hello ${piece.repeat(count)}`;
  const codesOf = (change: Partial<Draft>) => findingsIn({ ...GOOD, ...change }).map(({ code }) => code);
  const mismatch = '<a href="https://evil.example/">shop.example</a> ';
  expect(codesOf({ html: ten(10, mismatch) })).toHaveLength(10);
  expect(codesOf({ html: ten(11, mismatch) })).toHaveLength(10);
  const files = (count: number) => ({ attachments: Array.from({ length: count }, () => file("a.exe")) });
  expect(codesOf(files(10))).toHaveLength(10);
  expect(codesOf(files(11))).toHaveLength(10);
  const [finding] = findingsIn({ ...GOOD, html: ten(2, '<a href="http://shop.example/">x</a>') });
  expect(finding?.message).toStartWith("2 links ");
});
