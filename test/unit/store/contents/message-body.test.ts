import { expect, test } from "bun:test";
import { bodyBytes, bodyIn } from "../../../../src/store/contents/message-body.ts";

const NONE = { html: null, text: null, replyText: null };

test.each([
  ["nothing", NONE],
  ["empty texts, which differ from absent ones", { html: "", text: "", replyText: "" }],
  ["one text", { ...NONE, text: "only" }],
  ["texts that end as JSON does", { html: "{}", text: '{"a":1}', replyText: "}" }],
  ["a text that looks like an end", { ...NONE, html: '{"octets":[1,null,null]}00000018\0' }],
  ["characters of one to four octets", { html: "aü€😀", text: "😀€üa", replyText: "€" }],
  ["header fields", { ...NONE, text: "x", headers: { Subject: "ü\ud800", "X-Empty": "" } }],
])("a body of %s is read as it was written", (_, body) => {
  expect(bodyIn(bodyBytes(body))).toEqual(body);
});

test("a lone surrogate becomes the replacement character", () => {
  const body = bodyIn(bodyBytes({ html: "a\udc00", text: "\ud800é" }));
  expect(body).toMatchObject({ html: "a\ufffd", text: "\ufffdé" });
});

test("surrogate halves at the end of one text and the start of the next stay separate", () => {
  const body = bodyIn(bodyBytes({ html: "a\ud83d", text: "\ude00b\ud83d", replyText: "\ude00" }));
  expect(body).toEqual({ html: "a\ufffd", text: "\ufffdb\ufffd", replyText: "\ufffd" });
});

test("equal bodies have equal bytes, and a text in another part has different ones", () => {
  const bytes = [
    { html: "a", text: "b" },
    { html: "a", text: "b" },
    { html: "ab", text: "" },
  ].map(bodyBytes);
  expect(bytes[0]).toEqual(bytes[1] ?? Buffer.of());
  expect(bytes[0]).not.toEqual(bytes[2] ?? Buffer.of());
});
