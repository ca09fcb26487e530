import { createHash, type X509Certificate } from "node:crypto";
import { DAY_MS, SECOND_MS } from "../../core/time/units.ts";
import { CertificateError } from "../../smtp/listener/certificate.ts";
import { type CertificateRecord, findCertificate } from "../../store/domains/certificates.ts";
import type { Domain } from "../../store/domains/domains.ts";
import type { Store } from "../../store/engine/client.ts";
import { mtaStsHost, mxHost } from "../../core/own-names.ts";
import { type HostSettings, hostsDomains } from "./domain-hosts.ts";
import { servedCertificate, verifiable } from "./served.ts";

/** Longest time for which senders may keep our policy. */
const MAX_AGE_MS = 7 * DAY_MS;
/** Hex digits of a policy's id (RFC 8461 §3.1: at most 32). */
const ID_DIGITS = 16;

/** An MTA-STS policy that we serve (RFC 8461 §3). */
export interface OwnPolicy {
  /** Changes if the policy says something else. */
  id: string;
  text: string;
}

/**
 * Returns the policy that the service domain serves and announces. Returns null unless TLS_PORT is set and the certificate
 * is one that senders can verify, both at the policy's host and at the mail host. No sender may keep it for longer
 * than the certificate lasts, so a renewal that fails for good never stops mail.
 */
export async function ownPolicy(deps: Store, settings: HostSettings): Promise<OwnPolicy | null> {
  const { serviceDomain, tlsPort } = settings;
  if (tlsPort === null) return null;
  const mx = mxHost(serviceDomain);
  const leaf = await ownCertificate(deps, settings, [mtaStsHost(serviceDomain), mx]);
  return leaf === null ? null : enforcing(mx, [leaf], deps.clock.now());
}

/**
 * Returns the policy that a delegated domain serves and announces; null unless its host has a certificate that senders can
 * verify. While the domain receives, the policy enforces TLS to our mail host. If it does not, or that host cannot be
 * verified, the policy is `none`, which replaces the one that senders have kept (RFC 8461 §8.3).
 */
export async function domainPolicy(
  deps: Store,
  settings: HostSettings,
  domain: Pick<Domain, "id" | "name" | "receiving">,
): Promise<OwnPolicy | null> {
  if (!hostsDomains(settings)) return null;
  const now = deps.clock.now();
  const leaf = leafOf(await findCertificate(deps.db, domain.id), mtaStsHost(domain.name), now);
  if (leaf === null) return null;
  const mx = mxHost(settings.serviceDomain);
  const own = domain.receiving ? await ownCertificate(deps, settings, [mx]) : null;
  return own === null ? policyOf(["mode: none"], MAX_AGE_MS) : enforcing(mx, [leaf, own], now);
}

/** Returns the certificate of the service's own names if senders can verify it at these names; else null. */
async function ownCertificate(
  { db, clock }: Store,
  settings: HostSettings,
  names: readonly string[],
): Promise<X509Certificate | null> {
  const served = await servedCertificate(() => db, settings).catch((error: unknown) => {
    if (error instanceof CertificateError) return null;
    throw error;
  });
  return served && verifiable(served, names, clock.now());
}

function leafOf(record: CertificateRecord | null, name: string, now: number): X509Certificate | null {
  return verifiable({ chain: record?.issued?.chain ?? null, record }, [name], now);
}

function enforcing(mx: string, leaves: readonly X509Certificate[], now: number): OwnPolicy {
  const left = Math.min(...leaves.map(({ validTo }) => Date.parse(validTo) - now));
  return policyOf(["mode: enforce", `mx: ${mx}`], Math.min(MAX_AGE_MS, left));
}

function policyOf(rules: readonly string[], maxAgeMs: number): OwnPolicy {
  const lines = ["version: STSv1", ...rules];
  return {
    id: createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, ID_DIGITS),
    text: [...lines, `max_age: ${Math.floor(maxAgeMs / SECOND_MS)}`, ""].join("\r\n"),
  };
}
