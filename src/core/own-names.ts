// The names of the installation's own zone. The zone, the messages and the return paths must use the same names, so they
// are only defined here.

/** Returns the name server of the zone. */
export function nsHost(serviceDomain: string): string {
  return `ns.${serviceDomain}`;
}

/** Returns the name of our name server in the NS record of one registration of a domain. It proves that registration alone. */
export function delegationHost(token: string, serviceDomain: string): string {
  return `${token}.${nsHost(serviceDomain)}`;
}

/** Returns the host that receives mail, which is also our name in EHLO, banner and Received. */
export function mxHost(serviceDomain: string): string {
  return `mx.${serviceDomain}`;
}

/** Returns the host that serves a domain's MTA-STS policy (RFC 8461 §3.3). */
export function mtaStsHost(domain: string): string {
  return `mta-sts.${domain}`;
}

/** Returns the host of the links in messages from a domain. Aliases point to the service's own links host. */
export function linksHost(domain: string): string {
  return `links.${domain}`;
}

/** Returns the name at which a domain announces its MTA-STS policy (RFC 8461 §3.1). */
export function stsRecordName(domain: string): string {
  return `_mta-sts.${domain}`;
}

/** Returns the name at which a certificate authority looks for proof that we control a name (RFC 8555 §8.4). */
export function challengeName(name: string): string {
  return `_acme-challenge.${name}`;
}

/** Returns the name below which the challenges of domains with an alias are published. */
export function challengeParent(serviceDomain: string): string {
  return challengeName(linksHost(serviceDomain));
}

/** Returns the target of a domain's alias for challenges. It has the domain's id, so the alias proves this registration alone. */
export function challengeTarget(domainId: string, serviceDomain: string): string {
  return `${domainId.slice(domainId.indexOf("_") + 1)}.${challengeParent(serviceDomain)}`;
}

/** Returns the name that a domain's SPF record includes to let the service send. */
export function spfInclude(serviceDomain: string): string {
  return `spf.${serviceDomain}`;
}

/** Returns the name below which the keys of domains are published, each at its token. */
export function dkimParent(serviceDomain: string): string {
  return `dkim.${serviceDomain}`;
}

/** Returns the target of a domain's DKIM CNAME. */
export function dkimTarget(token: string, serviceDomain: string): string {
  return `${token}.${dkimParent(serviceDomain)}`;
}

/**
 * Returns the domain of return paths below a domain. A From domain publishes an alias there. If it does not, and does not
 * receive here, its messages use the service's.
 */
export function bounceDomain(domain: string): string {
  return `bounce.${domain}`;
}

/** Returns the domain whose return paths are at a host; null for a host of another form. */
export function bouncingDomain(host: string): string | null {
  const prefix = bounceDomain("");
  return host.startsWith(prefix) ? host.slice(prefix.length) : null;
}

/** Returns the shared domain of test mode. */
export function onboardingDomain(serviceDomain: string): string {
  return `onboarding.${serviceDomain}`;
}

/** Returns the domain whose inboxes need no registered domain in capture mode. */
export function captureInboxDomain(serviceDomain: string): string {
  return `inbox.${serviceDomain}`;
}

/** Returns the domain of the simulated recipients. */
export function simulatorDomain(serviceDomain: string): string {
  return `simulator.${serviceDomain}`;
}

/** Local part of the mailbox that our SOA names (RFC 2142 §7). */
export const SOA_MAILBOX = "hostmaster";

/** Local part of the mailbox for complaints (RFC 5965). */
export const COMPLAINT_MAILBOX = "fbl";

/** Returns the address that providers send complaints to. */
export function complaintAddress(serviceDomain: string): string {
  return `${COMPLAINT_MAILBOX}@${serviceDomain}`;
}

/** Local part of the mailbox for DMARC reports. */
export const DMARC_MAILBOX = "dmarc";

/** Local part of the mailbox for reports about TLS (RFC 8460). */
export const TLS_REPORT_MAILBOX = "tls-reports";
