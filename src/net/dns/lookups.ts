import { isIP } from "node:net";
import type { Answer, TxtAnswer } from "dns-packet";
import type { DnsResult } from "./result.ts";
import { canonicalName } from "./packet.ts";
import type { LookupOptions, Resolver } from "./resolver.ts";
import ipaddr from "ipaddr.js";

export interface MxRecord {
  preference: number;
  /** Lower case, without final dot; "" is the root, which a null MX names (RFC 7505). */
  exchange: string;
}

/** Looks up the records of one kind at a name. */
type Lookup<Found> = (resolver: Resolver, name: string, options?: LookupOptions) => Promise<DnsResult<Found>>;

/** Looks up the MX records of a domain, in the order given. */
export const resolveMx: Lookup<MxRecord> = async (resolver, domain, options) =>
  mapped(await resolver.resolve(domain, "MX", options), (answer) =>
    answer.type === "MX"
      ? { preference: answer.data.preference ?? 0, exchange: canonicalName(answer.data.exchange) }
      : null,
  );

/** Looks up TXT records, and joins the strings of each without a separator (RFC 7208 §3.3, RFC 6376 §3.6.2.2). */
export const resolveTxt: Lookup<string> = async (resolver, name, options) =>
  mapped(await resolver.resolve(name, "TXT", options), (answer) =>
    answer.type === "TXT" ? joinedStrings(answer.data) : null,
  );

/** Joins the strings of a TXT record's data. */
export function joinedStrings(data: TxtAnswer["data"]): string {
  const strings = Array.isArray(data) ? data : [data];
  return Buffer.concat(strings.map((text) => Buffer.from(text))).toString("utf8");
}

/** Looks up the target of `name`, if it is an alias. */
export const resolveCname: Lookup<string> = namesOf("CNAME");

/** Looks up the name servers of a zone. If `name` is not the top of a zone, there are none. */
export const resolveNs: Lookup<string> = namesOf("NS");

const resolvePtrName = namesOf("PTR");

/** Looks up the names of an IP address. Does not check that they resolve to the address. */
export const resolvePtr: Lookup<string> = async (resolver, ip, options) => {
  const name = toReverseName(ip);
  return name === null ? { status: "nxdomain" } : resolvePtrName(resolver, name, options);
};

function namesOf(type: "CNAME" | "NS" | "PTR"): Lookup<string> {
  return async (resolver, name, options) =>
    mapped(await resolver.resolve(name, type, options), (answer) =>
      answer.type === type && typeof answer.data === "string" ? canonicalName(answer.data) : null,
    );
}

/**
 * Looks up all addresses of a host, IPv4 and IPv6 alternating (RFC 8305 §4), so that a short list has both. IPv4 comes
 * first, because IPv6 often has poor reputation and reverse names. If one family fails, the answer for the second is enough.
 */
export const resolveAddresses: Lookup<string> = async (resolver, host, options) => {
  const [v4, v6] = await Promise.all([
    resolver.resolve(host, "A", options).then((result) => mapped(result, addressOf)),
    resolver.resolve(host, "AAAA", options).then((result) => mapped(result, addressOf)),
  ]);
  if (v4.status === "ok" && v6.status === "ok")
    return {
      status: "ok",
      records: interleaved(v4.records, v6.records),
      authentic: v4.authentic && v6.authentic,
    };
  const order = ["ok", "failure", "nodata", "nxdomain"];
  return order.indexOf(v4.status) <= order.indexOf(v6.status) ? v4 : v6;
};

/** Looks up the addresses of a host of one family. */
export async function resolveAddress(
  resolver: Resolver,
  host: string,
  type: "A" | "AAAA",
  options?: LookupOptions,
): Promise<DnsResult<string>> {
  return mapped(await resolver.resolve(host, type, options), addressOf);
}

/** Returns the addresses of a host in a setting, which may itself be an address. Returns null if none is known now. */
export async function addressesOfHost(resolver: Resolver, host: string): Promise<readonly string[] | null> {
  if (isIP(host) !== 0) return [host];
  const found = await resolveAddresses(resolver, host);
  return found.status === "ok" ? found.records : null;
}

function interleaved(first: readonly string[], second: readonly string[]): string[] {
  const length = Math.max(first.length, second.length);
  return Array.from({ length }, (_, at) => [first.slice(at, at + 1), second.slice(at, at + 1)]).flat(2);
}

function addressOf(answer: Answer): string | null {
  return answer.type === "A" || answer.type === "AAAA" ? answer.data : null;
}

function mapped<Record>(
  result: DnsResult<Answer>,
  read: (answer: Answer) => Record | null,
): DnsResult<Record> {
  if (result.status !== "ok") return result;
  const records = result.records.map(read).filter((record) => record !== null);
  return { status: "ok", records, authentic: result.authentic };
}

/** Returns the name of an address's PTR records (RFC 1035 §3.5, RFC 3596 §2.5), or null if `ip` is not an address. */
export function toReverseName(ip: string): string | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(ip)) return `${ip.split(".").reverse().join(".")}.in-addr.arpa`;
  if (!ipaddr.IPv6.isValid(ip) || ip.includes("%")) return null;
  const hex = Buffer.from(ipaddr.IPv6.parse(ip).toByteArray()).toString("hex");
  return `${[...hex].reverse().join(".")}.ip6.arpa`;
}
