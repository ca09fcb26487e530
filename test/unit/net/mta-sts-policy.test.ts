import { describe, expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import {
  MAX_MX_CHARS,
  MAX_MX_PATTERNS,
  MAX_POLICY_AGE_SECONDS,
  MAX_POLICY_OCTETS,
  namesHost,
  parseStsPolicy,
  readStsId,
} from "../../../src/net/mta-sts-policy.ts";
import { cpuMs } from "../../support/cpu-time.ts";

/** TXT records, and the id in them. */
const RECORDS: [records: string[], id: string | null][] = [
  [["v=STSv1; id=20260101T000000;"], "20260101T000000"],
  [["v=STSv1;id=a1"], "a1"],
  [["v=STSv1 ; id=a1 ; "], "a1"],
  [["v=STSv1; x.y-z_1=anything/goes; id=a1;"], "a1"],
  [["v=STSv1; id=first; id=second;"], "first"],
  [["something else", "v=STSv1; id=a1;", "v=spf1 -all"], "a1"],
  [[`v=STSv1; id=${"a".repeat(32)};`], "a".repeat(32)],
  [[], null],
  [["v=spf1 -all"], null],
  [["v=STSv1; id=a1;", "v=STSv1; id=a1;"], null],
  [["v=STSv2; id=a1;"], null],
  [["V=STSV1; id=a1;"], null],
  [[" v=STSv1; id=a1;"], null],
  [["id=a1; v=STSv1;"], null],
  [["v=STSv1"], null],
  [["v=STSv1;"], null],
  [["v=STSv1; id=;"], null],
  [["v=STSv1; id=a-1;"], null],
  [["v=STSv1; id=a 1;"], null],
  [["v=STSv1; id=a1;; x=y"], null],
  [["v=STSv1; id=a1; nothing"], null],
  [["v=STSv1; id=a1\0;"], null],
  [[`v=STSv1; id=${"a".repeat(33)};`], null],
];

test.each(RECORDS)("the records %j give the id %j", (records, id) => {
  expect(readStsId(records)).toBe(id);
});

const ENFORCE = "mode: enforce";
const MX = "mx: mx.test";
const AGE = "max_age: 86400";
const lines = (...given: string[]): string => given.join("\n");
const full = (...given: string[]): string => lines("version: STSv1", ENFORCE, AGE, ...given);

describe("a policy", () => {
  test.each([
    [full(MX), { mode: "enforce", mx: ["mx.test"], maxAgeSeconds: 86_400 }],
    [full("mx:MX.Test", "mx:\t*.Mail.test  "), { mx: ["mx.test", "*.mail.test"] }],
    [`${full(MX).replaceAll("\n", "\r\n")}\r\n`, { mx: ["mx.test"] }],
    [`${full(MX)}\n\r\n  \n`, { mx: ["mx.test"] }],
    [lines(MX, AGE, ENFORCE, "version: STSv1"), { mode: "enforce" }],
    [full(MX, "mode: none", "max_age: 1", "version: STSv9"), { mode: "enforce", maxAgeSeconds: 86_400 }],
    [full(MX, "future-field: whatever: ü"), { mode: "enforce" }],
    [lines("version: STSv1", "mode: none", AGE), { mode: "none", mx: [] }],
    [lines("version: STSv1", "mode: testing", AGE, MX), { mode: "testing" }],
    [lines("version: STSv1", ENFORCE, MX, "max_age: 0"), { maxAgeSeconds: 0 }],
    [lines("version: STSv1", ENFORCE, MX, "max_age: 9999999999"), { maxAgeSeconds: MAX_POLICY_AGE_SECONDS }],
    [full("mx: xn--mller-kva.test"), { mx: ["xn--mller-kva.test"] }],
  ])("%j is read", (text, policy) => {
    expect(parseStsPolicy(Buffer.from(text))).toMatchObject(policy);
  });

  test.each([
    "",
    "version: STSv1",
    full(),
    lines("version: STSv1", "mode: testing", AGE),
    lines(ENFORCE, AGE, MX),
    lines("version: STSv2", ENFORCE, AGE, MX),
    lines("version: stsv1", ENFORCE, AGE, MX),
    lines("version: STSv1", "mode: Enforce", AGE, MX),
    lines("version: STSv1", "mode: report", AGE, MX),
    lines("version: STSv1", AGE, MX),
    lines("version: STSv1", ENFORCE, MX),
    lines("version: STSv1", ENFORCE, MX, "max_age: -1"),
    lines("version: STSv1", ENFORCE, MX, "max_age: 1e9"),
    lines("version: STSv1", ENFORCE, MX, "max_age: 12345678901"),
    lines("version: STSv1", ENFORCE, MX, "max_age:"),
    lines("version: STSv1", ENFORCE, MX, "Max_Age: 86400"),
    full("mx: *"),
    full("mx: *.*.test"),
    full("mx: mx.*.test"),
    full("mx: m*.test"),
    full("mx: .test"),
    full("mx: mx.test."),
    full("mx: mx..test"),
    full("mx: 'mx.test'"),
    full("mx: müller.test"),
    full("mx: mx.test, other.test"),
    full("mx: -mx.test"),
    full(`mx: ${"a".repeat(64)}.test`),
    full(MX, "mx: bad_name!.test"),
    full(MX, "no field"),
    full(MX, "", "x: y"),
    full(MX, "x: a\0b"),
    full(MX, "x: a\rb"),
    full("mx: mx.test\0"),
    "<html><body>version: STSv1</body></html>",
    "\0".repeat(1000),
  ])("%j is not a policy", (text) => {
    expect(parseStsPolicy(Buffer.from(text))).toBeNull();
  });

  const patterns = (count: number): string[] => Array.from({ length: count }, (_, at) => `mx: mx${at}.test`);
  /** A pattern of that many characters. */
  const long = (chars: number): string =>
    `mx: ${"a.".repeat(Math.floor((chars - 1) / 2)).padEnd(chars, "b")}`;

  test("a policy has no more patterns than allowed, and of no more characters in all", () => {
    expect(parseStsPolicy(Buffer.from(full(...patterns(MAX_MX_PATTERNS))))?.mx).toHaveLength(MAX_MX_PATTERNS);
    expect(parseStsPolicy(Buffer.from(full(...patterns(MAX_MX_PATTERNS + 1))))).toBeNull();
    const many = Array.from({ length: MAX_MX_CHARS / 128 }, () => long(128));
    expect(parseStsPolicy(Buffer.from(full(...many)))?.mx).toHaveLength(64);
    expect(parseStsPolicy(Buffer.from(full(...many, "mx: a")))).toBeNull();
  });

  test("a policy is no longer than 64 KiB", () => {
    const text = full(MX, "x: ");
    const padded = (octets: number): Buffer => Buffer.from(text.padEnd(octets, "y"));
    expect(parseStsPolicy(padded(MAX_POLICY_OCTETS))).not.toBeNull();
    expect(parseStsPolicy(padded(MAX_POLICY_OCTETS + 1))).toBeNull();
  });

  test.each([
    ["spaces", `x:${" ".repeat(60_000)}y\0`],
    ["line ends", `${"\n".repeat(60_000)}x`],
    ["100 000 patterns", "mx: mx.test\n".repeat(100_000)],
    ["labels", `mx: ${"a.".repeat(30_000)}!`],
    ["hyphens", `mx: a${"-".repeat(60_000)}!`],
  ])("a policy of %s is refused in linear time", (_, text) => {
    const startedAt = cpuMs();
    expect(parseStsPolicy(Buffer.from(full(text)))).toBeNull();
    expect(cpuMs() - startedAt).toBeLessThan(200);
  });

  test("a policy that is kept holds only its patterns in memory, and an id not its record", () => {
    const policies = 300;
    const padded = (text: string) => `${text}x: \u0101${"y".repeat(MAX_POLICY_OCTETS - 200)}\r\n`;
    const read = (at: number) => [
      parseStsPolicy(Buffer.from(padded(full(`mx: a${at}.mail.example\r\n`)))),
      readStsId([`v=STSv1; id=${at}${"a".repeat(20)}; x=${"y".repeat(MAX_POLICY_OCTETS)}`]),
    ];
    Bun.gc(true);
    const before = heapStats().extraMemorySize;
    const kept = Array.from({ length: policies }, (_, at) => read(at));
    Bun.gc(true);
    // With their sources it would be ten times that.
    expect(heapStats().extraMemorySize - before).toBeLessThan(policies * 16 * 1024);
    expect(kept.flat()).not.toContain(null);
  });

  test.each([
    ["mx.test", ["mx.test"], true],
    ["MX.test", ["mx.test"], true],
    ["a.mail.test", ["*.mail.test"], true],
    ["mail.test", ["*.mail.test"], false],
    ["a.b.mail.test", ["*.mail.test"], false],
    ["amail.test", ["*.mail.test"], false],
    ["other.test", ["mx.test", "*.other.test"], false],
    ["other.test", ["mx.test", "other.test"], true],
    ["mx.test.evil.test", ["mx.test"], false],
    ["test", ["*.test"], false],
    ["test", ["test"], true],
    ["*.mail.test", ["*.mail.test"], true],
  ])("a policy matches %s by %j: %j", (host, mx, named) => {
    expect(namesHost({ mode: "enforce", mx, maxAgeSeconds: 1 }, host)).toBe(named);
  });
});
