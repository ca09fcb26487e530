import { createHash, X509Certificate } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { mxRoutes } from "../../src/flows/deliver/deliver.ts";
import type { DeliveryReport, Shipment } from "../../src/flows/deliver/outcome.ts";
import { verdictOf } from "../../src/flows/deliver/verdict.ts";
import { log } from "../../src/log.ts";
import { createMtaSts } from "../../src/net/mta-sts.ts";
import { findRoute } from "../../src/net/mx.ts";
import { securityFor } from "../../src/net/transport-security.ts";
import { createPool, type Pool } from "../../src/smtp/client/pool.ts";
import { findStsPolicy, saveStsPolicy } from "../../src/store/domains/mta-sts.ts";
import { testLanes } from "../support/lanes.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type DnsRecord, startDns, type TestDns } from "../support/dns.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { policyText, signZone, stsRecords, testResolver, tlsaRecord } from "../support/sts-host.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";
import { mayReach } from "../support/public-guard.ts";

const GOOD = "127.0.0.1";
const BAD = "127.0.0.2";
const PLAIN = "127.0.0.3";
let ca: KeyAndCert;
let selfSigned: KeyAndCert;
let policyCert: KeyAndCert;
let base: TestDatabase;
let dns: TestDns;
/** MX hosts at one port: with a valid certificate, with a self-made one, and without TLS. */
let mxs: Record<string, TestMx>;
let port: number;
let web: HttpsSink;
let pool: Pool;
/** Domains whose zone is signed. */
const SIGNED = new Set<string>();

const DOMAINS = ["enforce", "stranger", "testing", "free", "dane", "wrongkey", "bogus", "unsigned", "both"];

beforeAll(async () => {
  ca = await makeCa();
  selfSigned = await makeCert(["bad.test"]);
  policyCert = await makeCert(
    DOMAINS.map((name) => `mta-sts.${name}.test`),
    ca,
  );
  const good = startMx({ ip: GOOD, tls: await makeCert(["good.test"], ca) });
  ({ port } = good);
  mxs = {
    good,
    bad: startMx({ ip: BAD, port, tls: selfSigned }),
    plain: startMx({ ip: PLAIN, port, extensions: ["8BITMIME", "SIZE 1000"] }),
  };
  dns = await startDns();
  const a = (name: string, data: string): DnsRecord => ({ name, type: "A", data });
  dns.add(a("good.test", GOOD), a("bad.test", BAD), a("plain.test", PLAIN));
  signZone(dns, (name) => SIGNED.has(name));
});
afterAll(() => {
  dns.stop();
  for (const mx of Object.values(mxs)) mx.stop();
});
beforeEach(async () => {
  base = await testDatabase();
  web = startSink(policyCert);
  pool = createPool(
    { clock: systemClock, log: log("smtp"), ca: ca.cert },
    { maxConnectionsPerDestination: 2 },
  );
});
afterEach(async () => {
  await pool.close(1000);
  await web.stop();
  await base.remove();
});

/** A domain with these MX hosts, best first. */
function domain(name: string, ...hosts: string[]): void {
  dns.remove(`${name}.test`);
  dns.add(
    ...hosts.map(
      (exchange, at) => ({ name: `${name}.test`, type: "MX", data: { preference: at, exchange } }) as const,
    ),
  );
}

/** Publishes a policy for a domain. */
function publish(name: string, ...lines: string[]): void {
  dns.remove(`_mta-sts.${name}.test`);
  dns.add(...stsRecords(`${name}.test`, "one"));
  const text = policyText(...lines, "max_age: 86400");
  web.answer(() => new Response(text, { headers: { "content-type": "text/plain" } }));
}

/** Delivers one message as the service does, with everything new but the database, as after a restart. */
async function deliver(name: string, change: Partial<Shipment> = {}): Promise<DeliveryReport> {
  const resolver = testResolver(dns);
  const { db } = base;
  const store = {
    load: (of: string) => findStsPolicy(db, of),
    save: (policy: Parameters<typeof saveStsPolicy>[1]) => saveStsPolicy(db, policy),
  };
  const mtaSts = createMtaSts(
    { clock: systemClock, resolver, mayReach, log: log("net"), ca: ca.cert, store },
    { port: web.port, allowPrivate: true },
  );
  const findDeliveryRoute = mxRoutes({
    pool,
    lanes: testLanes(systemClock, { connections: 2 }),
    port,
    ehloName: "us.test",
    clock: systemClock,
    route: (of) => findRoute({ resolver, random: () => 0.5, allowPrivate: true }, of),
    secure: (of, hosts) => securityFor({ resolver, mtaSts, port, trustsDnssec: true }, of, hosts),
  });
  const shipment: Shipment = {
    mailFrom: "b+1@out.test",
    rcptTo: `to@${name}.test`,
    domain: `${name}.test`,
    raw: Buffer.from("Subject: x\r\n\r\nhello\r\n"),
    smtpUtf8: false,
    ...change,
  };
  const { deliver: hand } = await findDeliveryRoute(shipment.domain);
  return hand(shipment);
}

/** Recipients whose mail has arrived at an MX host, in plain text or not. */
function arrived(mx: string): string[] {
  return (mxs[mx]?.messages.items ?? []).map(({ rcptTo, tls }) => `${rcptTo[0]} ${tls ? "TLS" : "clear"}`);
}

function keyDigest({ cert }: KeyAndCert): Buffer {
  const key = new X509Certificate(cert).publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(key).digest();
}

