import { isWithin, MAX_DOMAIN_OCTETS, normalizeDomain } from "../../core/addresses.ts";
import { invalid } from "../../core/errors.ts";
import { isPublicSuffix } from "../../core/public-suffix.ts";
import { type IsCaptureDomain, isInboxDomain } from "./capture-domain.ts";

/** Octets of the longest prefix of a record to publish. */
const LONGEST_PREFIX = "pr1._domainkey.".length;

/**
 * Returns the name of a sending domain in lower case and A-labels.
 * @throws AppError 422 if it is not a host name, a public suffix, or a name of the service's own zone
 */
export function sendingDomainName(
  text: string,
  { serviceDomain, isCaptureDomain }: { serviceDomain: string; isCaptureDomain: IsCaptureDomain },
): string {
  const name = normalizeDomain(text.trim());
  // A host name has no underscore (RFC 1123 §2.1). Names such as _dmarc are for records.
  if (name === null || name.includes("_") || !name.includes("."))
    throw invalid("domain", 'must be a domain name, such as "mail.example.com".');
  if (name.length > MAX_DOMAIN_OCTETS - LONGEST_PREFIX)
    throw invalid("domain", "This domain name is too long to publish records below it.");
  // The holder of a public suffix could claim the mail of every domain below it.
  if (isPublicSuffix(name)) throw invalid("domain", "This is a public suffix: use your own domain below it.");
  if (isWithin(name, serviceDomain) && !(isCaptureDomain(name) && isInboxDomain(name, serviceDomain)))
    throw invalid("domain", "This domain belongs to the service itself.");
  return name;
}
