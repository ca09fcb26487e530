import { parse } from "tldts";

/** Returns whether the name is a public suffix such as `co.uk` or `github.io`, which belongs to a registry. */
export function isPublicSuffix(name: string): boolean {
  return parse(name, { allowPrivateDomains: true }).domain === null;
}

/** Returns whether a host ends with a suffix under which names are registered. `main.ts` does not. */
export function hasKnownSuffix(host: string): boolean {
  return parse(host).isIcann === true;
}

/**
 * Returns the organizational domain (RFC 7489 §3.2): the public suffix and one label. If the name has no such label,
 * returns the name.
 */
export function organizationalDomain(name: string): string {
  return parse(name, { allowPrivateDomains: true }).domain ?? name;
}
