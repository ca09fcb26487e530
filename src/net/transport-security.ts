import { createHash } from "node:crypto";
import type { HostSecurity } from "../core/tls-policy.ts";
import { type DaneFinding, findDane } from "./dane.ts";
import type { StoredPolicy, MtaSts } from "./mta-sts.ts";
import { namesHost } from "./mta-sts-policy.ts";
import type { MxHost } from "./mx.ts";
import type { Resolver } from "./dns/resolver.ts";

/** An MX host with the requirements for its connection, if a policy has any. */
export interface SecuredHost extends MxHost {
  security?: HostSecurity;
}

/** The usable hosts with their TLS requirements. */
export type SecuredRoute =
  | { kind: "hosts"; hosts: readonly SecuredHost[] }
  /** No host may be used now. Try again later, never in plain text. */
  | { kind: "deferred"; reason: string };

export interface TransportSecurityDeps {
  resolver: Resolver;
  mtaSts: MtaSts;
  /** Port of the MX hosts, which the TLSA records are for. */
  port: number;
  /**
   * True if the AD bit is trusted, so that DANE applies: only if the operator has named the DNS servers as trusted.
   * Otherwise an attacker who can set the bit could override an MTA-STS policy with a key of theirs.
   */
  trustsDnssec: boolean;
}

/**
 * Returns the TLS requirements that a domain has published for its MX hosts: DANE (RFC 7672) for each host, and MTA-STS
 * (RFC 8461) for hosts without DANE. MTA-STS never replaces a DANE that fails (RFC 8461 §2). Hosts that must not be
 * used are left out. Never rejects.
 */
export async function securityFor(
  deps: TransportSecurityDeps,
  domain: string,
  hosts: readonly MxHost[],
): Promise<SecuredRoute> {
  const asked = deps.mtaSts.policyFor(domain);
  const dane = await daneOf(deps, domain, hosts);
  if (dane.every(({ kind }) => kind === "demand" || kind === "broken"))
    return applyPolicies(domain, hosts, dane, null);
  const sts = await asked;
  if (sts.kind === "deferred") return sts;
  const found = applyPolicies(domain, hosts, dane, sts.policy);
  if (found.kind === "hosts") return found;
  // RFC 8461 §5: before a policy makes a delivery fail, check for a newer one.
  const renewed = await sts.renewed();
  return renewed === null ? found : applyPolicies(domain, hosts, dane, renewed);
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

type HostDecision = { host: SecuredHost } | { host: null; reason: string };

function applyPolicies(
  domain: string,
  hosts: readonly MxHost[],
  dane: readonly DaneFinding[],
  policy: StoredPolicy | null,
): SecuredRoute {
  const judged = hosts.map((host, at) => decide(host, dane[at] ?? { kind: "none" }, policy));
  const left = judged.flatMap(({ host }) => (host === null ? [] : [host]));
  if (left.length > 0) return { kind: "hosts", hosts: left };
  const why = judged.flatMap((one) => (one.host === null ? [one.reason] : [])).join(", ");
  return { kind: "deferred", reason: `no mail host of ${domain} may be used (${why})` };
}

function decide(host: MxHost, dane: DaneFinding, policy: StoredPolicy | null): HostDecision {
  if (dane.kind === "broken") return { host: null, reason: `${host.name}: DANE, ${dane.reason}` };
  if (dane.kind === "demand") {
    const { records, names } = dane;
    const security = { tls: "verified", dane: { records, names }, policy: "DANE" } as const;
    return { host: { ...host, security } };
  }
  if (policy?.mode === "enforce" && !namesHost(policy, host.name))
    return { host: null, reason: `${host.name}: not named by the MTA-STS policy` };
  const security = policySecurity(host, dane, policy);
  return { host: security === null ? host : { ...host, security } };
}

function policySecurity(host: MxHost, dane: DaneFinding, policy: StoredPolicy | null): HostSecurity | null {
  if (policy?.mode === "enforce") return { tls: "verified", policy: "MTA-STS, enforced" };
  if (dane.kind === "unusable")
    return { tls: "encrypted", policy: "DANE, without a record that can be used" };
  if (policy?.mode !== "testing") return null;
  const named = namesHost(policy, host.name) ? "which names" : "which does not name";
  return { tls: "opportunistic", policy: `MTA-STS, for testing only, ${named} this host` };
}

/**
 * Returns a key that differs if connections must not be shared. Two hosts of the same name may have different
 * requirements, for example if only one of two domains at a provider enforces TLS. Returns "" if there are none.
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
