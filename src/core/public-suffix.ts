import { parse } from "tldts";

/** Whether nobody but a registry owns the name: a public suffix such as `co.uk` or `github.io`. */
export function isPublicSuffix(name: string): boolean {
  return parse(name, { allowPrivateDomains: true }).domain === null;
}

/** The organizational domain (RFC 7489 §3.2): the public suffix and one label; the name itself where it has none. */
export function organizationalDomain(name: string): string {
  return parse(name, { allowPrivateDomains: true }).domain ?? name;
}
