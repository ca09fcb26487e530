import { isIPv4 } from "node:net";
import { resolveAddress, resolveCname, toReverseName } from "../../../net/dns/lookups.ts";
import type { Resolver } from "../../../net/dns/resolver.ts";
import { type Check, fail, type Finding, ok } from "../check.ts";
import type { SendingAddress } from "../reverse.ts";

const FRESH = { fresh: true };

/** Checks for each sending address that our name in EHLO has it, in a record of the same family and not behind an alias (RFC 5321 §2.3.5). */
export function ehloChecks(resolver: Resolver, addresses: readonly SendingAddress[]): Check[] {
  return addresses.map((address) => ({
    name: `ehlo ${address.ip}`,
    run: () => look(resolver, address),
    fix: "Check that DNS_SERVERS are reachable.",
  }));
}

async function look(resolver: Resolver, { ip, ehloName }: SendingAddress): Promise<Finding> {
  const type = isIPv4(ip) ? "A" : "AAAA";
  const [alias, found] = await Promise.all([
    resolveCname(resolver, ehloName, FRESH),
    resolveAddress(resolver, ehloName, type, FRESH),
  ]);
  if (found.status === "failure") throw new Error(`${ehloName} ${type} cannot be looked up: ${found.reason}`);
  const fix = `Publish "${ehloName} ${type} ${ip}".`;
  if (alias.status === "ok" && alias.records.length > 0)
    return fail(
      `We say EHLO ${ehloName}, which is an alias of ${alias.records.join(", ")}.`,
      `${fix} Remove the CNAME.`,
    );
  const has = found.status === "ok" && found.records.some((one) => toReverseName(one) === toReverseName(ip));
  if (has) return ok(`Our name in EHLO, ${ehloName}, has this address.`);
  return fail(`We say EHLO ${ehloName}, which does not have this address.`, fix);
}
