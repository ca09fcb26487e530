import { isWithin, MAX_DOMAIN_OCTETS, normalizeDomain } from "../../core/addresses.ts";
import { invalid } from "../../core/errors.ts";
import { isPublicSuffix } from "../../core/public-suffix.ts";

/** Octets of the longest prefix below which we ask a domain's owner to publish. */
const LONGEST_PREFIX = "pr1._domainkey.".length;

/**
 * The name of a domain that mail may be sent from: lower case, A-labels.
 * @throws AppError 422 for what is no host name, for public suffixes and for names of the service's own zone
 */
export function sendingDomainName(text: string, serviceDomain: string): string {
  const name = normalizeDomain(text.trim());
  // RFC 1123 §2.1: a host name has no underscore; those are for records such as _dmarc.
  if (name === null || name.includes("_") || !name.includes("."))
    throw invalid("domain", "This is not a domain name.");
  if (name.length > MAX_DOMAIN_OCTETS - LONGEST_PREFIX)
    throw invalid("domain", "This domain name is too long to publish records below it.");
  // Whoever held a public suffix here could claim the mail of everyone below it.
  if (isPublicSuffix(name))
    throw invalid("domain", "This is a public suffix: use a domain of your own below it.");
  if (isWithin(name, serviceDomain)) throw invalid("domain", "This domain belongs to the service itself.");
  return name;
}
