import { isWithin } from "../../core/addresses.ts";
import type { Query } from "./query.ts";
import { RCODE, type SoaData, type ZoneRecord } from "./records.ts";
import type { Reply } from "./reply-wire.ts";

/** A zone that we are the authority of. */
export interface Zone {
  /** Its name, lower case, no final dot. */
  origin: string;
  /** The start of authority as it is now: its serial moves on. */
  soa(): ZoneRecord & { type: "SOA"; data: SoaData };
  /** All records but the SOA that stand while the process runs. A name that begins with `*.` is a wildcard (RFC 4592). */
  records: readonly ZoneRecord[];
  /** The name below which single labels come and go. It must have no record with a wildcard above it. */
  liveParent: string;
  /** The records at such a label; null where it does not exist. Rejects where that cannot be told now. */
  findLive(label: string): Promise<readonly ZoneRecord[] | null>;
}

/** A zone made ready for lookups. */
export interface ZoneIndex {
  zone: Zone;
  /** Records by name; a name without any exists since others lie below it (RFC 8020 §2). */
  nodes: ReadonlyMap<string, readonly ZoneRecord[]>;
}

/** What a rate limit counts an answer as. */
export type AnswerKind = "records" | "none" | "error";
export type KindOfReply = Reply & { kind: AnswerKind };

/** What a question type is answered with whatever the name (RFC 8906 §3.1.5; RFC 5936 §2: nobody gets the whole zone). */
const META_TYPES: Readonly<Record<string, number>> = {
  OPT: RCODE.formatError,
  TKEY: RCODE.notImplemented,
  TSIG: RCODE.formatError,
  IXFR: RCODE.refused,
  AXFR: RCODE.refused,
  /** MAILB */ UNKNOWN_253: RCODE.notImplemented,
  /** MAILA */ UNKNOWN_254: RCODE.notImplemented,
};
/** RFC 8482 §4.2 asks for a long time, so that who asks for everything asks seldom. */
const ANY_TTL_SECONDS = 86_400;

/** Makes a zone ready for lookups. */
export function indexZone(zone: Zone): ZoneIndex {
  const nodes = new Map<string, ZoneRecord[]>();
  const grow = (name: string): ZoneRecord[] => {
    const node = nodes.get(name) ?? [];
    nodes.set(name, node);
    if (name !== zone.origin) grow(parentOf(name));
    return node;
  };
  for (const record of zone.records) grow(record.name).push(record);
  grow(zone.liveParent);
  return { zone, nodes };
}

function parentOf(name: string): string {
  return name.slice(name.indexOf(".") + 1);
}

/** What is said to a query. Rejects where the zone cannot tell now. */
export async function answerQuery(index: ZoneIndex, query: Query): Promise<KindOfReply> {
  if (query.edns !== null && query.edns.ednsVersion > 0) return trouble(RCODE.badVersion);
  const meta = META_TYPES[query.type];
  if (meta !== undefined) return trouble(meta);
  if (query.class !== "IN" || !isWithin(query.name, index.zone.origin)) return trouble(RCODE.refused);
  const records = await recordsAt(index, query.name);
  const soa = index.zone.soa();
  if (records === null) return negative(soa, RCODE.noSuchName);
  const here = query.name === index.zone.origin ? [soa, ...records] : records;
  const answers =
    query.type === "ANY" ? anyAnswer(here, query.name) : here.filter(({ type }) => type === query.type);
  if (answers.length === 0) return negative(soa, RCODE.noError);
  return { kind: "records", rcode: RCODE.noError, authoritative: true, answers, authorities: [] };
}

/** A reply that says no more than its code. */
export function trouble(rcode: number): KindOfReply {
  return { kind: "error", rcode, authoritative: false, answers: [], authorities: [] };
}

/** RFC 2308 §3: a negative answer carries the SOA, whose TTL and MINIMUM say how long it holds. */
function negative(soa: ReturnType<Zone["soa"]>, rcode: number): KindOfReply {
  const ttl = Math.min(soa.ttl, soa.data.minimum);
  return { kind: "none", rcode, authoritative: true, answers: [], authorities: [{ ...soa, ttl }] };
}

/** The records at a name; none where it exists without one; null where it does not exist. */
async function recordsAt({ zone, nodes }: ZoneIndex, name: string): Promise<readonly ZoneRecord[] | null> {
  const own = nodes.get(name);
  if (own !== undefined) return own;
  if (parentOf(name) === zone.liveParent) return zone.findLive(name.slice(0, -zone.liveParent.length - 1));
  let encloser = parentOf(name);
  while (!nodes.has(encloser)) encloser = parentOf(encloser);
  // RFC 4592 §3.3.1: only the wildcard right below the closest name that exists stands for this one.
  const wild = nodes.get(`*.${encloser}`);
  return wild?.map((record) => ({ ...record, name })) ?? null;
}

/** RFC 8482 §4.2: a question for everything is bait for amplification, and gets one small record. */
function anyAnswer(records: readonly ZoneRecord[], name: string): ZoneRecord[] {
  if (records.length === 0) return [];
  return [{ name, type: "HINFO", ttl: ANY_TTL_SECONDS, data: { cpu: "RFC8482", os: "" } }];
}
