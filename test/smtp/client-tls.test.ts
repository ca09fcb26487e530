import type { HostSecurity, TlsaRecord } from "../../src/core/tls-policy.ts";
import { createHash, X509Certificate } from "node:crypto";
import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { log } from "../../src/log.ts";
import type { DeliveryReport, Destination, OutboundMail, TlsMode } from "../../src/smtp/client/delivery.ts";
import { MAX_NAMES_SHOWN } from "../../src/smtp/client/peer-certificate.ts";
import { createPool, type Pool } from "../../src/smtp/client/pool.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";
import { makeClientCert, makeCommonNameCert, makeExpiredCert } from "../support/sts-host.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";

const RAW = Buffer.from("Subject: x\r\n\r\nhello\r\n");
const MAIL: OutboundMail = { mailFrom: "b+1@out.test", rcptTo: "to@in.test", raw: RAW };
const NAME = "mx.test";
let ca: KeyAndCert;
let otherCa: KeyAndCert;
/** Certificates by their merit or fault. */
let certs: Record<
  "good" | "selfSigned" | "untrusted" | "expired" | "wrongName" | "wrongAndSelfSigned" | "wrongAndUntrusted",
  KeyAndCert
>;
const mxs: TestMx[] = [];
const pools: Pool[] = [];

beforeAll(async () => {
  [ca, otherCa] = await Promise.all([makeCa(), makeCa()]);
  certs = {
    good: await makeCert([NAME], ca),
    selfSigned: await makeCert([NAME]),
    untrusted: await makeCert([NAME], otherCa),
    expired: await makeExpiredCert([NAME], ca),
    wrongName: await makeCert(["other.test"], ca),
    wrongAndSelfSigned: await makeCert(["other.test"]),
    wrongAndUntrusted: await makeCert(["other.test"], otherCa),
  };
});
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close(0);
  for (const mx of mxs.splice(0)) mx.stop();
});

function peer(options: MxOptions = {}): TestMx {
  const mx = startMx(options);
  mxs.push(mx);
  return mx;
}

function pool(): Pool {
  const made = createPool(
    { clock: systemClock, log: log("smtp"), ca: ca.cert },
    { maxConnectionsPerDestination: 1, timeouts: { tls: 10_000 } },
  );
  pools.push(made);
  return made;
}

interface Given {
  security?: HostSecurity;
  mail?: Partial<OutboundMail>;
  to?: Partial<Destination>;
  pool?: Pool;
}

/** Delivers one message to a host with a security requirement. */
function send(mx: TestMx, given: Given = {}): Promise<DeliveryReport> {
  const { security, mail, to } = given;
  const hosts = [{ name: NAME, addresses: [mx.ip], ...(security && { security }) }];
  return (given.pool ?? pool()).deliver(
    { key: "k", hosts, port: mx.port, tls: "opportunistic", ehloName: "us.test", ...to },
    { ...MAIL, ...mail },
  );
}

const asked = (tls: HostSecurity["tls"]): HostSecurity => ({ tls, policy: `asks for ${tls}` });

/** The outcome of a delivery: `verified`, `encrypted` or `clear`, or why it failed. */
async function wayOf(mx: TestMx, security: HostSecurity): Promise<string> {
  const { result, tls, tlsVerified } = await send(mx, { security });
  if (result.kind === "trouble") return result.reason;
  if (result.kind !== "reply" || result.code !== 250) return JSON.stringify(result);
  return tls === null ? "clear" : tlsVerified ? "verified" : "encrypted";
}

const NOT_OFFERED = "STARTTLS is not offered";
const expectedFault: Record<keyof typeof certs, RegExp> = {
  good: /^never$/,
  selfSigned: /^certificate of mx\.test: DEPTH_ZERO_SELF_SIGNED_CERT$/,
  untrusted: /^certificate of mx\.test: (UNABLE_TO_|SELF_SIGNED|CERT_SIGNATURE)/,
  expired: /^certificate of mx\.test: CERT_HAS_EXPIRED$/,
  wrongName: /^certificate of mx\.test: ERR_TLS_CERT_ALTNAME_INVALID$/,
  wrongAndSelfSigned: /^certificate of mx\.test: (DEPTH_ZERO_SELF_SIGNED_CERT|ERR_TLS_CERT_ALTNAME_INVALID)$/,
  wrongAndUntrusted: /^certificate of mx\.test: [A-Z_]+$/,
};

