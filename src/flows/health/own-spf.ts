import { bounceDomain } from "../../core/own-names.ts";
import { evaluateSpf } from "../../mail/auth/evaluate-spf.ts";
import { nodeStyleResolver } from "../../net/dns/node-style-resolver.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { type Check, fail, type Finding, ok } from "./check.ts";
import type { SendingAddress } from "./reverse.ts";

/** Evaluates SPF of our return path and of our name in EHLO for each sending address, as receivers do. */
export function ownSpfChecks(
  resolver: Resolver,
  addresses: readonly SendingAddress[],
  serviceDomain: string,
): Check[] {
  const resolve = nodeStyleResolver(resolver);
  const run = async ({ ip, ehloName }: SendingAddress): Promise<Finding> => {
    // Bounces have no return path, so receivers check the name in EHLO (RFC 7208 §2.4).
    for (const domain of [bounceDomain(serviceDomain), ehloName]) {
      const { result } = await evaluateSpf(resolve, { ip, domain, helo: ehloName });
      if (result !== "pass")
        return fail(
          `SPF of ${domain} is ${result} for this address.`,
          `Add ${ip} to PUBLIC_IPS, and to the SPF record of ${domain} if the zone is not served by us.`,
        );
    }
    return ok("SPF passes for our return path and our name in EHLO.");
  };
  return addresses.map((address) => ({
    name: `spf ${address.ip}`,
    run: () => run(address),
    fix: "Check that DNS_SERVERS are reachable.",
  }));
}
