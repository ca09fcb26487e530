import { isWithin } from "../../core/addresses.ts";
import { captureInboxDomain } from "../../core/own-names.ts";

/** Top-level domains for tests (RFC 2606 §2, RFC 6761 §6). No name below them can be registered, or be in the DNS. */
const TEST_TOP_LEVELS: ReadonlySet<string> = new Set(["test", "example", "localhost"]);

/** Returns whether a domain counts as verified without a DNS check. */
export type IsCaptureDomain = (name: string) => boolean;

/**
 * Returns the rule of an installation. In capture mode no mail leaves the machine, so a domain for tests counts as
 * verified, and so do `inbox.` + service domain and the names below it. In other modes there are none.
 */
export function captureDomains(mode: { delivery: string; serviceDomain: string }): IsCaptureDomain {
  if (mode.delivery !== "capture") return () => false;
  return (name) =>
    TEST_TOP_LEVELS.has(name.slice(name.lastIndexOf(".") + 1)) || isInboxDomain(name, mode.serviceDomain);
}

/** Returns whether a name is the service's domain for inboxes of capture mode, or below it. */
export function isInboxDomain(name: string, serviceDomain: string): boolean {
  return isWithin(name, captureInboxDomain(serviceDomain));
}