describe("a host that presents", () => {
  test.each([
    ...(["good", "selfSigned", "untrusted", "expired", "wrongName"] as const),
    ...(["wrongAndSelfSigned", "wrongAndUntrusted"] as const),
  ])("a certificate: %s", async (kind) => {
    const tls = certs[kind];
    expect(await wayOf(peer({ tls }), asked("opportunistic"))).toBe(
      kind === "good" ? "verified" : "encrypted",
    );
    expect(await wayOf(peer({ tls }), asked("encrypted"))).toBe(kind === "good" ? "verified" : "encrypted");
    const strict = peer({ tls });
    const way = await wayOf(strict, asked("verified"));
    if (kind === "good") expect(way).toBe("verified");
    else {
      expect(way).toMatch(expectedFault[kind]);
      // The client has read only the greeting: no address and no message has left.
      expect(strict.commands.items).toEqual(["EHLO us.test", "STARTTLS"]);
    }
  });

  const peers: [what: string, options: MxOptions][] = [
    ["no STARTTLS", {}],
    ["HELO alone", { answers: { EHLO: "502 5.5.1 what" } }],
    ["STARTTLS and refuses it", { extensions: ["STARTTLS"], answers: { STARTTLS: "454 4.7.0 not now" } }],
    [
      "STARTTLS and ends the session at it",
      { extensions: ["STARTTLS"], answers: { STARTTLS: "421 4.3.0 not today\r\nclose" } },
    ],
    ["STARTTLS and hangs up", { extensions: ["STARTTLS"], answers: { STARTTLS: "close" } }],
  ];
  test.each(peers)("%s gets mail in plain text unless TLS is required", async (what, options) => {
    expect(await wayOf(peer(options), asked("opportunistic"))).toBe("clear");
    for (const tls of ["encrypted", "verified"] as const) {
      const mx = peer(options);
      const way = await wayOf(mx, asked(tls));
      expect(way).not.toBe("clear");
      if (!what.startsWith("STARTTLS")) expect(way).toBe(NOT_OFFERED);
      expect(mx.messages.items).toEqual([]);
      expect(mx.commands.items.filter((line) => /^(MAIL|RCPT|DATA)/.test(line))).toEqual([]);
      // The fallback is only for hosts without a requirement: no second connection is tried.
      expect(mx.connections.items).toHaveLength(1);
    }
  });
});

test("a peer that hangs up after the handshake gets mail in plain text unless TLS is required", async () => {
  const EHLO = ["250-mx.test\r\n250 STARTTLS", "close", "250 mx.test"];
  expect(await wayOf(peer({ tls: certs.good, answers: { EHLO } }), asked("opportunistic"))).toBe("clear");
  for (const tls of ["encrypted", "verified"] as const) {
    const mx = peer({ tls: certs.good, answers: { EHLO } });
    expect(await wayOf(mx, asked(tls))).toBe("connection closed by the peer");
    expect(mx.connections.items).toHaveLength(1);
  }
});

test("a peer that refuses EHLO after the handshake is not retried in plain text", async () => {
  const EHLO = ["250-mx.test\r\n250 STARTTLS", "550 no", "250 mx.test"];
  const mx = peer({ tls: certs.good, answers: { EHLO, HELO: "550 5.7.1 no" } });
  expect((await send(mx)).result).toMatchObject({ kind: "reply", stage: "ehlo", code: 550 });
  expect(mx.connections.items).toHaveLength(1);
});

test("a broken handshake costs one more connection, and no more if that one fails too", async () => {
  const mx = peer({
    extensions: ["STARTTLS"],
    answers: { STARTTLS: "close", EHLO: ["250-mx.test\r\n250 STARTTLS", "close"] },
  });
  expect((await send(mx)).result).toMatchObject({ kind: "trouble", stage: "ehlo" });
  expect(mx.connections.items).toHaveLength(2);
});

