// The names of the installation's own zone, each spelled here alone: what is published there, what mail says of itself, and
// where reports come back to must be one and the same.

/** The name server of the zone. */
export function nsHost(serviceDomain: string): string {
  return `ns.${serviceDomain}`;
}

/** The host that receives mail for domains, and the name we go by among mail servers: EHLO, banner, Received. */
export function mxHost(serviceDomain: string): string {
  return `mx.${serviceDomain}`;
}

/** What a domain's SPF record includes to let the service send. */
export function spfInclude(serviceDomain: string): string {
  return `spf.${serviceDomain}`;
}

/** The name below which the keys of domains are published, each at its token. */
export function dkimParent(serviceDomain: string): string {
  return `dkim.${serviceDomain}`;
}

/** Where a domain's owner points the selector to. */
export function dkimTarget(token: string, serviceDomain: string): string {
  return `${token}.${dkimParent(serviceDomain)}`;
}

/** The domain of return paths, where the From domain receives no mail itself. */
export function bounceDomain(serviceDomain: string): string {
  return `bounce.${serviceDomain}`;
}

/** The shared domain of test mode. */
export function onboardingDomain(serviceDomain: string): string {
  return `onboarding.${serviceDomain}`;
}

/** The domain of the simulated recipients. */
export function simulatorDomain(serviceDomain: string): string {
  return `simulator.${serviceDomain}`;
}

/** Local part of the mailbox that our SOA names (RFC 2142 §7). */
export const SOA_MAILBOX = "hostmaster";

/** Local part of the mailbox that DMARC reports are asked for. */
export const DMARC_MAILBOX = "dmarc";
