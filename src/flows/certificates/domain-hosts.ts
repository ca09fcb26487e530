import type { Config } from "../../config.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import type { CertificateRecord } from "../../store/domains/certificates.ts";
import { challengeName, challengeTarget, linksHost, mtaStsHost } from "../../core/own-names.ts";
import { type CertificateSettings, usesAcme } from "./served.ts";

/**
 * Maximum number of certificates of delegated domains. A process that serves TLS_PORT reads all of them again after
 * a change, which holds its event loop for 30 to 60 ms with that many.
 */
export const MAX_DOMAIN_CERTIFICATES = 1000;
/**
 * New orders for domains in a time, of all processes together. Let's Encrypt allows 300 to an account in three hours, and
 * some must be left for our own names.
 */
export const ORDER_WINDOW_MS = 3 * HOUR_MS;
export const MAX_DOMAIN_ORDERS = 200;

export type HostSettings = CertificateSettings & Pick<Config, "tlsPort" | "publicIps" | "delivery">;

/**
 * Returns true if domains have their own hosts: certificates are ordered, TLS_PORT serves them, and PUBLIC_IPS
 * lead there. In capture mode nothing leaves the machine, so links stay on it. It depends on settings alone, so that
 * processes with the same settings agree, whatever their roles.
 */
export function hostsDomains(settings: HostSettings): boolean {
  const { tlsPort, publicIps, delivery } = settings;
  return usesAcme(settings) && tlsPort !== null && publicIps.length > 0 && delivery !== "capture";
}

/** Returns the hosts of a delegated domain, which share a certificate. */
export function domainHosts(domain: string): string[] {
  return [linksHost(domain), mtaStsHost(domain)];
}

/** Returns the names in the certificate of a domain. One that is not delegated has an alias for its links alone. */
export function certifiedHosts({ name, delegated }: { name: string; delegated: boolean }): string[] {
  return delegated ? domainHosts(name) : [linksHost(name)];
}

/** Returns the name at which the answer to a challenge is published: the alias of a domain that is not delegated leads there. */
export function challengePlace(
  { domainId, names }: Pick<CertificateRecord, "domainId" | "names">,
  name: string,
  serviceDomain: string,
): string {
  const isAlias = domainId !== null && names.length === 1;
  return isAlias ? challengeTarget(domainId, serviceDomain) : challengeName(name);
}
