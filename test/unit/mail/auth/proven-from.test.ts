import { expect, test } from "bun:test";
import { provenAuthor } from "../../../../src/mail/auth/proven-from.ts";

const none = { result: "none", domain: null };
const spf = (domain: string, result = "pass") => ({ spf: { result, domain }, dkim: [] });
const dkim = (domain: string, result = "pass") => ({
  spf: none,
  dkim: [
    { result: "fail", domain: "fbl.test", selector: "a" },
    { result, domain, selector: "b" },
  ],
});
const ROWS: [what: string, from: string, verdict: Parameters<typeof provenAuthor>[1], proven: boolean][] = [
  ["SPF of its domain", "fbl@fbl.test", spf("fbl.test"), true],
  ["SPF of a domain below", "fbl@fbl.test", spf("out.FBL.test"), true],
  ["DKIM of the domain above", "fbl@arf.fbl.test", dkim("fbl.test"), true],
  ["SPF of another domain", "fbl@fbl.test", spf("evil.test"), false],
  ["SPF of another domain of a public suffix", "fbl@one.co.uk", spf("two.co.uk"), false],
  ["SPF that fails", "fbl@fbl.test", spf("fbl.test", "softfail"), false],
  ["SPF that came to no end", "fbl@fbl.test", spf("fbl.test", "temperror"), false],
  ["DKIM of another domain", "fbl@fbl.test", dkim("evil.test"), false],
  ["DKIM that fails", "fbl@fbl.test", dkim("fbl.test", "fail"), false],
  ["SPF, and no domain in From", "fbl", spf("fbl.test"), false],
];

test.each(ROWS)("a From with %s", (_what, from, verdict, proven) => {
  const author = provenAuthor(Buffer.from(`From: ${from}\r\n\r\nx`), verdict);
  expect(author).toBe(proven ? from.slice(from.indexOf("@") + 1) : null);
});
