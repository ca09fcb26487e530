import { isIPv4 } from "node:net";
import { resolveAddresses, resolvePtr, toReverseName } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Maximum number of names checked for one address. */
const MAX_NAMES = 5;
const FRESH = { fresh: true };

/** An address that mail leaves from, and our name in EHLO there. */
export interface SendingAddress {
  ip: string;
  ehloName: string;
}

/** Checks that the PTR name of each sending address resolves back to it and is our EHLO name. */
export function reverseChecks(resolver: Resolver, addresses: readonly SendingAddress[]): Check[] {
  return addresses.map(({ ip, ehloName }) => ({
    name: `ptr ${ip}`,
    run: () => reverse(resolver, ip, ehloName),
    fix: "Check that DNS_SERVERS are reachable.",
  }));
}

/** Words in the names that providers give to addresses which they hand out. */
const HANDED_OUT =
  /(?:^|[.-])(?:dyn|dynamic|dhcp|pool|dsl|adsl|vdsl|ppp|pppoe|cable|dialup|broadband)\d*(?:[.-]|$)/;

/** Returns whether a name looks like one that the provider gave: it has the numbers of the address, or says so. */
export function isGeneric(name: string, ip: string): boolean {
  const octets = ip.split(".");
  const spelled = [octets, octets.toReversed()].flatMap((list) =>
    ["-", ".", ""].map((sign) => list.join(sign)),
  );
  return HANDED_OUT.test(name) || (isIPv4(ip) && spelled.some((numbers) => name.includes(numbers)));
}

async function reverse(resolver: Resolver, ip: string, hostname: string): Promise<Finding> {
  const ask = `Ask the provider of ${ip} to set its PTR record to ${hostname}.`;
  const fix = isIPv4(ip) ? ask : `${ask} Until then set SMTP_OUT_IPV6=0.`;
  const found = await resolvePtr(resolver, ip, FRESH);
  if (found.status === "failure")
    throw new Error(`The PTR record of ${ip} cannot be looked up: ${found.reason}`);
  if (found.status !== "ok")
    return fail("The address has no PTR record, and many receivers refuse such senders.", fix);
  const names = found.records.slice(0, MAX_NAMES);
  const matches = await Promise.all(names.map((name) => resolvesTo(resolver, name, ip)));
  const forward = names.filter((_name, at) => matches[at]);
  const generic = names.find((name) => isGeneric(name, ip));
  if (generic !== undefined && forward.length > 0)
    return warn(
      `The PTR record is ${generic}, which looks like an address that changes hands. T-Online, Comcast and others refuse such senders.`,
      fix,
    );
  if (forward.includes(hostname))
    return ok(`The PTR record is ${hostname}, which resolves back to the address.`);
  if (forward.length > 0)
    return warn(`The PTR record is ${forward.join(", ")}, but we say EHLO ${hostname}.`, fix);
  return fail(`The PTR record is ${names.join(", ")}, which does not resolve back to the address.`, fix);
}

async function resolvesTo(resolver: Resolver, name: string, ip: string): Promise<boolean> {
  const found = await resolveAddresses(resolver, name, FRESH);
  // Compare reverse names, because an IPv6 address has many spellings.
  return found.status === "ok" && found.records.some((each) => toReverseName(each) === toReverseName(ip));
}
