import { generate } from "selfsigned";
import { createResolver, type Resolver } from "../../src/net/dns/resolver.ts";
import { systemClock } from "../../src/clock.ts";
import { decode, encode } from "dns-packet";
import type { DnsRecord, TestDns } from "./dns.ts";
import { type HttpsSink, startSink } from "./https-sink.ts";
import type { KeyAndCert } from "./tls.ts";

const DAY_MS = 86_400_000;

/** A certificate that was valid until yesterday. */
export async function makeExpiredCert(names: readonly string[], ca: KeyAndCert): Promise<KeyAndCert> {
  const now = systemClock.now();
  const made = await generate([{ name: "commonName", value: names[0] ?? "test" }], {
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "subjectAltName", altNames: names.map((value) => ({ type: 2 as const, value })) },
    ],
    notBeforeDate: new Date(now - 2 * DAY_MS),
    notAfterDate: new Date(now - DAY_MS),
    ca,
  });
  return { key: made.private, cert: made.cert };
}

/** Makes a certificate that is valid for clients only. */
export async function makeClientCert(name: string, ca: KeyAndCert): Promise<KeyAndCert> {
  const made = await generate([{ name: "commonName", value: name }], {
    algorithm: "sha256",
    extensions: [
      { name: "extKeyUsage", clientAuth: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: name }] },
    ],
    ca,
  });
  return { key: made.private, cert: made.cert };
}

/** Makes a certificate that names a host only in its common name. */
export async function makeCommonNameCert(name: string, ca: KeyAndCert): Promise<KeyAndCert> {
  const extensions = [{ name: "basicConstraints", cA: false } as const];
  const made = await generate([{ name: "commonName", value: name }], { algorithm: "sha256", extensions, ca });
  return { key: made.private, cert: made.cert };
}

/** Builds a policy's text from its lines. */
export function policyText(...lines: string[]): string {
  return `${["version: STSv1", ...lines].join("\r\n")}\r\n`;
}

/** A web server for the policies of all domains. The certificate decides for which domains it is trusted. */
export function startStsHost(cert: KeyAndCert, text: string): HttpsSink {
  const host = startSink(cert);
  host.answer(() => new Response(text, { headers: { "content-type": "text/plain" } }));
  return host;
}

/** The records that announce a domain's policy, hosted on this machine. */
export function stsRecords(domain: string, id: string): DnsRecord[] {
  return [
    { name: `_mta-sts.${domain}`, type: "TXT", data: `v=STSv1; id=${id};`, ttl: 0 },
    { name: `mta-sts.${domain}`, type: "A", data: "127.0.0.1", ttl: 0 },
  ];
}

/** A TLSA record for a zone. */
export function tlsaRecord(
  name: string,
  usage: number,
  selector: number,
  matchingType: number,
  certificate: Buffer,
): DnsRecord {
  // The zone's own type has no TLSA, but its encoder accepts one.
  return {
    name,
    type: "TLSA",
    data: { usage, selector, matchingType, certificate },
    ttl: 0,
  } as unknown as DnsRecord;
}

const AD = 1 << 5;

/** Sets the AD bit only of answers to questions for which `isSigned` returns true. */
export function signZone(dns: TestDns, isSigned: (name: string, type: string) => boolean): void {
  dns.forge((answer, query) => {
    const question = decode(query).questions?.[0];
    const signed = question !== undefined && isSigned(question.name.toLowerCase(), question.type);
    return [encode({ ...answer, flags: signed ? (answer.flags ?? 0) | AD : answer.flags })];
  });
}

/** A resolver of this test with an empty cache. */
export function testResolver(dns: TestDns): Resolver {
  return createResolver({ clock: systemClock }, { servers: [dns], tries: 1, tryTimeoutMs: 5000 });
}
