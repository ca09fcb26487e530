import { describe, expect, test } from "bun:test";
import { readAuthorship } from "../../../../src/mail/submitted/authorship.ts";
import { fieldsOf } from "../../../../src/mail/reading/raw-headers.ts";

function read(...lines: string[]) {
  return readAuthorship(fieldsOf(Buffer.from(lines.join("\r\n")).toString("latin1")));
}

function faultOf(...lines: string[]): string | null {
  const found = read(...lines);
  return "text" in found ? found.text : null;
}

describe("a From that every reader reads in one way is taken", () => {
  for (const [value, email, name] of [
    ["me@mine.test", "me@mine.test", undefined],
    ["<me@mine.test>", "me@mine.test", undefined],
    ["Me <Me@Mine.TEST>", "Me@mine.test", "Me"],
    ["J. R. Me <me@mine.test>", "me@mine.test", "J. R. Me"],
    ['"Mine, Inc. (EU) <3" <me@mine.test>', "me@mine.test", "Mine, Inc. (EU) <3"],
    ['"a \\"b\\"" <me@mine.test>', "me@mine.test", 'a "b"'],
    ['"me@mine.test" <me@mine.test>', "me@mine.test", undefined],
    ["root@localhost (Cron Daemon)", "root@localhost", "Cron Daemon"],
    ["=?utf-8?q?J=C3=B6rg?=\r\n <me@mine.test>", "me@mine.test", "Jörg"],
    ["J\u00f6rg <j\u00f6rg@b\u00fccher.test>", "jörg@xn--bcher-kva.test", "Jörg"],
    ["me@xn--bcher-kva.test", "me@xn--bcher-kva.test", undefined],
  ] as const)
    test(value, () => {
      const found = read(`From: ${value}`);
      expect(found).toEqual({ from: name === undefined ? { email } : { email, name }, replyTo: [] });
    });

  test("none at all is left to the caller", () => {
    expect(read("Subject: x")).toEqual({ from: null, replyTo: [] });
  });
});

describe("a From in which readers could find another author is refused", () => {
  const forged: [string, string][] = [
    ["an address after a long fold", `From: "me@mine.test"${"\r\n  ".repeat(6000)}<ceo@victim.test>`],
    ["two addresses without a comma", "From: <me@mine.test><ceo@victim.test>"],
    ["two addresses", "From: me@mine.test, ceo@victim.test"],
    ["an address and a comma", "From: me@mine.test,"],
    ["a semicolon", "From: me@mine.test; ceo@victim.test"],
    ["an address in square brackets", "From: [me@mine.test] ceo@victim.test"],
    ["an address as an unquoted name", "From: ceo@victim.test <me@mine.test>"],
    ["words after the address", "From: <me@mine.test> ceo"],
    ["an open quote", 'From: "ceo <me@mine.test>'],
    ["an open comment", "From: me@mine.test (ceo"],
    ["a comment with an address", "From: me@mine.test (ceo@victim.test)"],
    ["a comment within the address", "From: me@(x)mine.test"],
    ["a comment within brackets", "From: <me@mine.test(ceo@victim.test)>"],
    ["a comment before the address", "From: (ceo@victim.test) me@mine.test"],
    ["a group", "From: Ceo: me@mine.test;"],
    ["a route", "From: <@victim.test:me@mine.test>"],
    ["spaces in the address", "From: me @ mine.test"],
    ["a space within brackets", "From: <ceo@victim.test me@mine.test>"],
    ["a control character", "From: ceo@victim.test\x01 <me@mine.test>"],
    ["a backspace in the domain", "From: me@mine\x08.test"],
    ["an escape", "From: \x1b$B <me@mine.test>"],
    ["a line separator", "From: me\u2028 <me@mine.test>"],
    ["a bidirectional override", "From: \u202eme <me@mine.test>"],
    ["a fold of only spaces", "From: Me\r\n \r\n <me@mine.test>"],
    ["specials in an encoded word", "From: =?utf-8?q?ceo@victim.test,?= <me@mine.test>"],
    ["an encoded address", "From: =?utf-8?q?me=40mine.test?="],
    ["an encoded word as local part", "From: =?utf-8?q?ceo=40victim.test=00?=@mine.test"],
    ["an encoded word in brackets", "From: Me <x=?utf-8?b?Y2VvQHZpY3RpbS50ZXN0?=@mine.test>"],
    ["an encoded NUL", "From: =?utf-8?q?ceo=40victim.test=00?= <me@mine.test>"],
    ["an encoded line end", "From: =?utf-8?b?YQ0KRnJvbTogYg==?= <me@mine.test>"],
    ["an encoded bidirectional override", "From: =?utf-8?q?=E2=80=AE?=me <me@mine.test>"],
    ["letters of full width", "From: me@\uff4dine.test"],
    ["a full stop of another script", "From: me@mine\u3002test"],
    ["a full stop at the end", "From: me@mine.test."],
    ["a quoted local part", 'From: "ceo@victim.test"@mine.test'],
    ["no address", "From: Me"],
    ["no value", "From:"],
    ["a space before the colon", "From : me@mine.test"],
  ];
  test.each(forged)("%s", (_, line) => {
    expect(faultOf(line)).toStartWith("From must have one address");
  });

  test.each([
    ["From: me@mine.test", "From: ceo@victim.test"],
    ["FROM: me@mine.test", "From : ceo@victim.test"],
    ["Subject: a", "Subject: b"],
    ["Reply-To: a@mine.test", "reply-to: b@mine.test"],
  ])("%s and %s", (first, second) => {
    expect(faultOf(first, second)).toStartWith("The header has more than one");
  });
});

test("From may have 2048 octets, and not one more", () => {
  const from = (octets: number) =>
    `From: ${"m".repeat(octets - "From:  <me@mine.test>".length)} <me@mine.test>`;
  expect(from(2048)).toHaveLength(2048);
  expect(faultOf(from(2048))).toBeNull();
  expect(faultOf(from(2049))).toStartWith("From must have one address");
});

test("Reply-To may have 16 KiB, and not one octet more", () => {
  const [start, end] = ["Reply-To: a@x.test,", "b@y.test"];
  const list = (octets: number) => `${start}${" ".repeat(octets - start.length - end.length)}${end}`;
  expect(faultOf("From: me@mine.test", list(16_384))).toBeNull();
  expect(faultOf("From: me@mine.test", list(16_385))).toContain("Reply-To");
});

test("Sender is one address at the domain of From or below it", () => {
  const from = "From: me@mine.test";
  for (const sender of ["Me <bot@mine.test>", "bot@mail.mine.test"])
    expect(faultOf(from, `Sender: ${sender}`)).toBeNull();
  expect(read(from, "Sender: ceo@victim.test")).toMatchObject({ forbidden: true });
  expect(read(from, "Sender: ceo@notmine.test")).toMatchObject({ forbidden: true });
  for (const sender of ["bot@mine.test, ceo@victim.test", "(x) bot@mine.test", "ceo"])
    expect(faultOf(from, `Sender: ${sender}`)).toStartWith("Sender must have one address");
});

test("Reply-To is a list that the record shows whole", () => {
  const from = "From: me@mine.test";
  expect(read(from, "Reply-To: A <a@x.test>, b@y.test")).toMatchObject({
    replyTo: [{ email: "a@x.test", name: "A" }, { email: "b@y.test" }],
  });
  for (const value of ["<a@x.test><b@y.test>", "a@x.test (", `a@x.test,${" ".repeat(17_000)}b@y.test`])
    expect(faultOf(from, `Reply-To: ${value}`)).toBe("Reply-To is no list of addresses");
});