/** A peer that offers TLS and hangs up at the first octets of a handshake. */
function startBreaker(): {
  port: number;
  connections: () => number;
  messages: () => number;
  stop: () => void;
} {
  let connections = 0;
  let messages = 0;
  const answerTo = (text: string): string => {
    if (text.startsWith("STARTTLS")) return "220 go ahead";
    if (text.startsWith("EHLO")) return "250-mx.test\r\n250 STARTTLS";
    if (text.startsWith("DATA")) return "354 go on";
    if (text.endsWith("\r\n.\r\n")) messages++;
    return "250 ok";
  };
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        connections++;
        socket.write("220 mx.test\r\n");
      },
      data: (socket, chunk) => {
        // The first octet of a TLS record that carries a handshake (RFC 8446 §5.1).
        if (chunk[0] === 22) socket.end();
        else socket.write(`${answerTo(chunk.toString("latin1"))}\r\n`);
      },
      error: () => undefined,
    },
  });
  const stop = (): void => server.stop(true);
  return { port: server.port, connections: () => connections, messages: () => messages, stop };
}

test.each([
  ["opportunistic", 2, 1],
  ["encrypted", 1, 0],
  ["verified", 1, 0],
] as const)(
  "an aborted handshake, if TLS is %s: connections %i, messages %i",
  async (tls, connections, messages) => {
    const breaker = startBreaker();
    const hosts = [{ name: NAME, addresses: ["127.0.0.1"], security: asked(tls) }];
    const destination = {
      key: "k",
      hosts,
      port: breaker.port,
      tls: "opportunistic",
      ehloName: "us.test",
    } as const;
    const { result } = await pool().deliver(destination, MAIL);
    expect(result).toMatchObject(messages === 1 ? { code: 250 } : { kind: "trouble", stage: "starttls" });
    expect([breaker.connections(), breaker.messages()]).toEqual([connections, messages]);
    breaker.stop();
  },
);

describe("the requirement of one host", () => {
  test("the requirement of one host is a subject alternative name, not a common name, if a policy requires it", async () => {
    const tls = await makeCommonNameCert(NAME, ca);
    const asking = peer({ tls });
    expect(await wayOf(asking, asked("verified"))).toBe(
      "certificate of mx.test: no subject alternative name is mx.test",
    );
    expect(asking.messages.items).toEqual([]);
    // A smarthost's certificate may be made by its operator.
    const { result } = await send(peer({ tls }), { to: { tls: "verified" } });
    expect(result).toMatchObject({ code: 250 });
  });

  test("the requirement of one host does not apply to another host, and the mail goes to the one that meets its own", async () => {
    const bad = peer({ tls: certs.selfSigned });
    const good = peer({ tls: certs.good, ip: "127.0.0.2", port: bad.port });
    const hosts = [
      { name: NAME, addresses: ["127.0.0.1"], security: asked("verified") },
      { name: "second.test", addresses: ["127.0.0.2"] },
    ];
    const report = await send(bad, { to: { hosts } });
    expect(report).toMatchObject({ result: { code: 250 }, mx: "second.test", tlsVerified: false });
    expect(bad.messages.items).toEqual([]);
    expect(good.messages.items).toHaveLength(1);
  });

  test("the requirement of one host applies even if the destination itself requires less", async () => {
    const mx = peer();
    expect((await send(mx, { security: asked("verified"), to: { tls: "never" } })).result).toMatchObject({
      kind: "trouble",
      reason: NOT_OFFERED,
    });
  });
});

/** A TLSA record of a certificate. */
function tlsa(usage: number, selector: number, matchingType: number, { cert }: KeyAndCert): TlsaRecord {
  const certificate = new X509Certificate(cert);
  const octets =
    selector === 0 ? certificate.raw : certificate.publicKey.export({ type: "spki", format: "der" });
  const digest = (name: string): Buffer => createHash(name).update(octets).digest();
  const data = matchingType === 0 ? octets : digest(matchingType === 1 ? "sha256" : "sha512");
  return { usage, selector, matchingType, data };
}

const dane = (records: TlsaRecord[], names: string[] = [NAME]): HostSecurity => ({
  tls: "verified",
  dane: { records, names },
  policy: "DANE",
});

