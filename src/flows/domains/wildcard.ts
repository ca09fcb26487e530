import { branchOf, isWithin } from "../../core/addresses.ts";
import { AppError, existing, invalid } from "../../core/errors.ts";
import { type Domain, getDomain } from "../../store/domains/domains.ts";
import { setWildcard } from "../../store/domains/wildcards.ts";
import type { Store } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { delegatedRecords } from "../zone/delegated-zone.ts";
import { namesOfHosts } from "../zone/domain-host-records.ts";

/**
 * Switches whether a domain receives at every name below it.
 * @throws AppError 404; 409 if the domain is not delegated, if its owner has records at the wildcard, or if it has inboxes
 *   below it that would be lost
 */
export async function switchWildcard(
  { db }: Store,
  senderId: string,
  id: string,
  wildcard: boolean,
): Promise<void> {
  const domain = existing("domain", await getDomain(db, senderId, id));
  if (domain.wildcard === wildcard) return;
  try {
    await setWildcard(db, domain, wildcard);
  } catch (error) {
    throw wildcardRefusal(error, domain.name) ?? error;
  }
}

/** Returns the 409 for a write that a guard of wildcards has undone; null for other errors. */
export function wildcardRefusal(error: unknown, name: string): AppError | null {
  if (isBroken(error, "domain_not_delegated"))
    return unready("Only the zone of a delegated domain is ours to change. Delegate it first.");
  if (isBroken(error, "wildcard_in_the_way"))
    return unready(`Delete your own MX, TXT and CNAME records at *.${name} first.`);
  if (isBroken(error, "inboxes_below"))
    return unready(
      `There are inboxes at names below ${name}. They would get no more mail, so delete them first.`,
    );
  return null;
}

function unready(message: string): AppError {
  return new AppError("conflict", message, { code: "invalid_state", param: "wildcard" });
}

/**
 * Checks that a domain's wildcard has a name. It has no name that exists, and none below one (RFC 4592 §2.2.2).
 * @throws AppError 422 if it has not
 */
export async function requireInWildcard(
  deps: Store & { serviceDomain: string },
  domain: Domain,
  name: string,
): Promise<void> {
  const branch = branchOf(name, domain.name);
  const records = await delegatedRecords(deps, deps.serviceDomain, domain);
  const names = [...records.map((record) => record.name), ...namesOfHosts(domain.name)];
  const taken = branch === null ? undefined : names.find((one) => isWithin(one, branch));
  if (taken === undefined) return;
  throw invalid(
    "address",
    `cannot be at ${name}: the wildcard of ${domain.name} does not reach it, because the zone has a record at ${taken}.`,
  );
}
