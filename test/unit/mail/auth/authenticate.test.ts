import { createHash, createSign } from "node:crypto";
import { beforeAll, describe, expect, test } from "bun:test";
import { type AuthResolver, MAX_AUTH_LOOKUPS } from "../../../../src/mail/auth/resolver.ts";
import { authenticate, authenticateSender } from "../../../../src/mail/auth/authenticate.ts";
import {
  checkable,
  MAX_BODY_HASHES,
  MAX_CHECKED_HEADER_LINES,
  MAX_CHECKED_HEADER_OCTETS,
  MAX_SIGNATURE_OCTETS,
  MAX_SIGNATURES,
} from "../../../../src/mail/auth/checkable.ts";
import { compose } from "../../../../src/mail/composing/compose.ts";
import { MAX_HEADER_VALUE_CHARS } from "../../../../src/mail/reading/header-block.ts";
import { rawFields } from "../../../../src/mail/reading/raw-headers.ts";
import { dkimPrivateKey, dkimRecord, generateDkimKey, signDkim } from "../../../../src/mail/auth/dkim.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

const HOST = "mx.example.org";
/** A local part so long that a record's From ends after `<a@example.com`. */
const LONG_NAME = "x".repeat(MAX_HEADER_VALUE_CHARS - " <a@example.com".length);
const ENVELOPE = { ip: "192.0.2.1", helo: "out.example.com", mailFrom: "bounce@example.com" };
const NEVER = new AbortController().signal;
const zone = new Map<string, unknown[]>([
  ["TXT example.com", [["v=spf1 ip4:192.0.2.1 include:spf.example.net -all"]]],
  ["TXT spf.example.net", [["v=spf1 mx -all"]]],
  ["MX spf.example.net", [{ exchange: "m.example.net", priority: 10 }]],
  ["A m.example.net", ["192.0.2.9"]],
  ["TXT _dmarc.lax", [["v=DMARC1; p=none"]]],
  ["TXT _dmarc.lax.example", [["v=DMARC1; p=none"]]],
  ["TXT _dmarc.example.com", [["v=DMARC1; p=reject"]]],
  ["TXT loop.example.com", [["v=spf1 include:loop.example.com -all"]]],
  ["TXT out.example.com", [["v=spf1 a -all"]]],
  ["A out.example.com", ["192.0.2.1"]],
]);
let unsigned: Buffer;
let signed: Buffer;
/** Signs the mail with rsa-sha1 in the form "simple", as old software does. */
let signedWithSha1: Buffer;

const resolve: AuthResolver = async (name, type) => {
  const records = zone.get(`${type} ${name}`);
  if (records === undefined) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
  return records;
};

beforeAll(async () => {
  const key = await generateDkimKey();
  zone.set("TXT pr1._domainkey.example.com", [[dkimRecord(key.publicKeyBase64)]]);
  unsigned = compose({
    from: { email: "ann@example.com" },
    to: [{ email: "bob@example.org" }],
    subject: "Hi",
    text: "Hi",
    messageId: "<m1@example.com>",
    date: 0,
  }).raw;
  signed = await signDkim({
    raw: unsigned,
    domain: "example.com",
    keys: [{ selector: "pr1", privateKey: dkimPrivateKey(key.privateKeyPem) }],
  });
  signedWithSha1 = oldSignature(unsigned, key.privateKeyPem);
});

function oldSignature(raw: Buffer, privateKey: string): Buffer {
  const text = raw.toString("latin1");
  const end = text.indexOf("\r\n\r\n") + 2;
  const from = /^From:.*\r\n/im.exec(text)?.[0] ?? "";
  const bodyHash = createHash("sha1")
    .update(text.slice(end + 2), "latin1")
    .digest("base64");
  const field = `DKIM-Signature: v=1; a=rsa-sha1; c=simple/simple; d=example.com; s=pr1; h=From; bh=${bodyHash}; b=`;
  const value = createSign("RSA-SHA1").update(`${from}${field}`, "latin1").sign(privateKey, "base64");
  return Buffer.from(`${field}${value}\r\n${text}`, "latin1");
}

