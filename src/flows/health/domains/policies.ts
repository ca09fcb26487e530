import { organizationalDomain } from "../../../core/public-suffix.ts";
import type { Resolver } from "../../../net/dns/resolver.ts";
import {
  type DomainLookups,
  findDmarc,
  findPolicy,
  findPolicyRecord,
  isDmarc,
} from "../../records/lookups.ts";
import { type Finding, warn } from "../check.ts";

/** Addresses for reports that are checked. */
const MAX_RUA = 5;
/** Labels of a name that are looked at for the top of its zone. */
const MAX_LABELS = 10;

/** Returns the value of a tag in a record of `tag=value` pairs; null if it has none. */
function tagIn(record: string, tag: string): string | null {
  for (const pair of record.split(";")) {
    const at = pair.indexOf("=");
    if (at > 0 && pair.slice(0, at).trim().toLowerCase() === tag) return pair.slice(at + 1).trim();
  }
  return null;
}

/**
 * Returns what weakens a domain's valid DMARC record; null if nothing does. Our own zone allows reports about any domain, which
 * another check looks up.
 */
export async function dmarcWeakness(
  lookups: DomainLookups,
  domain: string,
  serviceDomain: string,
): Promise<Finding | null> {
  const found = await findPolicyRecord(lookups, domain);
  if (found.status !== "ok") return null;
  const { name, record } = found;
  if (tagIn(record, "aspf")?.toLowerCase() === "s")
    return warn(
      "The DMARC record has aspf=s, so SPF never aligns: the return path is in a subdomain. DMARC then depends on DKIM alone.",
      "Remove aspf=s.",
    );
  const hosts = (tagIn(record, "rua") ?? "").split(",").flatMap(hostOf).slice(0, MAX_RUA);
  if (hosts.length === 0)
    return warn(
      "The DMARC record has no address for reports (rua), so nobody learns which mail fails.",
      `Add "rua=mailto:dmarc@${serviceDomain}" to it.`,
    );
  for (const host of hosts) {
    const isOwn = organizationalDomain(host) === organizationalDomain(name) || host === serviceDomain;
    if (isOwn) continue;
    const consent = `${name}._report._dmarc.${host}`;
    const answer = await lookups.txt(consent);
    if (answer.status !== "failure" && !(answer.status === "ok" && answer.records.some(isDmarc)))
      return warn(
        `The DMARC record asks for reports to ${host}, which does not take them: receivers send none (RFC 7489 §7.1).`,
        `Publish "${consent} TXT v=DMARC1" there, or name another address.`,
      );
  }
  return null;
}

/**
 * Returns what is wrong with DMARC of the organization above a domain; null if nothing is, or the domain is the organization. A
 * record of the domain protects no other name of the organization.
 */
export async function parentWeakness(lookups: DomainLookups, domain: string): Promise<Finding | null> {
  const parent = organizationalDomain(domain);
  if (parent === domain) return null;
  const found = await lookups.txt(`_dmarc.${parent}`);
  if (found.status === "failure" || (await findDmarc(lookups, parent)) === "present") return null;
  const records = found.status === "ok" ? found.records.filter(isDmarc) : [];
  const state =
    records.length > 1
      ? "several DMARC records"
      : records.length === 1
        ? "a broken DMARC record"
        : "no DMARC record";
  return warn(
    `${parent}, the domain above, has ${state}, so receivers take mail that is forged in its name.`,
    `Publish one record "_dmarc.${parent} TXT v=DMARC1; p=none; rua=mailto:…" with an address of yours.`,
  );
}

/** Returns the host of an address in `rua`, which may be followed by a size. */
function hostOf(uri: string): string[] {
  const host = /^\s*mailto:[^@\s]+@([^!\s]+)/i.exec(uri)?.[1];
  return host === undefined ? [] : [host.toLowerCase()];
}

/** Returns why a BIMI record shows no logo; null if there is no record, or it is sound. */
export async function bimiWeakness(lookups: DomainLookups, domain: string): Promise<Finding | null> {
  const organization = organizationalDomain(domain);
  for (const name of new Set([domain, organization])) {
    const found = await lookups.txt(`default._bimi.${name}`);
    const records =
      found.status === "ok" ? found.records.filter((text) => /^v\s*=\s*BIMI1\s*(?:;|$)/i.test(text)) : [];
    const [record] = records;
    if (record === undefined) continue;
    const fault = records.length > 1 ? "there are several" : bimiFault(record);
    if (fault !== null)
      return warn(
        `The BIMI record of ${name} shows no logo: ${fault}.`,
        `Publish one TXT record at default._bimi.${name}: "v=BIMI1; l=https://…/logo.svg; a=https://…/certificate.pem".`,
      );
    // An empty logo declines to take part.
    if ((tagIn(record, "l") ?? "") === "") return null;
    return await enforcementFault(lookups, domain, organization);
  }
  return null;
}

function bimiFault(record: string): string | null {
  const [logo, evidence] = [tagIn(record, "l"), tagIn(record, "a")];
  if (logo === null) return "it has no l=";
  if (logo !== "" && !isFile(logo, /\.svgz?$/i)) return `l=${logo} is not the https URL of an SVG file`;
  if (evidence !== null && evidence !== "" && !isFile(evidence, /\.pem$/i))
    return `a=${evidence} is not the https URL of a PEM file`;
  return null;
}

function isFile(text: string, ending: RegExp): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && url.protocol === "https:" && ending.test(url.pathname);
}

/** Logos are shown only if DMARC is enforced for the domain and for its organization. */
async function enforcementFault(
  lookups: DomainLookups,
  domain: string,
  organization: string,
): Promise<Finding | null> {
  for (const name of new Set([domain, organization])) {
    const [policy, found] = [await findPolicy(lookups, name), await findPolicyRecord(lookups, name)];
    const percent = found.status === "ok" ? (tagIn(found.record, "pct") ?? "100") : "100";
    if (policy === null || (policy !== "none" && percent === "100")) continue;
    return warn(
      `There is a BIMI record, but no logo is shown: the DMARC policy of ${name} is ${policy}, for ${percent} % of mail.`,
      "Move the DMARC policy to quarantine or reject, for all mail.",
    );
  }
  return null;
}

/** Returns a finding if the domain is in no zone with a start of authority. If the DNS does not answer, it counts as being in one. */
export async function zoneWeakness(resolver: Resolver, domain: string): Promise<Finding | null> {
  const labels = domain.split(".");
  for (let at = 0; at < Math.min(labels.length - 1, MAX_LABELS); at++) {
    const found = await resolver.resolve(labels.slice(at).join("."), "SOA", { fresh: true });
    if (found.status === "ok" || found.status === "failure") return null;
  }
  return warn(
    "The domain is in no zone with an SOA record, so some receivers take it for made up.",
    "Check the delegation at the registrar.",
  );
}
