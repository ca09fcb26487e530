import type { Config } from "../../config.ts";
import { isWithin } from "../../core/addresses.ts";
import { linksHost, mtaStsHost } from "../../core/own-names.ts";

/** Path of MTA-STS policies (RFC 8461 §3.3). */
export const POLICY_PATH = "/.well-known/mta-sts.txt";

/** Returns whether a request for a path may be answered at a host, which is a Host header. */
export type ServesAt = (host: string, path: string) => boolean;

/** Paths of links in messages (OPEN_PATH, CLICK_PATH, UNSUBSCRIBE_PATH), with one segment after the prefix. */
const LINK_PATH = /^\/[ocu]\/[^/]+\/?$/;

/**
 * Returns the rule of an installation whose delegated domains have hosts: such a host serves only what it is for. A page of
 * the dashboard or an answer of the API at a customer's name would look like the customer's own. The rule needs no look at
 * the database, because it counts the names of all domains, ours but for PUBLIC_URL and SERVICE_DOMAIN.
 */
export function servesAtDomainHosts({
  serviceDomain,
  publicUrl,
}: Pick<Config, "serviceDomain" | "publicUrl">): ServesAt {
  const own = new URL(publicUrl).hostname;
  const [links, policies] = [linksHost(""), mtaStsHost("")];
  return (header, path) => {
    const host = hostIn(header);
    if (host === own || isWithin(host, serviceDomain)) return true;
    if (host.startsWith(links)) return LINK_PATH.test(path);
    return !host.startsWith(policies) || path === POLICY_PATH;
  };
}

/** Returns the host of a Host header in lower case, without port and final dot. */
export function hostIn(header: string): string {
  return header.replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase();
}

/** Returns the path of a URL as the router finds it: not normalized, and without the query. */
export function pathIn(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  return start < 0 ? "/" : (url.slice(start).split(/[?#]/, 1)[0] ?? "/");
}
