import { organizationalDomain } from "../../core/public-suffix.ts";
import { firstChars } from "../../core/text.ts";
import { type DomainLookups, isDmarc, isSpf, type LookupResult } from "../records/lookups.ts";
import type { DnsRecord } from "../records/records.ts";
import type { SpfCheck } from "./spf-check.ts";
import { unquoted } from "./spf-merge.ts";

/**
 * Maximum number of a record's values that are shown, and of the characters of each. A zone may hold any number.
 */
const MAX_SHOWN_VALUES = 10;
const MAX_SHOWN_CHARS = 1000;

/** Returns the values that the DNS has in the place of a record of a domain. */
export async function valuesFound(
  lookups: DomainLookups,
  domain: string,
  { name, purpose }: DnsRecord,
): Promise<string[]> {
  const texts = async (at: string) => valuesIn(await lookups.txt(at));
  const aliases = async (at: string) => valuesIn(await lookups.cname(at));
  const read = {
    spf: async () => (await texts(name)).filter((text) => isSpf(unquoted(text))),
    inbound: async () =>
      valuesIn(await lookups.mx(name)).map(({ exchange, preference }) => `${preference} ${exchange}`),
    async dkim() {
      const found = await aliases(name);
      return found.length > 0 ? found : texts(name);
    },
    return_path: () => aliases(name),
    links: () => aliases(name),
    async dmarc() {
      const own = (await texts(name)).filter(isDmarcText);
      const inherited = `_dmarc.${organizationalDomain(domain)}`;
      return own.length > 0 || inherited === name ? own : (await texts(inherited)).filter(isDmarcText);
    },
  };
  const found = await read[purpose]();
  return found.slice(0, MAX_SHOWN_VALUES).map((value) => firstChars(value, MAX_SHOWN_CHARS));
}

const isDmarcText = (text: string): boolean => isDmarc(unquoted(text));

function valuesIn<Value>(result: LookupResult<Value>): Value[] {
  return result.status === "ok" ? [...result.records] : [];
}

/** Returns what is wrong with a record that the DNS does not have as it should, in one or two sentences. */
export async function problemOf(
  lookups: DomainLookups,
  domain: string,
  record: DnsRecord,
  { found, spf }: { found: readonly string[]; spf: SpfCheck },
): Promise<string> {
  if (found.length > 0)
    return record.purpose === "spf" && spf.problem !== null ? spf.problem : wrongValue(record, found);
  const { name } = record;
  // Many DNS hosts append the domain to the name that a customer enters.
  const doubled = { ...record, name: `${name}.${domain}` };
  if ((await valuesFound(lookups, domain, doubled)).length === 0)
    return `There is no ${kindOf(record)} record at ${name}.`;
  const short = name === domain ? "@" : name.slice(0, -domain.length - 1);
  return `The record is at ${doubled.name}, because your DNS host appends ${domain} itself. Enter ${short} as its name.`;
}

function wrongValue({ name, purpose, value }: DnsRecord, found: readonly string[]): string {
  const several = found.length > 1;
  if (purpose === "dkim" && several)
    return `There are ${found.length} records at ${name}, and with more than one key receivers may use none. Keep ours.`;
  if (purpose === "dmarc" && found.some((text) => !isDmarc(text)))
    return "The DMARC record is published with quotation marks, so receivers ignore it. Publish it without them.";
  if (purpose === "dmarc")
    return several
      ? `There are ${found.length} DMARC records, and with more than one receivers use none. Keep one.`
      : "The DMARC record has no valid policy: p must be none, quarantine or reject.";
  if (purpose === "inbound") return `Mail goes to another host: none of the MX records names ${value}.`;
  if (purpose !== "dkim") return `${name} has another target. Replace its value.`;
  return `${name} has another target or another key. Replace its value.`;
}

/** Returns the kind of a record in words: `MX`, or `DKIM (CNAME)`. */
function kindOf({ purpose, type }: DnsRecord): string {
  const isNamed = purpose === "dkim" || purpose === "spf" || purpose === "dmarc";
  return isNamed ? `${purpose.toUpperCase()} (${type})` : type;
}