/** Signs a domain and its host, with a TLSA record of the key. */
function sign(name: string, host: string, key: Buffer): void {
  const tlsa = `_${port}._tcp.${host}`;
  dns.remove(tlsa);
  dns.add(tlsaRecord(tlsa, 3, 1, 1, key));
  for (const one of [`${name}.test`, host, tlsa]) SIGNED.add(one);
}

describe("MTA-STS", () => {
  test("enforced sends only to a host that the policy names and whose certificate is valid", async () => {
    domain("enforce", "plain.test", "bad.test", "good.test");
    publish("enforce", "mode: enforce", "mx: bad.test", "mx: good.test");
    expect(await deliver("enforce")).toMatchObject({ kind: "accepted", mx: "good.test" });
    expect(arrived("good")).toContain("to@enforce.test TLS");
    expect([...arrived("plain"), ...arrived("bad")].join()).not.toContain("@enforce.test");
  });

  test("enforced defers if no host qualifies, and also after a restart without the policy's host", async () => {
    domain("stranger", "plain.test", "bad.test");
    publish("stranger", "mode: enforce", "mx: good.test");
    expect(await deliver("stranger")).toMatchObject({
      kind: "trouble",
      reason: expect.stringContaining("no mail host of stranger.test may be used"),
    });
    dns.remove("_mta-sts.stranger.test");
    await web.stop();
    domain("stranger", "plain.test");
    expect(await deliver("stranger")).toMatchObject({ kind: "trouble", stage: "starttls" });
    expect([...arrived("plain"), ...arrived("bad")].join()).not.toContain("@stranger.test");
  });

  test("an MTA-STS policy in testing mode is recorded, and mail is sent as usual", async () => {
    domain("testing", "plain.test");
    publish("testing", "mode: testing", "mx: good.test");
    const report = await deliver("testing");
    expect(report).toMatchObject({ kind: "accepted", mx: "plain.test", tls: null });
    expect(report.transcript).toContain(
      "* TLS policy: MTA-STS, for testing only, which does not name this host",
    );
  });

  test("one domain's MTA-STS policy does not bind another at the same host, and they share no connection", async () => {
    domain("free", "good.test");
    domain("enforce", "good.test");
    const before = mxs.good?.connections.items.length ?? 0;
    expect(await deliver("free")).toMatchObject({ kind: "accepted" });
    publish("enforce", "mode: enforce", "mx: good.test");
    const report = await deliver("enforce");
    expect(report).toMatchObject({ kind: "accepted" });
    expect(report.transcript).toContain("* TLS policy: MTA-STS, enforced");
    expect((mxs.good?.connections.items.length ?? 0) - before).toBe(2);
    expect(await deliver("enforce")).toMatchObject({ kind: "accepted" });
    expect((mxs.good?.connections.items.length ?? 0) - before).toBe(2);
  });
});

describe("DANE", () => {
  test("accepts the certificate that the record names", async () => {
    domain("dane", "bad.test");
    sign("dane", "bad.test", keyDigest(selfSigned));
    const report = await deliver("dane");
    expect(report).toMatchObject({ kind: "accepted", mx: "bad.test" });
    expect(report.transcript).toContain(`* TLS: ${report.tls}, verified by DANE`);
  });

  test("accepts no other certificate, even if an authority and MTA-STS vouch for it", async () => {
    domain("both", "good.test");
    sign("both", "good.test", keyDigest(selfSigned));
    publish("both", "mode: enforce", "mx: good.test");
    expect(await deliver("both")).toMatchObject({ kind: "trouble", stage: "starttls" });
    expect(arrived("good").join()).not.toContain("@both.test");
    SIGNED.delete("both.test");
    expect(await deliver("both")).toMatchObject({ kind: "accepted" });
  });

  test("mail is deferred if TLSA records cannot be looked up", async () => {
    domain("bogus", "plain.test");
    const tlsa = `_${port}._tcp.plain.test`;
    sign("bogus", "plain.test", keyDigest(selfSigned));
    dns.behave("servfail", tlsa);
    expect(await deliver("bogus")).toMatchObject({
      kind: "trouble",
      reason: "no mail host of bogus.test may be used (plain.test: DANE, TLSA lookup: servfail)",
    });
    expect(arrived("plain").join()).not.toContain("@bogus.test");
  });

  test("does not apply to an unsigned zone", async () => {
    domain("unsigned", "plain.test");
    const before = dns.count(`_${port}._tcp.plain.test`);
    expect(await deliver("unsigned")).toMatchObject({ kind: "accepted", tls: null });
    expect(dns.count(`_${port}._tcp.plain.test`)).toBe(before);
  });
});

describe("a message that the peer cannot take", () => {
  test.each<[what: string, change: Partial<Shipment>, code: number, enhanced: string]>([
    ["needs SMTPUTF8", { smtpUtf8: true }, 553, "5.6.7"],
    ["is over its SIZE", { raw: Buffer.alloc(1001, "x") }, 552, "5.3.4"],
  ])("%s and fails for good, with its code", async (_, change, code, enhanced) => {
    domain("unsigned", "plain.test");
    const report = await deliver("unsigned", change);
    expect(report).toMatchObject({ kind: "undeliverable", verdict: "failed", code, enhanced });
    const policy = { schedule: { delaysSeconds: [60], jitter: 0 }, giveUpMs: 60_000 };
    const verdict = verdictOf(report, "delivered", policy, { attempt: 1, ageMs: 0, random: 0 });
    expect(verdict).toMatchObject({
      status: "failed",
      smtpCode: code,
      enhancedCode: enhanced,
      retryInMs: null,
    });
  });
});
