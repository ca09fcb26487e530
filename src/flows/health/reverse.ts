import { resolveAddresses, resolvePtr } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { toReverseName } from "../../net/dns/reverse-name.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Names of an address that are looked up. */
const MAX_NAMES = 5;
const FRESH = { fresh: true };

/** Each address that mail leaves from: whether its name leads back to it, and is the one we say EHLO with. */
export function reverseChecks(resolver: Resolver, ips: readonly string[], hostname: string): Check[] {
  return ips.map((ip) => ({
    name: `ptr ${ip}`,
    run: () => reverse(resolver, ip, hostname),
    fix: "see that DNS_SERVERS answer",
  }));
}

async function reverse(resolver: Resolver, ip: string, hostname: string): Promise<Finding> {
  const fix = `have whoever gave you ${ip} set its PTR record to ${hostname}`;
  const found = await resolvePtr(resolver, ip, FRESH);
  if (found.status === "failure")
    throw new Error(`the DNS servers do not tell the name of ${ip}: ${found.reason}`);
  if (found.status !== "ok") return fail("it has no name: many receivers refuse such senders", fix);
  const names = found.records.slice(0, MAX_NAMES);
  const leading = await Promise.all(names.map((name) => leadsTo(resolver, name, ip)));
  const forward = names.filter((_name, at) => leading[at]);
  if (forward.includes(hostname)) return ok(`${hostname}, which leads back to it`);
  if (forward.length > 0)
    return warn(`its name is ${forward.join(", ")}, while we say EHLO ${hostname}`, fix);
  return fail(`its name is ${names.join(", ")}, which does not lead back to it`, fix);
}

async function leadsTo(resolver: Resolver, name: string, ip: string): Promise<boolean> {
  const found = await resolveAddresses(resolver, name, FRESH);
  // Compared as reverse names: an IPv6 address has many spellings.
  return found.status === "ok" && found.records.some((each) => toReverseName(each) === toReverseName(ip));
}