describe("the verdict on a received mail", () => {
  const DKIM_PASS = [{ result: "pass", domain: "example.com", selector: "pr1" }];
  const cases: [name: string, mail: () => Buffer, envelope: typeof ENVELOPE, expected: object][] = [
    [
      "signed, from the right host",
      () => signed,
      ENVELOPE,
      {
        spf: { result: "pass", domain: "example.com" },
        dkim: DKIM_PASS,
        dmarc: { result: "pass", policy: "reject", domain: "example.com" },
        arc: { result: "none" },
      },
    ],
    [
      "signed, from another host",
      () => signed,
      { ...ENVELOPE, ip: "198.51.100.1" },
      { spf: { result: "fail" }, dkim: DKIM_PASS, dmarc: { result: "pass" } },
    ],
    [
      "signed with rsa-sha1 (RFC 8301 §3.1), from another host",
      () => signedWithSha1,
      { ...ENVELOPE, ip: "198.51.100.1" },
      {
        spf: { result: "fail" },
        dkim: [{ ...DKIM_PASS[0], result: "policy" }],
        dmarc: { result: "fail", policy: "reject" },
      },
    ],
    [
      "unsigned, from a host named by include and mx",
      () => unsigned,
      { ...ENVELOPE, ip: "192.0.2.9" },
      { spf: { result: "pass" }, dkim: [], dmarc: { result: "pass" } },
    ],
    [
      "unsigned, from another host",
      () => unsigned,
      { ...ENVELOPE, ip: "198.51.100.1" },
      { dmarc: { result: "fail", policy: "reject" } },
    ],
    [
      "unsigned, SPF pass of a domain other than the author's",
      () => unsigned,
      { ...ENVELOPE, mailFrom: "x@spf.example.net", ip: "192.0.2.9" },
      { spf: { result: "pass" }, dmarc: { result: "fail" } },
    ],
    [
      "altered after signing",
      () => Buffer.from(signed.toString().replace("Subject: Hi", "Subject: Ho")),
      ENVELOPE,
      { dkim: [{ result: "fail" }] },
    ],
    [
      "the null reverse-path: HELO is checked",
      () => unsigned,
      { ...ENVELOPE, mailFrom: "" },
      { spf: { result: "pass", domain: "out.example.com" } },
    ],
    [
      "an SPF record that includes itself",
      () => unsigned,
      { ...ENVELOPE, mailFrom: "a@loop.example.com", ip: "198.51.100.1" },
      { spf: { result: "permerror" } },
    ],
    [
      "a domain without records",
      () => Buffer.from("From: a@none.example\r\n\r\nx\r\n"),
      { ...ENVELOPE, mailFrom: "a@none.example" },
      { spf: { result: "none" }, dmarc: { result: "none", policy: null } },
    ],
    [
      "two authors of two domains",
      () => Buffer.from("From: a@example.com, b@example.net\r\n\r\nx\r\n"),
      ENVELOPE,
      { dmarc: { result: "permerror", policy: null, domain: null } },
    ],
    ...[
      "a@example(x).com",
      "a @ example . com",
      "a@example .com",
      "X <a@example.com(x)>",
      "a(@b)@(x) example.com",
      'a@example(").com ("x")',
      '"a"@example(\\)).com',
      '"b" <a@ example(.org).com>',
      'O"Brien <a@example.com>',
    ].map((from): (typeof cases)[number] => [
      `an author written as ${from}`,
      () => Buffer.from(`From: ${from}\r\n\r\nx\r\n`),
      { ...ENVELOPE, mailFrom: "x@spf.example.net" },
      { dmarc: { result: "fail", policy: "reject", domain: "example.com" } },
    ]),
    ...[
      ["no From, so that the Sender is shown", "To: x@example.org"],
      ["a From without an address, so that the Sender is shown", "From: undisclosed"],
      ["a second From that is an empty folded line", " From: b@none.example\r\nFrom: a@example.com"],
      ["an author that is not an address", "From: <a..b@example.com>"],
      ["an author that is not an address, with invisible characters", "From: <a..b@exam\u00adple.com>"],
      ["two From fields", "From: a@example.com\r\nFrom: a@example.com"],
      ["the first of two authors", "From: a@example.com, b@none.example"],
      ["an author in a comment", "From: (<a@example.com>)"],
      [
        "an author whose domain ends where the record cuts it",
        `From: ${LONG_NAME} <a@example.com.none.example>`,
      ],
    ].map(([name, field]): (typeof cases)[number] => [
      `the author that is shown: ${name}`,
      () => Buffer.from(`${field}\r\n\r\nx\r\n`),
      { ...ENVELOPE, ip: "198.51.100.1" },
      { dmarc: { result: "fail", policy: "reject", domain: "example.com" } },
    ]),
    [
      "a sender of his own domain's hosts in the place of an author",
      () => Buffer.from("To: x@example.org\r\n\r\nx\r\n"),
      ENVELOPE,
      { spf: { result: "pass" }, dmarc: { result: "none", policy: null, domain: null } },
    ],
    ...[
      "a@[192.0.2.1]",
      "a@example.com, b@[192.0.2.1]",
      "ceo%bank.example@example.com",
      '"c%b"@example.com',
    ].map((from): (typeof cases)[number] => [
      `an author that has no domain to pass by: ${from}`,
      () => Buffer.from(`From: ${from}\r\n\r\nx\r\n`),
      ENVELOPE,
      { spf: { result: "pass" }, dmarc: { result: "none", policy: null, domain: null } },
    ]),
    [
      "a route through the domain of another, whose policy refuses it",
      () => Buffer.from("From: ceo%bank.example@example.com\r\n\r\nx\r\n"),
      { ...ENVELOPE, ip: "198.51.100.1" },
      { dmarc: { result: "fail", policy: "reject", domain: "example.com" } },
    ],
    [
      "an author whose other reading has a stricter policy",
      () => Buffer.from("From: a@lax(x).example.com\r\n\r\nx\r\n"),
      { ...ENVELOPE, mailFrom: "x@lax", ip: "198.51.100.1" },
      { dmarc: { result: "fail", policy: "reject", domain: "lax.example.com" } },
    ],
    [
      "an author whose first reading has a weaker policy",
      () => Buffer.from("From: a@example.com(x).lax.example\r\n\r\nx\r\n"),
      { ...ENVELOPE, mailFrom: "x@none.example", ip: "198.51.100.1" },
      { dmarc: { result: "fail", policy: "reject", domain: "example.com" } },
    ],
    [
      "an author whose name is like an address",
      () => Buffer.from('From: "a @ example . com" (a@example.com) <b@none.example>\r\n\r\nx\r\n'),
      ENVELOPE,
      { dmarc: { result: "none", domain: "none.example" } },
    ],
    ["no author", () => Buffer.from("garbage"), ENVELOPE, { dmarc: { result: "none" } }],
    [
      "a client address that is invalid",
      () => unsigned,
      { ...ENVELOPE, ip: "nowhere" },
      { spf: { result: "temperror" } },
    ],
  ];
  test.each(cases)("%s", async (_name, mail, envelope, expected) => {
    const { verdict } = await authenticate({ resolve, host: HOST }, envelope, mail(), NEVER);
    expect(verdict).toMatchObject(expected);
  });

  test("the verdict on a received mail is written into one Authentication-Results field", async () => {
    const { header } = await authenticate({ resolve, host: HOST }, ENVELOPE, signed, NEVER);
    expect(header).toStartWith(`Authentication-Results: ${HOST};`);
    expect(header.replace(/\r\n /g, " ")).toMatch(/dkim=pass .*; spf=pass .*; dmarc=pass .*\r\n$/);
    for (const line of header.trimEnd().split("\r\n")) expect(line.length).toBeLessThanOrEqual(78);
  });

  test("the verdict on a received mail never lets the message or the session add a header field", async () => {
    const evil = "a\r\nX-Evil: 1\r\n\r\n";
    const { header } = await authenticate(
      { resolve, host: HOST },
      { ip: "192.0.2.1", helo: evil, mailFrom: `"${evil}"@example.com` },
      Buffer.from(
        `DKIM-Signature: d=${"x".repeat(2000)}; s=a; b=AA; bh=AA; h=from; a=rsa-sha256; v=1\r\nFrom: a@example.com\r\n\r\n`,
      ),
      NEVER,
    );
    for (const line of header.trimEnd().split("\r\n").slice(1)) expect(line).toStartWith(" ");
    expect(Math.max(...header.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
  });
});

test("the check by the header alone finds an author in its first field, and leaves signatures undecided", async () => {
  const raw = Buffer.from("From: a@example.com\r\n\r\nx\r\n");
  const other = { ...ENVELOPE, ip: "198.51.100.1" };
  const check = (message: Buffer) => authenticateSender({ resolve, host: HOST }, other, message, NEVER);
  expect((await check(raw)).verdict.dmarc).toMatchObject({ result: "fail", domain: "example.com" });
  expect((await check(signed)).verdict.dmarc).toMatchObject({ result: "temperror", policy: "reject" });
});

describe("DNS trouble gives temperror and never throws", () => {
  test.each(["ESERVFAIL", "ETIMEOUT", "ECONNREFUSED"])("%s", async (code) => {
    const failing: AuthResolver = async () => Promise.reject(Object.assign(new Error(code), { code }));
    const { verdict } = await authenticate({ resolve: failing, host: HOST }, ENVELOPE, signed, NEVER);
    expect(verdict).toMatchObject({
      spf: { result: "temperror" },
      dkim: [{ result: "temperror" }],
      dmarc: { result: "temperror" },
    });
  });

  test("if SPF of the author's domain gives temperror, DMARC is undecided, in the header too", async () => {
    const failing: AuthResolver = async (name, type) => {
      if (name === "example.com") throw Object.assign(new Error("no"), { code: "ESERVFAIL" });
      return resolve(name, type);
    };
    const found = await authenticate({ resolve: failing, host: HOST }, ENVELOPE, unsigned, NEVER);
    expect(found.verdict.dmarc).toMatchObject({ result: "temperror", policy: "reject" });
    expect(found.header.match(/(?<=\s)(spf|dmarc)=\w+/g)).toEqual(["spf=temperror", "dmarc=temperror"]);
  });

  test("a resolver that never answers is ended by the signal", async () => {
    const ended = new AbortController();
    let asked = 0;
    const silent: AuthResolver = () => {
      if (++asked === 2) ended.abort();
      return new Promise(() => {});
    };
    const { verdict } = await authenticate({ resolve: silent, host: HOST }, ENVELOPE, signed, ended.signal);
    expect(verdict).toMatchObject({
      spf: { result: "temperror" },
      dkim: [{ result: "temperror" }],
      dmarc: { result: "temperror" },
    });
  });

  test("slow servers that the sender names do not hide the author's policy", async () => {
    const ended = new AbortController();
    const slow: AuthResolver = (name, type) => {
      if (name !== "slow.example") return resolve(name, type);
      setImmediate(() => ended.abort());
      return new Promise(() => {});
    };
    const forger = { ...ENVELOPE, ip: "198.51.100.1", mailFrom: "x@slow.example" };
    const { verdict } = await authenticate(
      { resolve: slow, host: HOST },
      forger,
      unsigned,
      ended.signal,
      NEVER,
    );
    expect(verdict).toMatchObject({
      spf: { result: "temperror", domain: "slow.example" },
      dmarc: { result: "fail", policy: "reject", domain: "example.com" },
    });
  });

  test("slow servers of another signature do not hide that the author has no such key", async () => {
    const ended = new AbortController();
    const slow: AuthResolver = (name, type) => {
      if (!name.endsWith("slow.example")) return resolve(name, type);
      setImmediate(() => ended.abort());
      return new Promise(() => {});
    };
    const hash = createHash("sha256").update("x\r\n").digest("base64");
    const signatures = ["slow.example", "example.com"].map(
      (domain) => `DKIM-Signature: v=1; a=rsa-sha256; d=${domain}; s=none; h=from; bh=${hash}; b=AAAA\r\n`,
    );
    const raw = Buffer.from(`${signatures.join("")}From: a@example.com\r\n\r\nx\r\n`);
    const forger = { ...ENVELOPE, ip: "198.51.100.1", mailFrom: "x@none.example" };
    const { verdict } = await authenticate({ resolve: slow, host: HOST }, forger, raw, ended.signal, NEVER);
    expect(verdict).toMatchObject({
      dkim: [
        { result: "temperror", domain: "slow.example" },
        { result: "neutral", domain: "example.com" },
      ],
      dmarc: { result: "fail", policy: "reject" },
    });
  });

  test("a resolver that throws an unknown error", async () => {
    const broken: AuthResolver = () => {
      throw null;
    };
    expect(
      (await authenticate({ resolve: broken, host: HOST }, ENVELOPE, signed, NEVER)).verdict.spf.result,
    ).toBe("temperror");
  });
});

describe("limits", () => {
  const many = (count: number, selector: (i: number) => string) =>
    Buffer.from(
      `${Array.from({ length: count }, (_, i) => `DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=${selector(i)}; h=from; bh=AAAA; b=AAAA\r\n`).join("")}From: a@example.com\r\n\r\nx\r\n`,
    );

  test("checks DKIM signatures up to the limit", async () => {
    const { verdict } = await authenticate(
      { resolve, host: HOST },
      ENVELOPE,
      many(MAX_SIGNATURES + 1, () => "pr1"),
      NEVER,
    );
    expect(verdict.dkim).toHaveLength(MAX_SIGNATURES);
  });

  const checkableIn = (raw: Buffer) => {
    const { header, body } = checkable(raw, rawFields(raw));
    return Buffer.concat([header, body]);
  };
  const FROM = "From: a@example.com\r\n";
  const signature = (over: string) => `DKIM-Signature: v=1; a=rsa-sha256; d=example.com; ${over}\r\n`;
  const LONG_FROM = `From: ${'"x" <x@example.com>, '.repeat(1000)}a@example.com\r\n`;
  const bounds: [name: string, header: string, kept: string | null][] = [
    ["nothing", `${signature("h=from")}${FROM}X: y\r\n`, null],
    ["nothing, and there is no signature", `${FROM}X: y\r\nX:  z\r\n w\r\n`, FROM],
    ["nothing, and other readers may see another author", ` From: b@example.org\r\n${FROM}X: y\r\n`, null],
    ["the octets of a header", `X: ${"x".repeat(MAX_CHECKED_HEADER_OCTETS)}\r\n${FROM}`, FROM],
    ["the lines of a field", `X: y${"\r\n z".repeat(MAX_CHECKED_HEADER_LINES)}\r\n${FROM}`, FROM],
    ["lines that are not header fields", `${FROM}${"junk\r\n".repeat(MAX_CHECKED_HEADER_LINES)}`, FROM],
    [
      "the octets of a signature",
      `${signature(`h=${"x:".repeat(MAX_SIGNATURE_OCTETS / 2)}from`)}${FROM}`,
      FROM,
    ],
    [
      "the body hashes that signatures need",
      `${Array.from({ length: MAX_BODY_HASHES + 1 }, (_, i) => signature(`l=${i}`)).join("")}${FROM}`,
      `${Array.from({ length: MAX_BODY_HASHES }, (_, i) => signature(`l=${i}`)).join("")}${FROM}`,
    ],
    ["From fields", FROM.repeat(3), FROM.repeat(2)],
  ];
  test.each(bounds)("%s: signatures over the limit are not checked", (_, header, kept) => {
    const raw = Buffer.from(`${header}\r\nbody\r\n`);
    // Without a signature the body needs no hash.
    const body = /^(?:dkim|arc-message)-signature|^arc-seal/im.test(header) ? "body\r\n" : "";
    expect(checkableIn(raw).toString("latin1")).toBe(`${kept ?? header}\r\n${body}`);
  });

  const HASHES = [
    ["without a limit", ""],
    ["over part of the body", "l=1000001; "],
  ] as const;
  test.each(HASHES)("a body of loose lines is hashed as it is, %s", async (_, limit) => {
    const lines = ["x \r\n", "a  b\tc\r\n", " \t\r\n", "\r\n", "\t d \re\r\n", "x\r\n"];
    const loose = Buffer.from(`${lines.join("").repeat(100_000)}last  line \r\n \r\n\r\n \t`);
    const relaxed = loose
      .toString()
      .split("\r\n")
      .map((line) => line.replace(/[ \t]+/g, " ").replace(/ $/, ""))
      .join("\r\n")
      .replace(/(?:\r\n)*$/, "\r\n");
    const octets = limit === "" ? relaxed : relaxed.slice(0, 1_000_001);
    const bh = createHash("sha256").update(octets).digest("base64");
    const asked = `c=relaxed/relaxed; ${limit}s=pr1; h=from; bh=${bh}; b=AA==`;
    const raw = Buffer.concat([Buffer.from(`${signature(asked)}${FROM}\r\n`), loose]);
    const { verdict, header } = await authenticate({ resolve, host: HOST }, ENVELOPE, raw, NEVER);
    expect(verdict.dkim).toMatchObject([{ result: "fail" }]);
    // The body matches its hash, but the test has no key to sign that.
    expect(header).not.toContain("body hash did not verify");
    expect(header.replace(/\s+/g, " ")).toContain("bad signature");
  });

  test("a From too long to read as it is gives the addresses in it, so that its author cannot hide", async () => {
    const raw = Buffer.from(`${LONG_FROM}\r\nbody\r\n`);
    const { verdict } = await authenticate(
      { resolve, host: HOST },
      { ...ENVELOPE, ip: "198.51.100.1" },
      raw,
      NEVER,
    );
    expect(verdict.dmarc).toMatchObject({ result: "fail", policy: "reject", domain: "example.com" });
  });

  test("the time for all of them", async () => {
    const started = cpuMs();
    const hostile = [
      `X: ${"=?utf-8?q?=41?=\r\n ".repeat(60_000)}\r\n`,
      Array.from({ length: MAX_SIGNATURES * 2 }, (_, i) =>
        signature(`s=s${i}; l=${i % 7}; bh=AA; b=AA; h=${"x:".repeat(3900)}from`),
      ).join(""),
      `${"x: y\r\n".repeat(3900)}`,
    ];
    for (const header of hostile)
      await authenticate({ resolve, host: HOST }, ENVELOPE, Buffer.from(`${header}${FROM}\r\nx\r\n`), NEVER);
    // Without the limits the first alone took 20 seconds.
    expect(cpuMs() - started).toBeLessThan(3000);
  });

  test("limits makes DNS lookups up to the limit", async () => {
    let asked = 0;
    const wide: AuthResolver = async (name, type) => {
      asked++;
      if (type === "MX")
        return Array.from({ length: 10 }, (_, i) => ({ exchange: `m${i}.${name}`, priority: i }));
      if (type === "TXT" && !name.startsWith("_dmarc"))
        return [[`v=spf1 ${Array.from({ length: 10 }, (_, i) => `mx:d${i}.example`).join(" ")} -all`]];
      throw Object.assign(new Error("none"), { code: "ENODATA" });
    };
    await authenticate(
      { resolve: wide, host: HOST },
      ENVELOPE,
      many(MAX_SIGNATURES, (i) => `s${i}`),
      NEVER,
    );
    expect(asked).toBeLessThanOrEqual(MAX_AUTH_LOOKUPS);
    expect(asked).toBeGreaterThan(100);
  });
});
