import { isWithin } from "../../core/addresses.ts";
import type { Query } from "./query.ts";
import { RCODE, type RecordData, type SoaData, type ZoneRecord } from "./records.ts";
import type { Reply } from "./encode-reply.ts";

export type SoaRecord = ZoneRecord & { type: "SOA"; data: SoaData };

/** A zone we are authoritative for. */
export interface Zone {
  /** Its name: lower case, without final dot. */
  origin: string;
  /** Returns the current SOA record. Its serial increases. */
  soa(): Promise<SoaRecord>;
  /** All fixed records except the SOA. If a name begins with `*.`, it is a wildcard (RFC 4592). */
  records: readonly ZoneRecord[];
  /** Records that may change while the zone is served. */
  changing: readonly ChangingRecords[];
  /** Names below which labels are found on demand. No wildcard record may be above one. */
  dynamic: readonly DynamicNames[];
}

/** The names directly below a parent, which are found on demand. */
export interface DynamicNames {
  parent: string;
  /** Returns the records of a label, or null if it does not exist. Rejects if that is unknown now. */
  find(label: string): Promise<readonly ZoneRecord[] | null>;
}

/** The records of one type at one name, which may change while the zone is served. The name always exists. */
export interface ChangingRecords {
  name: string;
  type: RecordData["type"];
  /** Returns the records that there are now. Rejects if that is unknown. */
  find(): Promise<readonly ZoneRecord[]>;
}

/** A zone prepared for lookups. */
export interface ZoneIndex {
  zone: Zone;
  /** Records by name. A name without records exists if there are names below it (RFC 8020 §2). */
  nodes: ReadonlyMap<string, readonly ZoneRecord[]>;
  /** Changing records by type and name, as in `TXT mail.test`. */
  changing: ReadonlyMap<string, ChangingRecords["find"]>;
}

/** Class of an answer for the rate limit. */
export type AnswerKind = "records" | "none" | "error";
export type ClassifiedReply = Reply & { kind: AnswerKind };

/** Reply codes of meta types, for any name (RFC 8906 §3.1.5). Zone transfers are for secondaries alone (RFC 5936 §5). */
const META_TYPES: Readonly<Record<string, number>> = {
  OPT: RCODE.formatError,
  TKEY: RCODE.notImplemented,
  TSIG: RCODE.formatError,
  IXFR: RCODE.refused,
  AXFR: RCODE.refused,
  /** MAILB */ UNKNOWN_253: RCODE.notImplemented,
  /** MAILA */ UNKNOWN_254: RCODE.notImplemented,
};
/** RFC 8482 §4.2 advises a long TTL, so that a client that asks for everything asks rarely. */
const ANY_TTL_SECONDS = 86_400;

/** All zones that a name server answers for. */
export interface Zones {
  /** The service's own zone. Only this zone answers for its names. */
  own: ZoneIndex;
  /** Returns another zone that holds a name; null if there is none. Rejects if that is unknown now. */
  find(name: string): Promise<ZoneIndex | null>;
}

/** Prepares a zone for lookups. */
export function indexZone(zone: Zone): ZoneIndex {
  const nodes = new Map<string, ZoneRecord[]>();
  const grow = (name: string): ZoneRecord[] => {
    const node = nodes.get(name) ?? [];
    nodes.set(name, node);
    if (name !== zone.origin) grow(parentOf(name));
    return node;
  };
  for (const record of zone.records) grow(record.name).push(record);
  for (const { parent } of zone.dynamic) grow(parent);
  for (const { name } of zone.changing) grow(name);
  const changing = new Map(zone.changing.map(({ type, name, find }) => [`${type} ${name}`, find]));
  return { zone, nodes, changing };
}

function parentOf(name: string): string {
  return name.slice(name.indexOf(".") + 1);
}

/** Answers a query. Rejects if the zone cannot be read now. */
export async function answerQuery({ own, find }: Zones, query: Query): Promise<ClassifiedReply> {
  if (query.edns !== null && query.edns.ednsVersion > 0) return trouble(RCODE.badVersion);
  const meta = META_TYPES[query.type];
  if (meta !== undefined) return trouble(meta);
  if (query.class !== "IN") return trouble(RCODE.refused);
  const index = isWithin(query.name, own.zone.origin) ? own : await find(query.name);
  return index === null ? trouble(RCODE.refused) : answerFrom(index, query);
}

/** Answers a query for a name in the zone. */
async function answerFrom(index: ZoneIndex, query: Query): Promise<ClassifiedReply> {
  const records = await recordsAt(index, query.name);
  const changing = (await index.changing.get(`${query.type} ${query.name}`)?.()) ?? [];
  const soa = await index.zone.soa();
  if (records === null) return negative(soa, RCODE.noSuchName);
  const here = query.name === index.zone.origin ? [soa, ...records] : records;
  const answers =
    query.type === "ANY"
      ? anyAnswer(here, query.name)
      : // RFC 1034 §3.6.2: an alias answers for every type. The resolver follows it.
        [...here.filter(({ type }) => type === query.type || type === "CNAME"), ...changing];
  if (answers.length === 0) return negative(soa, RCODE.noError);
  return { kind: "records", rcode: RCODE.noError, authoritative: true, answers, authorities: [] };
}

/** Creates a reply that has only a code. */
export function trouble(rcode: number): ClassifiedReply {
  return { kind: "error", rcode, authoritative: false, answers: [], authorities: [] };
}

/** RFC 2308 §3: a negative answer has the SOA, whose TTL and MINIMUM limit its caching. */
function negative(soa: SoaRecord, rcode: number): ClassifiedReply {
  const ttl = Math.min(soa.ttl, soa.data.minimum);
  return { kind: "none", rcode, authoritative: true, answers: [], authorities: [{ ...soa, ttl }] };
}

/** Returns the records at a name: an empty list if it exists without records, null if it does not exist. */
async function recordsAt({ zone, nodes }: ZoneIndex, name: string): Promise<readonly ZoneRecord[] | null> {
  const own = nodes.get(name);
  if (own !== undefined) return own;
  const dynamic = zone.dynamic.find(({ parent }) => parent === parentOf(name));
  if (dynamic !== undefined) return dynamic.find(name.slice(0, -dynamic.parent.length - 1));
  let encloser = parentOf(name);
  while (!nodes.has(encloser)) encloser = parentOf(encloser);
  // RFC 4592 §3.3.1: only the wildcard directly below the closest existing name applies.
  const wild = nodes.get(`*.${encloser}`);
  return wild?.map((record) => ({ ...record, name })) ?? null;
}

/** RFC 8482 §4.2: ANY queries are used for amplification, so they get one small record. */
function anyAnswer(records: readonly ZoneRecord[], name: string): ZoneRecord[] {
  if (records.length === 0) return [];
  return [{ name, type: "HINFO", ttl: ANY_TTL_SECONDS, data: { cpu: "RFC8482", os: "" } }];
}
