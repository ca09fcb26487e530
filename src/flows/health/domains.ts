import type { Store } from "../../store/engine/client.ts";
import { listDkimKeys } from "../../store/domains/dkim-keys.ts";
import type { Domain } from "../../store/domains/domains.ts";
import { domainsOfAll } from "../../store/installation/health.ts";
import {
  type DomainLookups,
  type RecordState as Seen,
  findAllDkim,
  findDelegation,
  findDmarc,
  findMx,
} from "../records/lookups.ts";
import { delegationHost } from "../../core/own-names.ts";
import type { IsCaptureDomain } from "../domains/capture-domain.ts";
import { checkSpf } from "../domains/spf-check.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Maximum number of domains that are checked, oldest first. */
export const MAX_DOMAINS = 200;

export interface DomainParts extends Store {
  lookups: DomainLookups;
  serviceDomain: string;
  publicIps: readonly string[];
  isCaptureDomain: IsCaptureDomain;
}

/** Returns a check for each of the oldest domains, and a line that says if there are more. */
export async function domainChecks(parts: DomainParts): Promise<Check[]> {
  const domains = await domainsOfAll(parts.db, MAX_DOMAINS + 1);
  const checks = domains.slice(0, MAX_DOMAINS).map(
    (domain): Check => ({
      name: `domain ${domain.name}`,
      run: () => look(parts, domain),
      fix: "Check that DNS_SERVERS are reachable.",
    }),
  );
  if (domains.length <= MAX_DOMAINS) return checks;
  const rest = ok(`Only the ${MAX_DOMAINS} oldest domains are checked.`);
  return [...checks, { name: "more domains", run: () => rest, fix: "" }];
}

async function look(parts: DomainParts, domain: Domain): Promise<Finding> {
  const { db, lookups, serviceDomain, isCaptureDomain } = parts;
  const { id, senderId, name, receiving } = domain;
  if (isCaptureDomain(name)) return ok("The domain is verified without DNS, because it is for tests.");
  if (domain.delegated && (await findDelegation(lookups, domain, serviceDomain)) !== "present")
    return delegationFinding(domain, serviceDomain);
  const keys = (await listDkimKeys(db, senderId, id)).filter(({ status }) => status === "active");
  const [dkim, spf, dmarc, mx] = await Promise.all([
    findAllDkim(lookups, name, keys, serviceDomain),
    checkSpf(parts, name).then(({ state }) => state),
    findDmarc(lookups, name),
    receiving ? findMx(lookups, name, serviceDomain) : ("present" as const),
  ]);
  return judge(domain, { dkim, spf, dmarc, mx });
}

/** Returns the finding for a delegated domain whose NS record is not found. */
function delegationFinding({ name, status, delegationToken }: Domain, serviceDomain: string): Finding {
  const host = delegationHost(delegationToken, serviceDomain);
  const message = `The domain is ${status}, and the DNS does not delegate it to ${host}.`;
  const fix = `Publish "${name} NS ${host}" in the zone above it.`;
  return status === "verified" ? fail(message, fix) : warn(message, fix);
}

function judge({ id, status }: Domain, seen: Readonly<Record<string, Seen>>): Finding {
  const of = (wanted: Seen): string[] => Object.keys(seen).filter((record) => seen[record] === wanted);
  const [absent, unknown] = [of("absent"), of("unknown")];
  const fix = `Publish the records that GET /v1/domains/${id} lists.`;
  if (absent.length > 0) {
    const message = `The domain is ${status}, and these records are missing: ${absent.join(", ")}.`;
    return status === "verified" ? fail(message, fix) : warn(message, fix);
  }
  if (unknown.length > 0)
    return warn(
      `The domain is ${status}, and these records cannot be looked up: ${unknown.join(", ")}.`,
      "Check the name servers of the domain.",
    );
  return status === "verified"
    ? ok("The domain is verified, and all its records are published.")
    : warn(
        "The domain is pending, although all its records are published.",
        `Verify it: POST /v1/domains/${id}/verify.`,
      );
}