/** The certificate followed by that of its authority, as RFC 7672 §3.1.2 requires. */
const chained = (leaf: KeyAndCert, authority: KeyAndCert): KeyAndCert => ({
  key: leaf.key,
  cert: `${leaf.cert}\n${authority.cert}`,
});

describe("DANE", () => {
  test.each([
    [3, 1, 1],
    [3, 1, 2],
    [3, 1, 0],
    [3, 0, 1],
    [3, 0, 2],
    [3, 0, 0],
  ])(
    "%i %i %i accepts the certificate it names, whatever else is wrong with it",
    async (usage, selector, matching) => {
      for (const kind of ["selfSigned", "expired", "wrongName", "untrusted"] as const) {
        const mx = peer({ tls: certs[kind] });
        expect(await wayOf(mx, dane([tlsa(usage, selector, matching, certs[kind])]))).toBe("verified");
      }
      const mx = peer({ tls: certs.good });
      const way = await wayOf(mx, dane([tlsa(usage, selector, matching, certs.selfSigned)]));
      expect(way).toBe("certificate of mx.test: the certificate matches no TLSA record");
      expect(mx.messages.items).toEqual([]);
    },
  );

  test("one record that matches is enough", async () => {
    const records = [tlsa(3, 1, 1, certs.selfSigned), tlsa(3, 1, 1, certs.good)];
    expect(await wayOf(peer({ tls: certs.good }), dane(records))).toBe("verified");
  });

  test.each([
    [2, 0, 1],
    [2, 0, 0],
    [2, 1, 1],
    [2, 1, 2],
  ])(
    "%i %i %i accepts a certificate of the authority it names, which is otherwise untrusted",
    async (usage, selector, matching) => {
      const record = tlsa(usage, selector, matching, otherCa);
      expect(await wayOf(peer({ tls: chained(certs.untrusted, otherCa) }), dane([record]))).toBe("verified");
      // The certificate may also name the next-hop domain (RFC 7672 §3.2.2).
      const named = chained(await makeCert(["in.test"], otherCa), otherCa);
      expect(await wayOf(peer({ tls: named }), dane([record], [NAME, "in.test"]))).toBe("verified");
    },
  );

  test("a trust anchor does not make a certificate valid that", async () => {
    const record = tlsa(2, 1, 1, ca);
    const rows: [KeyAndCert, string][] = [
      [chained(certs.wrongName, ca), "the certificate names none of mx.test"],
      [chained(certs.expired, ca), "a certificate of the chain is not valid at this time"],
      [chained(certs.untrusted, ca), "no certificate of the chain matches a TLSA record"],
      [chained(certs.selfSigned, ca), "no certificate of the chain matches a TLSA record"],
      [chained(certs.untrusted, otherCa), "no certificate of the chain matches a TLSA record"],
      [chained(await makeClientCert(NAME, ca), ca), "the certificate is not for servers"],
    ];
    for (const [tls, fault] of rows)
      expect(await wayOf(peer({ tls }), dane([record]))).toBe(`certificate of mx.test: ${fault}`);
  });

  test.each([
    ["is over", -2, -1],
    ["is to come", 1, 2],
  ])("a trust anchor is useless if its time %s", async (_, from, to) => {
    const day = (days: number): Date => new Date(systemClock.now() + days * 86_400_000);
    const authority = await makeCa({ notBeforeDate: day(from), notAfterDate: day(to) });
    const tls = chained(await makeCert([NAME], authority), authority);
    const fault = "certificate of mx.test: the trust anchor is not valid at this time";
    expect(await wayOf(peer({ tls }), dane([tlsa(2, 1, 1, authority)]))).toBe(fault);
  });

  test("a trust anchor that is neither presented nor known matches nothing", async () => {
    const way = await wayOf(peer({ tls: certs.untrusted }), dane([tlsa(2, 1, 1, otherCa)]));
    expect(way).toContain("no certificate of the chain");
  });

  test("a certificate without CA rights signs no others, even if a record names it", async () => {
    // Otherwise the owner of any certificate of a trusted host could sign more.
    const middle = await makeCert(["middle.test"], ca);
    const leaf = await makeCert([NAME], middle);
    const mx = peer({ tls: { key: leaf.key, cert: [leaf.cert, middle.cert, ca.cert].join("\n") } });
    for (const anchor of [middle, ca])
      expect(await wayOf(mx, dane([tlsa(2, 1, 1, anchor)]))).toContain("no certificate of the chain");
  });

  test("an invalid name matches no certificate", async () => {
    const names = ["", "a b", "\0", "*", "mx.test\0"];
    const way = await wayOf(peer({ tls: chained(certs.good, ca) }), dane([tlsa(2, 1, 1, ca)], names));
    expect(way).toStartWith("certificate of mx.test: the certificate names none of");
  });

  test("replaces the authorities: their trust alone is not enough", async () => {
    expect(await wayOf(peer({ tls: certs.good }), dane([tlsa(3, 1, 1, otherCa)]))).toContain(
      "matches no TLSA",
    );
  });
});

