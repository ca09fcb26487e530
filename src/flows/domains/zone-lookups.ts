import type { RecordData, ZoneRecord } from "../../net/zone/records.ts";
import type { Domain } from "../../store/domains/domains.ts";
import { delegatedRecords } from "../zone/delegated-zone.ts";
import { mxHost } from "../../core/own-names.ts";
import {
  type DomainLookups,
  findDelegation,
  type LookupResult,
  type RecordState,
} from "../records/lookups.ts";
import { MX_PREFERENCE } from "../records/records.ts";
import type { Checking } from "./checking.ts";

/**
 * Returns the lookups by which a domain's records are found. If the DNS delegates the domain to us, our own zone has them,
 * else the DNS. Until the delegation is seen, a domain's records may still be elsewhere.
 */
export async function lookupsOf(
  deps: Checking,
  domain: Domain,
): Promise<{ delegation: RecordState; lookups: DomainLookups }> {
  const { lookups, serviceDomain } = deps;
  if (!domain.delegated) return { delegation: "absent", lookups };
  const delegation = await findDelegation(lookups, domain, serviceDomain);
  if (delegation === "absent") return { delegation, lookups };
  if (delegation === "unknown") return { delegation, lookups: SILENT };
  return {
    delegation,
    lookups: zoneLookups(await delegatedRecords(deps, serviceDomain, domain), domain, serviceDomain),
  };
}

const failure = async (): Promise<{ status: "failure" }> => ({ status: "failure" });
/** If the place of the records is unknown, so is their state. */
const SILENT: DomainLookups = {
  cname: failure,
  txt: failure,
  mx: failure,
  ns: failure,
  a: failure,
  aaaa: failure,
};

function zoneLookups(
  records: readonly ZoneRecord[],
  { name: domain, receiving }: Domain,
  serviceDomain: string,
): DomainLookups {
  async function look<Type extends RecordData["type"]>(name: string, type: Type) {
    const found = records.filter(
      (record): record is Extract<ZoneRecord, { type: Type }> => record.name === name && record.type === type,
    );
    return found;
  }
  const result = <Value>(found: Value[]): LookupResult<Value> =>
    found.length === 0 ? { status: "nodata" } : { status: "ok", records: found };
  return {
    cname: async (name) => result((await look(name, "CNAME")).map(({ data }) => data)),
    txt: async (name) => result((await look(name, "TXT")).map(({ data }) => data)),
    a: async (name) => result((await look(name, "A")).map(({ data }) => data)),
    aaaa: async (name) => result((await look(name, "AAAA")).map(({ data }) => data)),
    ns: async (name) => result((await look(name, "NS")).map(({ data }) => data)),
    async mx(name) {
      const found = (await look(name, "MX")).map(({ data }) => data);
      // Our MX record is served as soon as the domain receives, so it counts before that.
      const awaited = name === domain && !receiving && found.length === 0;
      return result(awaited ? [{ preference: MX_PREFERENCE, exchange: mxHost(serviceDomain) }] : found);
    },
  };
}
