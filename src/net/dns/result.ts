import type { Answer, RecordType } from "dns-packet";
import { MAX_CACHED_OCTETS, MAX_NEGATIVE_TTL_SECONDS, MAX_TTL_SECONDS } from "./cache.ts";
import { canonicalName, type DnsAnswer, type DnsQuestion } from "./packet.ts";

/** Reason of a temporary lookup failure. */
export type DnsFailure = "timeout" | "unreachable" | "servfail" | "refused" | "overloaded";

/**
 * Result of a lookup. `nodata`: the name exists without such a record. `nxdomain`: the name does not exist.
 * `authentic`: the server has verified the answer by DNSSEC.
 */
export type DnsResult<Record> =
  | { status: "ok"; records: readonly Record[]; authentic: boolean }
  | { status: "nodata" }
  | { status: "nxdomain" }
  | { status: "failure"; reason: DnsFailure };

/** Maximum number of aliases followed from one name, so that a loop of CNAMEs ends. */
export const MAX_CNAME_CHAIN = 12;

const NO_ERROR = 0;
const NO_SUCH_NAME = 3;
const REFUSED = 5;

/** A parsed answer: result, TTL, and the alias to look up next if the answer ends at one. */
export interface ReadAnswer {
  result: DnsResult<Answer>;
  ttlSeconds: number;
  alias?: Alias;
}

/** The alias at which an answer ends, and whether the path to it is verified. */
export interface Alias {
  name: string;
  authentic: boolean;
}

/** Reads an answer's sections. Follows CNAMEs (RFC 1034 §3.6.2) and ignores unrelated records. */
export function readAnswer(answer: DnsAnswer, question: DnsQuestion): ReadAnswer {
  if (answer.rcode === NO_SUCH_NAME)
    return { result: { status: "nxdomain" }, ttlSeconds: negativeTtl(answer) };
  if (answer.rcode !== NO_ERROR) return { result: failure(answer.rcode), ttlSeconds: 0 };
  const { name, ttl, aliases } = followAliases(answer.answers, question);
  if (aliases === MAX_CNAME_CHAIN)
    return { result: { status: "failure", reason: "servfail" }, ttlSeconds: 0 };
  // The zone above a name answers for its name servers by a referral to them (RFC 1034 §4.2.1).
  const sections = question.type === "NS" ? [...answer.answers, ...answer.authorities] : answer.answers;
  const records = sections.filter((record) => isRecord(record, name, question.type));
  if (records.length > 0) {
    const ttlSeconds = Math.min(ttl, ...records.map(ttlOf), MAX_TTL_SECONDS);
    const result = { status: "ok", records, authentic: answer.authentic } as const;
    return { result, ttlSeconds: answer.octets > MAX_CACHED_OCTETS ? 0 : ttlSeconds };
  }
  const negative: ReadAnswer = {
    result: { status: "nodata" },
    ttlSeconds: Math.min(ttl, negativeTtl(answer)),
  };
  const dangling = aliases > 0 && soaOf(answer) === null;
  return dangling ? { ...negative, alias: { name, authentic: answer.authentic } } : negative;
}

function failure(rcode: number): DnsResult<Answer> {
  return { status: "failure", reason: rcode === REFUSED ? "refused" : "servfail" };
}

interface Followed {
  name: string;
  ttl: number;
  aliases: number;
}

function followAliases(answers: readonly Answer[], question: DnsQuestion): Followed {
  const followed: Followed = { name: question.name, ttl: MAX_TTL_SECONDS, aliases: 0 };
  while (question.type !== "CNAME" && followed.aliases < MAX_CNAME_CHAIN) {
    const alias = answers.find((record) => isRecord(record, followed.name, "CNAME"));
    if (alias?.type !== "CNAME") break;
    followed.name = canonicalName(alias.data);
    followed.ttl = Math.min(followed.ttl, ttlOf(alias));
    followed.aliases++;
  }
  return followed;
}

function isRecord(record: Answer, name: string, type: RecordType): boolean {
  return record.type === type && canonicalName(record.name) === name;
}

function ttlOf(record: Answer): number {
  return "ttl" in record ? (record.ttl ?? 0) : 0;
}

function soaOf(answer: DnsAnswer): Answer | null {
  return answer.authorities.find((record) => record.type === "SOA") ?? null;
}

/** RFC 2308 §5: returns the lesser of the SOA's TTL and MINIMUM; if there is no SOA, 0. */
function negativeTtl(answer: DnsAnswer): number {
  const soa = soaOf(answer);
  if (soa?.type !== "SOA") return 0;
  return Math.min(ttlOf(soa), soa.data.minimum ?? 0, MAX_NEGATIVE_TTL_SECONDS);
}
