import { within } from "../../core/time/clock.ts";
import type { PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import type { Domain } from "../../store/domains/domains.ts";
import type { DomainLookups, RecordState } from "../records/lookups.ts";
import { stateOf, type Subject } from "./record-state.ts";
import { CAPTURED_SPF, checkSpf, type SpfCheck } from "./spf-check.ts";
import { delegatedRecords } from "../zone/delegated-zone.ts";
import { lookupsOf } from "./zone-lookups.ts";
import { problemOf, valuesFound } from "./record-problems.ts";
import { type DnsRecord, receivingRecords, recommendedRecords, sendingRecords } from "../records/records.ts";
import type { Checking, ZoneServer } from "./checking.ts";

/**
 * `spreading`: some name servers have the record and some do not, or caches still hold an old answer. `unknown`: the
 * DNS did not answer.
 */
export const RECORD_STATUSES = ["verified", "missing", "wrong", "spreading", "unknown"] as const;

/** A record with the DNS's present values for it. */
export interface DiagnosedRecord extends DnsRecord {
  status: (typeof RECORD_STATUSES)[number];
  /** The values in the DNS. */
  found: readonly string[];
  /** A sentence. Null if all is well. */
  problem: string | null;
  /** The value to publish. Null if all is well or nothing is known. */
  fix: string | null;
}

/** Longest wait for the name servers of a zone, milliseconds. Their answers only add to the diagnosis. */
export const MAX_ZONE_WAIT_MS = 5000;

/** The findings of a check of a domain's DNS. */
export interface Diagnosed {
  records: DiagnosedRecord[];
  /** Those that sending does not wait for. */
  recommended: DiagnosedRecord[];
  spf: SpfCheck;
  /** Sentences about what some receivers refuse. */
  warnings: string[];
}

/** Returns the records that a domain needs, each with its problem and the value that solves it. */
export async function diagnose(
  deps: Checking,
  domain: Domain,
  keys: readonly PublicDkimKey[],
): Promise<Diagnosed> {
  const { serviceDomain } = deps;
  const records = [
    ...sendingRecords(domain, keys, serviceDomain),
    ...(domain.receiving ? receivingRecords(domain, serviceDomain) : []),
  ];
  const recommended = recommendedRecords(domain, deps);
  if (deps.isCaptureDomain(domain.name))
    return {
      records: records.map(captured),
      recommended: recommended.map(captured),
      spf: CAPTURED_SPF,
      warnings: [],
    };
  const { delegation, lookups } = await shownLookups(deps, domain);
  // In our own zone there is nothing that could spread.
  const servers =
    delegation === "present"
      ? []
      : await within(deps.clock, MAX_ZONE_WAIT_MS, deps.findZoneServers(domain.name), []);
  const subject = { domain: domain.name, keys };
  const there = { ...deps, lookups };
  const [spf, warnings] = await Promise.all([
    checkSpf(there, domain.name),
    warningsOf(deps, domain, delegation),
  ]);
  const all = (some: readonly DnsRecord[]) =>
    Promise.all(some.map((record) => diagnosed(there, { ...subject, spf }, record, servers)));
  const [needed, others] = await Promise.all([all(records), all(recommended)]);
  return { records: needed, recommended: others, spf, warnings };
}

function captured(record: DnsRecord): DiagnosedRecord {
  return { ...record, status: "verified", found: [], problem: null, fix: null };
}

/** Types of records by which mail reaches a domain (RFC 5321 §5.1). */
const REACHING: ReadonlySet<string> = new Set(["MX", "A", "AAAA"]);

/** Some receivers, such as Yahoo and Laposte, refuse mail from a domain that no answer could reach. */
async function warningsOf(deps: Checking, domain: Domain, delegation: RecordState): Promise<string[]> {
  const { lookups, serviceDomain } = deps;
  const { name } = domain;
  if (delegation === "present") {
    // Caches would keep the answer that there is no MX record, although the zone may have it a second later.
    const records = await delegatedRecords(deps, serviceDomain, domain);
    const isReachable = records.some((record) => record.name === name && REACHING.has(record.type));
    return isReachable ? [] : [unreachable(name)];
  }
  const results = await Promise.all([lookups.mx(name), lookups.a(name), lookups.aaaa(name)]);
  if (results.some(({ status }) => status === "ok" || status === "failure")) return [];
  return [unreachable(name)];
}

function unreachable(name: string): string {
  return `${name} has neither an MX record nor an address, so some receivers refuse mail from it. Let it receive here, or publish an MX record.`;
}

/** Returns where the records of a domain are. If another domain is served at the name, none of our zones has them. */
export async function shownLookups(deps: Checking, domain: Domain): ReturnType<typeof lookupsOf> {
  return domain.served ? lookupsOf(deps, domain) : { delegation: "absent", lookups: deps.lookups };
}

type Diagnosis = Pick<DiagnosedRecord, "status" | "problem" | "fix">;

async function diagnosed(
  deps: Checking,
  subject: Subject & { spf: SpfCheck },
  record: DnsRecord,
  servers: readonly ZoneServer[],
): Promise<DiagnosedRecord> {
  const { lookups } = deps;
  const { spf } = subject;
  const [state, found, spread] = await Promise.all([
    record.purpose === "spf" ? spf.state : stateOf(deps, subject, record),
    valuesFound(lookups, subject.domain, record),
    spreadOf(deps, subject, record, servers),
  ]);
  const usual = usualDiagnosis(record, state, spread);
  if (usual !== null) return { ...record, found, ...usual };
  return {
    ...record,
    found,
    status: found.length === 0 ? "missing" : "wrong",
    problem: await problemOf(lookups, subject.domain, record, { found, spf }),
    fix: record.purpose === "spf" && found.length > 0 ? spf.fix : record.value,
  };
}

/**
 * Returns the diagnosis of a record that is fine, pending or unknown. Returns null for one that is at fault.
 */
function usualDiagnosis({ name, value }: DnsRecord, state: RecordState, spread: Spread): Diagnosis | null {
  const { having, lacking } = spread;
  if (having.length > 0 && lacking.length > 0)
    return {
      status: "spreading",
      problem: `Not yet at every name server: ${lacking.join(", ")} does not have it.`,
      fix: value,
    };
  if (state === "present") return { status: "verified", problem: null, fix: null };
  if (having.length > 0)
    return {
      status: "spreading",
      problem: "It is published, but caches still hold the old answer. Wait, and verify again.",
      fix: value,
    };
  return state === "unknown"
    ? { status: "unknown", problem: `The DNS did not answer for ${name}. Verify again.`, fix: null }
    : null;
}

/** Names of the zone's servers that have a record as it should be, and of those that do not. */
interface Spread {
  having: readonly string[];
  lacking: readonly string[];
}

/** A name server of the domain knows its own records, and not those that its SPF record includes. */
function withOwnTexts(all: DomainLookups, own: DomainLookups, domain: string): DomainLookups {
  return { ...all, txt: (name) => (name === domain ? own : all).txt(name) };
}

async function spreadOf(
  deps: Checking,
  subject: Subject,
  record: DnsRecord,
  servers: readonly ZoneServer[],
): Promise<Spread> {
  const states = await Promise.all(
    servers.map(({ lookups }) => {
      const there = record.purpose === "spf" ? withOwnTexts(deps.lookups, lookups, subject.domain) : lookups;
      const asked = stateOf({ ...deps, lookups: there }, subject, record);
      return within(deps.clock, MAX_ZONE_WAIT_MS, asked, "unknown" as const);
    }),
  );
  const named = (wanted: RecordState) =>
    servers.filter((_, at) => states[at] === wanted).map(({ name }) => name);
  return { having: named("present"), lacking: named("absent") };
}
