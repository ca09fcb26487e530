import type { Store } from "../../../store/engine/client.ts";
import { organizationalDomain } from "../../../core/public-suffix.ts";
import { listDkimKeys, type PublicDkimKey } from "../../../store/domains/dkim-keys.ts";
import type { Domain } from "../../../store/domains/domains.ts";
import { domainsOfAll } from "../../../store/installation/health.ts";
import {
  type DomainLookups,
  type RecordState as Seen,
  findAllDkim,
  findDkim,
  findDelegation,
  findDmarc,
  findMx,
} from "../../records/lookups.ts";
import { delegationHost, linksHost } from "../../../core/own-names.ts";
import type { IsCaptureDomain } from "../../domains/capture-domain.ts";
import { rememberedLookups } from "../../domains/remembered-lookups.ts";
import { checkSpf, type SpfCheck } from "../../domains/spf-check.ts";
import { type AlignmentParts, alignmentFault } from "./alignment.ts";
import { keyWeakness, lengthFault, youngKeyNote } from "./dkim-keys.ts";
import { bimiWeakness, dmarcWeakness, parentWeakness, zoneWeakness } from "./policies.ts";
import { type Check, fail, type Finding, ok, warn } from "../check.ts";

/** Maximum number of domains that are checked, oldest first. */
export const MAX_DOMAINS = 200;

/** Lookups of an SPF record above which little room is left: receivers stop at 10 (RFC 7208 §4.6.4). */
const MANY_SPF_LOOKUPS = 8;
export interface DomainParts extends Store, AlignmentParts {
  lookups: DomainLookups;
  isCaptureDomain: IsCaptureDomain;
  /** Address of links in messages of domains without their own host. */
  publicUrl: string;
  linkFaultOf: LinkFaultOf | null;
}

/** Returns why links at a domain's own host would not work; null if they do. */
export type LinkFaultOf = (domain: Domain) => Promise<Finding | null>;