describe("the record of an attempt", () => {
  test("the record of an attempt has version, cipher and certificate, and how far it was verified", async () => {
    const verified = await send(peer({ tls: certs.good }), { security: asked("verified") });
    expect(verified.tls).toMatch(/^TLSv1\.3 [A-Z0-9_]+$/);
    const { validFrom, validTo } = new X509Certificate(certs.good.cert);
    expect(verified.transcript).toContain("* TLS policy: asks for verified");
    expect(verified.transcript).toContain(`* TLS: ${verified.tls}, verified`);
    expect(verified.transcript).toContain(
      `* TLS certificate: subject CN=mx.test; issuer CN=Test CA; names DNS:mx.test; valid from ${validFrom} to ${validTo}`,
    );
    const expired = await send(peer({ tls: certs.expired }));
    expect(expired.transcript).toContain(`* TLS: ${expired.tls}, not verified: CERT_HAS_EXPIRED`);
    const bound = await send(peer({ tls: certs.selfSigned }), {
      security: dane([tlsa(3, 1, 1, certs.selfSigned)]),
    });
    expect(bound.transcript).toContain(`* TLS: ${bound.tls}, verified by DANE`);
  });

  test("the record of an attempt has them too if they made the delivery fail", async () => {
    const { transcript, result } = await send(peer({ tls: certs.wrongName }), {
      security: asked("verified"),
    });
    expect(result).toMatchObject({ kind: "trouble", stage: "starttls" });
    expect(transcript.filter((line) => line.startsWith("* TLS")).length).toBe(3);
  });

  test("the record of an attempt has them for each message of a kept connection", async () => {
    const mx = peer({ tls: certs.good });
    const shared = pool();
    const reports = [];
    for (let at = 0; at < 3; at++)
      reports.push(await send(mx, { pool: shared, security: asked("verified") }));
    expect(mx.connections.items).toHaveLength(1);
    for (const { transcript } of reports)
      expect(transcript.filter((line) => line.startsWith("* TLS")).length).toBe(3);
  });

  test("the record of an attempt shows no more of a certificate than its limit, and no control characters", async () => {
    const names = Array.from(
      { length: MAX_NAMES_SHOWN + 5 },
      (_, at) => `${"a".repeat(60)}.${"b".repeat(60)}.n${at}.test`,
    );
    const { transcript } = await send(peer({ tls: await makeCert(names, ca) }));
    const line = transcript.find((one) => one.startsWith("* TLS certificate")) ?? "";
    expect(line).toContain("and 5 more");
    expect(line).not.toContain("n11");
    expect(line.length).toBeLessThan(2000);
    expect(line).toMatch(/^[\x20-\x7e]+$/);
  });
});

