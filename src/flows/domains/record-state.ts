import type { PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import { findAlias, findDkim, findDmarc, findMx, type RecordState } from "../records/lookups.ts";
import { checkSpf, type SpfDeps } from "./spf-check.ts";
import type { DnsRecord } from "../records/records.ts";

/** A domain to check, with its keys. */
export interface Subject {
  domain: string;
  keys: readonly PublicDkimKey[];
}

/** Returns the state of a record by the lookups. */
export async function stateOf(
  deps: SpfDeps,
  { domain, keys }: Subject,
  { name, value, purpose }: DnsRecord,
): Promise<RecordState> {
  const { lookups, serviceDomain } = deps;
  if (purpose === "spf") return (await checkSpf(deps, domain)).state;
  if (purpose === "dmarc") return findDmarc(lookups, domain);
  if (purpose === "inbound") return findMx(lookups, domain, serviceDomain);
  if (purpose !== "dkim") return findAlias(lookups, name, value);
  const key = keys.find(({ selector }) => name.startsWith(`${selector}.`));
  return key === undefined ? "absent" : findDkim(lookups, domain, key, serviceDomain);
}
