import { createHash } from "node:crypto";
import { type DaneFinding, findDane, type TlsaRecord } from "./dane.ts";
import type { KeptPolicy, MtaSts } from "./mta-sts.ts";
import { namesHost } from "./mta-sts-policy.ts";
import type { MxHost } from "./mx.ts";
import type { Resolver } from "./dns/resolver.ts";

/** What a published policy asks of the connection to one host. */
export interface HostSecurity {
  /** `opportunistic`: as ever, the policy is only recorded. `encrypted`: TLS. `verified`: TLS and the right certificate. */
  tls: "opportunistic" | "encrypted" | "verified";
  /** With `verified`: the certificate is judged by these records in place of the authorities. */
  dane?: { records: readonly TlsaRecord[]; names: readonly string[] };
  /**
   * Which policy it is and what it asks, for the record of the attempt. It does not name the domain: connections are
   * shared by all domains of the host, and none is to read of another.
   */
  policy: string;
}

/** An MX host with what is asked of the connection to it; nothing where no policy speaks of it. */
export interface SecuredHost extends MxHost {
  security?: HostSecurity;
}

/** The hosts that may be used, each with what is asked of its TLS. */
export type Secured =
  | { kind: "hosts"; hosts: readonly SecuredHost[] }
  /** No host may be used now; try again later, and never in the clear. */
  | { kind: "deferred"; reason: string };

export interface TransportSecurityDeps {
  resolver: Resolver;
  mtaSts: MtaSts;
  /** Port of the MX hosts, of which the TLSA records speak. */
  port: number;
  /**
   * Whether the AD bit of answers is believed, and so DANE applied: only where the operator has named the DNS servers
   * as trusted ones. Whoever could set the bit could have DANE outrank an MTA-STS policy with a key of their own.
   */
  trustsDnssec: boolean;
}

/**
 * What the domain has published about TLS to its MX hosts: DANE (RFC 7672) host by host, and MTA-STS (RFC 8461) for the
 * hosts of which DANE says nothing; it never makes up for a DANE that fails (RFC 8461 §2). Hosts that may not be used
 * are left out. Never rejects.
 */
export async function securityFor(
  deps: TransportSecurityDeps,
  domain: string,
  hosts: readonly MxHost[],
): Promise<Secured> {
  const asked = deps.mtaSts.policyFor(domain);
  const dane = await daneOf(deps, domain, hosts);
  if (dane.every(({ kind }) => kind === "demand" || kind === "broken"))
    return secured(domain, hosts, dane, null);
  const sts = await asked;
  if (sts.kind === "deferred") return sts;
  const found = secured(domain, hosts, dane, sts.policy);
  if (found.kind === "hosts") return found;
  // RFC 8461 §5: before a delivery fails by a policy it is seen whether there is a newer one.
  const renewed = await sts.renewed();
  return renewed === null ? found : secured(domain, hosts, dane, renewed);
}

async function daneOf(
  { resolver, port, trustsDnssec }: TransportSecurityDeps,
  domain: string,
  hosts: readonly MxHost[],
): Promise<DaneFinding[]> {
  if (!trustsDnssec) return hosts.map(() => ({ kind: "none" }));
  const names = hosts.map(({ name }) => name);
  return findDane(resolver, domain, names, port);
}

type Judged = { host: SecuredHost } | { host: null; reason: string };

function secured(
  domain: string,
  hosts: readonly MxHost[],
  dane: readonly DaneFinding[],
  policy: KeptPolicy | null,
): Secured {
  const judged = hosts.map((host, at) => judge(host, dane[at] ?? { kind: "none" }, policy));
  const left = judged.flatMap(({ host }) => (host === null ? [] : [host]));
  if (left.length > 0) return { kind: "hosts", hosts: left };
  const why = judged.flatMap((one) => (one.host === null ? [one.reason] : [])).join(", ");
  return { kind: "deferred", reason: `no mail host of ${domain} may be used (${why})` };
}

function judge(host: MxHost, dane: DaneFinding, policy: KeptPolicy | null): Judged {
  if (dane.kind === "broken") return { host: null, reason: `${host.name}: DANE, ${dane.reason}` };
  if (dane.kind === "demand") {
    const { records, names } = dane;
    const security = { tls: "verified", dane: { records, names }, policy: "DANE" } as const;
    return { host: { ...host, security } };
  }
  if (policy?.mode === "enforce" && !namesHost(policy, host.name))
    return { host: null, reason: `${host.name}: not named by the MTA-STS policy` };
  const security = securityBy(host, dane, policy);
  return { host: security === null ? host : { ...host, security } };
}

function securityBy(host: MxHost, dane: DaneFinding, policy: KeptPolicy | null): HostSecurity | null {
  if (policy?.mode === "enforce") return { tls: "verified", policy: "MTA-STS, enforced" };
  if (dane.kind === "unusable")
    return { tls: "encrypted", policy: "DANE, without a record that can be used" };
  if (policy?.mode !== "testing") return null;
  const named = namesHost(policy, host.name) ? "which names" : "which does not name";
  return { tls: "opportunistic", policy: `MTA-STS, for testing only, ${named} this host` };
}

/**
 * Tells the connections to hosts apart that may not stand for each other: those with the same name but other demands,
 * e.g. of two domains at one provider of which one enforces TLS. "" where nothing is asked.
 */
export function securityKey({ security }: SecuredHost): string {
  if (security === undefined) return "";
  const { tls, dane, policy } = security;
  const records = dane?.records.map(
    ({ usage, selector, matchingType, data }) =>
      `${usage} ${selector} ${matchingType} ${Buffer.from(data).toString("hex")}`,
  );
  return createHash("sha256")
    .update(JSON.stringify([tls, policy, records?.sort() ?? [], dane?.names ?? []]))
    .digest("base64url");
}