describe("a peer's limits", () => {
  const utf8 = { rcptTo: "grüße@in.test" };
  test.each<[what: string, extensions: string[], mail: Partial<OutboundMail>, outcome: object]>([
    ["an address beyond ASCII without SMTPUTF8", ["8BITMIME"], utf8, { code: 553, enhanced: "5.6.7" }],
    [
      "a header beyond ASCII without SMTPUTF8",
      ["8BITMIME"],
      { smtpUtf8: true },
      { code: 553, enhanced: "5.6.7" },
    ],
    [
      "8-bit content without 8BITMIME",
      [],
      { raw: Buffer.from("Subject: x\r\n\r\nü\r\n") },
      { code: 554, enhanced: "5.6.3" },
    ],
    ["a message over its SIZE", [`SIZE ${RAW.length - 1}`], {}, { code: 552, enhanced: "5.3.4" }],
  ])("%s fails before MAIL, on each connection again", async (_, extensions, mail, outcome) => {
    const mx = peer({ extensions });
    for (let at = 0; at < 2; at++) {
      const { result, transcript } = await send(mx, { mail });
      expect(result).toMatchObject({ kind: "unsendable", stage: "mail", ...outcome });
      expect(transcript.at(-1)).toMatch(/^\* not sent: 55[234] 5\.[36]\.[0-9] /);
    }
    expect(mx.commands.items.filter((line) => line.startsWith("MAIL"))).toEqual([]);
  });

  test.each<[extensions: string[], mail: Partial<OutboundMail>, parameters: string]>([
    [["SIZE"], {}, ` SIZE=${RAW.length}`],
    [[`SIZE ${RAW.length}`], {}, ` SIZE=${RAW.length}`],
    [["SMTPUTF8", "8BITMIME"], {}, ""],
    [["SMTPUTF8", "8BITMIME"], utf8, " SMTPUTF8"],
    [["8BITMIME"], { raw: Buffer.from("Subject: x\r\n\r\nü\r\n") }, " BODY=8BITMIME"],
  ])("a peer's limits with %j and %j is passed to MAIL unchanged", async (extensions, mail, parameters) => {
    const mx = peer({ extensions });
    expect((await send(mx, { mail })).result).toMatchObject({ code: 250 });
    expect(mx.commands.items).toContain(`MAIL FROM:<b+1@out.test>${parameters}`);
  });

  test("a peer's limits count only as announced under TLS: an announcement injected before it is forgotten", async () => {
    const mx = peer({ tls: certs.good });
    mx.set({ EHLO: ["250-mx.test\r\n250-SIZE 1\r\n250 STARTTLS", "250-mx.test\r\n250 8BITMIME"] });
    expect((await send(mx, { security: asked("verified") })).result).toMatchObject({ code: 250 });
  });
});

describe("IPv6", () => {
  test("a host that only has IPv6 gets its mail, over TLS", async () => {
    const mx = peer({ ip: "::1", tls: certs.good });
    const report = await send(mx, { security: asked("verified") });
    expect(report).toMatchObject({ result: { code: 250 }, ip: "::1", tlsVerified: true });
  });

  test.each([
    ["::1", "127.0.0.1"],
    ["127.0.0.1", "::1"],
  ])("%s that takes no connection is followed by %s", async (dead, alive) => {
    const mx = peer({ ip: alive });
    const hosts = [{ name: NAME, addresses: [dead, alive] }];
    expect(await send(mx, { to: { hosts } })).toMatchObject({ result: { code: 250 }, ip: alive });
  });
});

describe("a smarthost", () => {
  const auth = { user: "user", pass: "secret", insecure: false };
  test.each<[kind: keyof typeof certs, implicitTls: boolean, tls: TlsMode]>([
    ["selfSigned", false, "verified"],
    ["expired", false, "verified"],
    ["wrongName", true, "verified"],
    ["untrusted", true, "verified"],
    ["expired", true, "opportunistic"],
  ])(
    "a smarthost with a certificate that is %s (TLS at once: %j) does not get the password",
    async (kind, implicitTls, tls) => {
      const mx = peer({ tls: certs[kind], implicitTls, extensions: ["AUTH PLAIN LOGIN"] });
      const { result } = await send(mx, { to: { auth, implicitTls, tls } });
      expect(result.kind).toBe("trouble");
      expect(mx.commands.items.filter((line) => line.startsWith("AUTH"))).toEqual([]);
      expect(mx.messages.items).toEqual([]);
    },
  );

  test("a smarthost does not get the password in plain text after a broken handshake", async () => {
    const mx = peer({ extensions: ["STARTTLS", "AUTH PLAIN"], answers: { STARTTLS: "close" } });
    const { result } = await send(mx, { to: { auth, tls: "opportunistic" } });
    expect(result).toMatchObject({ kind: "trouble", stage: "starttls" });
    expect(mx.connections.items).toHaveLength(1);
  });
});