/** Returns a check for each of the oldest domains, and a line that says if there are more. */
export async function domainChecks(parts: DomainParts): Promise<Check[]> {
  const domains = await domainsOfAll(parts.db, MAX_DOMAINS + 1);
  const checks = domains.slice(0, MAX_DOMAINS).map(
    (domain): Check => ({
      name: `domain ${domain.name}`,
      run: () => look({ ...parts, lookups: rememberedLookups(parts.lookups) }, domain),
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
  const [dkim, spf, dmarc, mx, isReachable] = await Promise.all([
    dkimStates(parts, name, keys),
    checkSpf(parts, name),
    findDmarc(lookups, name),
    receiving ? findMx(lookups, name, serviceDomain) : ("present" as const),
    takesMail(lookups, name),
  ]);
  const finding = judge(domain, { ...dkim, spf: spf.state, dmarc, mx }, spf);
  if (finding.status !== "ok") return finding;
  const length = lengthFault(domain, keys);
  if (length !== null) return length;
  const fault = await alignmentFault(parts, domain);
  if (fault !== null) return fault;
  const now = parts.clock.now();
  const weak = await weakness(parts, domain, { spf, isReachable, keys, now });
  const notes = `${youngKeyNote(keys, now)}${linksNote(parts, domain)}`;
  return weak ?? { ...finding, message: `${finding.message}${notes}` };
}

/** Returns the state of each key's record; of all together if there is one key or none. */
async function dkimStates(
  { lookups, serviceDomain }: DomainParts,
  name: string,
  keys: readonly PublicDkimKey[],
): Promise<Record<string, Seen>> {
  if (keys.length < 2) return { dkim: await findAllDkim(lookups, name, keys, serviceDomain) };
  const states = await Promise.all(keys.map((key) => findDkim(lookups, name, key, serviceDomain)));
  return Object.fromEntries(keys.map(({ selector }, at) => [`dkim ${selector}`, states[at] ?? "unknown"]));
}

/** Returns a sentence if the domain's links lead to another organization, which filters trust less; else "". */
function linksNote({ publicUrl }: DomainParts, domain: Domain): string {
  const { hostname } = new URL(publicUrl);
  if (hasOwnHost(domain) || organizationalDomain(hostname) === organizationalDomain(domain.name)) return "";
  return ` Its links lead to ${hostname}: with the recommended aliases they would lead to ${linksHost(domain.name)}.`;
}

/** Returns what is wrong with the domain's own host of links; null if nothing is, or it has none. */
export async function ownHostFault(domain: Domain, linkFaultOf: LinkFaultOf | null): Promise<Finding | null> {
  return hasOwnHost(domain) && linkFaultOf !== null ? linkFaultOf(domain) : null;
}

function hasOwnHost({ recommended, delegated, served }: Domain): boolean {
  return recommended.links || (delegated && served);
}

/** Returns whether an answer could reach the domain (RFC 5321 §5.1). If the DNS does not answer, it counts as reachable. */
async function takesMail({ mx, a, aaaa }: DomainLookups, name: string): Promise<boolean> {
  const found = await Promise.all([mx(name), a(name), aaaa(name)]);
  return found.some(({ status }) => status === "ok" || status === "failure");
}

interface SeenFacts {
  spf: SpfCheck;
  isReachable: boolean;
  keys: readonly PublicDkimKey[];
  now: number;
}

/** Returns what some receivers mind about a domain whose records are all there, the gravest first; null if nothing. */
async function weakness(
  { lookups, resolver, serviceDomain, linkFaultOf }: DomainParts,
  domain: Domain,
  { spf, isReachable, keys, now }: SeenFacts,
): Promise<Finding | null> {
  const { name } = domain;
  const [zone, links, dmarc, parent, bimi, key] = await Promise.all([
    zoneWeakness(resolver, name),
    ownHostFault(domain, linkFaultOf),
    dmarcWeakness(lookups, name, serviceDomain),
    parentWeakness(lookups, name),
    bimiWeakness(lookups, name),
    keyWeakness(lookups, domain, { keys, now }),
  ]);
  const reach = isReachable ? null : unreachable(name);
  return reach ?? zone ?? links ?? spfWeakness(spf) ?? dmarc ?? parent ?? bimi ?? key;
}

function unreachable(name: string): Finding {
  return warn(
    "The domain has neither MX nor A record, so no answer reaches it, and Yahoo and Laposte refuse its mail.",
    `Publish an MX record at ${name}.`,
  );
}

/** Returns what leaves an SPF record little room; null if it has enough. */
export function spfWeakness({ lookups }: SpfCheck): Finding | null {
  if (lookups <= MANY_SPF_LOOKUPS) return null;
  return warn(
    `The SPF record needs ${lookups} DNS lookups of the 10 that receivers make.`,
    "Take out an include that no longer sends for you.",
  );
}

/** Returns the finding for a delegated domain whose NS record is not found. */
function delegationFinding({ name, status, delegationToken }: Domain, serviceDomain: string): Finding {
  const host = delegationHost(delegationToken, serviceDomain);
  const message = `The domain is ${status}, and the DNS does not delegate it to ${host}.`;
  const fix = `Publish "${name} NS ${host}" in the zone above it.`;
  return status === "verified" ? fail(message, fix) : warn(message, fix);
}

function judge({ id, status }: Domain, seen: Readonly<Record<string, Seen>>, spf: SpfCheck): Finding {
  const of = (wanted: Seen): string[] => Object.keys(seen).filter((record) => seen[record] === wanted);
  const [absent, unknown] = [of("absent"), of("unknown")];
  const fix = `Publish the records that GET /v1/domains/${id} lists.`;
  if (absent.length === 1 && seen["spf"] === "absent" && spf.problem !== null) {
    const mend = spf.fix === null ? fix : `Publish the TXT record "${spf.fix}".`;
    return status === "verified" ? fail(spf.problem, mend) : warn(spf.problem, mend);
  }
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
