import { describe, expect, test } from "bun:test";
import { readAddressList } from "../../../../src/mail/reading/address-list.ts";
import { MAX_ADDRESS_FIELD_CHARS, mailboxes, parseMail } from "../../../../src/mail/reading/parse.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

describe("a valid address list (RFC 5322 §3.4 and §4.4)", () => {
  test.each([
    ["an address alone", "a@b.example", ["a@b.example"]],
    ["a local part in quotes", '"a b"@b.example', ['"a b"@b.example']],
    ["one with an at sign", 'Joe <"a@x"@b.example>', ['Joe "a@x"@b.example']],
    [
      "one with brackets, and another address",
      '<"<>"@b.example>, c@d.example',
      ['"<>"@b.example', "c@d.example"],
    ],
    ["one that needs no quotes", '"joe"@b.example', ["joe@b.example"]],
    ["a literal", "a@[192.0.2.1]", ["a@[192.0.2.1]"]],
    ["a route", "Joe <@r1.example,@r2.example:a@b.example>", ["Joe a@b.example"]],
    ["spaces about dots and at signs", "a . b @ c . example", ["a.b@c.example"]],
    ["comments within it", "a (x).b@c.example (Joe)", ["Joe a.b@c.example"]],
    ["comments within brackets", "<(c)a@b.example (d (e) \\) f) >", ["a@b.example"]],
    ["a name in a comment", "a@b.example (J (in) D)", ["J (in) D a@b.example"]],
    ["a name, and a comment", "Joe (x) Doe <a@b.example>", ["Joe Doe a@b.example"]],
    ["initials", "J. R. Doe <a@b.example>", ["J. R. Doe a@b.example"]],
    ["a name in quotes", '"Doe, \\"J\\" \\\\ <x@y>" <a@b.example>', ['Doe, "J" \\ <x@y> a@b.example']],
    ["an address in the name's place", '"a@b.example" <a@b.example>', ["a@b.example"]],
    ["groups", 'Team: a@b.example, Joe <c@d.example>; , "A: B":;', ["a@b.example", "Joe c@d.example"]],
    ["only commas", ",, a@b.example,, ,c@d.example,", ["a@b.example", "c@d.example"]],
    ["letters beyond ASCII", "用户 <jürgen@bücher.example>", ["用户 jürgen@xn--bcher-kva.example"]],
    ["an encoded word with a comma", "=?utf-8?Q?Doe,_John?= <a@b.example>", ["Doe, John a@b.example"]],
    ["an encoded word with parentheses", "=?utf-8?Q?Joe_(x)?= <a@b.example>", ["Joe (x) a@b.example"]],
  ])("%s", (_name, value, expected) => {
    expect(mailboxes(value).map(({ name, email }) => [name, email].filter(Boolean).join(" "))).toEqual(
      expected,
    );
    expect(readAddressList(value)).not.toBeNull();
  });

  test.each([
    "<a@b.example",
    "a@b.example c@d.example",
    "Joe",
    '"a <b@c.example>',
    "<>",
    "a@",
    "(a",
    "x: y: a@b.example;;",
    "x: a@b.example",
    "a@b.example; c@d.example",
    "=?utf-8?q?a@b.example>,?= <c@d.example>",
    "a..b@c.example",
  ])("%j is not an address list", (value) => {
    expect(readAddressList(value)).toBeNull();
  });

  test.each(['"\\', "(", "(\\", "a ", ".", "a.", "@a,", "=?a?q?", "[\\", "<@", "x:", "a@b,", "()", "<a@b>"])(
    "%j repeated is read in linear time",
    (piece) => {
      const value = piece.repeat(MAX_ADDRESS_FIELD_CHARS).slice(0, MAX_ADDRESS_FIELD_CHARS);
      const started = cpuMs();
      readAddressList(value);
      readAddressList(`a <${value}`);
      expect(cpuMs() - started).toBeLessThan(500);
    },
  );
});

test("an address list is folded at any place that may have space", async () => {
  const header = [
    'From: "Doe,\r\n John"\r\n\t<\r\n a@b.example\r\n >',
    "To: (one\r\n two) c@d.example\r\n (Cee),\r\n e . f\r\n @g.example",
  ];
  const { from, to } = await parseMail(Buffer.from(`${header.join("\r\n")}\r\n\r\nx`));
  expect({ from, to }).toEqual({
    from: { name: "Doe, John", email: "a@b.example" },
    to: [{ name: "Cee", email: "c@d.example" }, { email: "e.f@g.example" }],
  });
});
