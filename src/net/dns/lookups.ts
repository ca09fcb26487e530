import { isIP } from "node:net";
import type { Answer, TxtAnswer } from "dns-packet";
import { toReverseName } from "./reverse-name.ts";
import type { DnsResult } from "./result.ts";
import { canonicalName } from "./wire.ts";
import type { LookupOptions, Resolver } from "./resolver.ts";

export interface MxRecord {
  preference: number;
  /** Lower case, no final dot; "" is the root, which is what a null MX names (RFC 7505). */
  exchange: string;
}

/** MX records of a domain in the order given. */
export async function resolveMx(
  resolver: Resolver,
  domain: string,
  options?: LookupOptions,
): Promise<DnsResult<MxRecord>> {
  return mapped(await resolver.resolve(domain, "MX", options), (answer) =>
    answer.type === "MX"
      ? { preference: answer.data.preference ?? 0, exchange: canonicalName(answer.data.exchange) }
      : null,
  );
}

/** TXT records, each with its strings joined without a gap (RFC 7208 §3.3, RFC 6376 §3.6.2.2). */
export async function resolveTxt(
  resolver: Resolver,
  name: string,
  options?: LookupOptions,
): Promise<DnsResult<string>> {
  return mapped(await resolver.resolve(name, "TXT", options), (answer) =>
    answer.type === "TXT" ? joinedStrings(answer.data) : null,
  );
}

/** The strings of a TXT record's data, however many it has, as one text. */
export function joinedStrings(data: TxtAnswer["data"]): string {
  const strings = Array.isArray(data) ? data : [data];
  return Buffer.concat(strings.map((text) => Buffer.from(text))).toString("utf8");
}

/** The name that `name` itself is an alias of, if it is one. */
export function resolveCname(
  resolver: Resolver,
  name: string,
  options?: LookupOptions,
): Promise<DnsResult<string>> {
  return resolveNames(resolver, name, "CNAME", options);
}

/** Names an IP address says it has. Says nothing about whether they say so too. */
export async function resolvePtr(
  resolver: Resolver,
  ip: string,
  options?: LookupOptions,
): Promise<DnsResult<string>> {
  const name = toReverseName(ip);
  return name === null ? { status: "nxdomain" } : resolveNames(resolver, name, "PTR", options);
}

async function resolveNames(
  resolver: Resolver,
  name: string,
  type: "CNAME" | "PTR",
  options?: LookupOptions,
): Promise<DnsResult<string>> {
  return mapped(await resolver.resolve(name, type, options), (answer) =>
    answer.type === type && typeof answer.data === "string" ? canonicalName(answer.data) : null,
  );
}

/**
 * All addresses of a host, the families in turn (RFC 8305 §4), so that a short list of tries has both. IPv4 comes
 * first: reputation and reverse names are still rarely kept in order for IPv6.
 * One family's answer is enough; it is a failure only where none answers and one of them failed.
 */
export async function resolveAddresses(
  resolver: Resolver,
  host: string,
  options?: LookupOptions,
): Promise<DnsResult<string>> {
  const [v4, v6] = await Promise.all([
    resolver.resolve(host, "A", options).then((result) => mapped(result, addressOf)),
    resolver.resolve(host, "AAAA", options).then((result) => mapped(result, addressOf)),
  ]);
  if (v4.status === "ok" && v6.status === "ok")
    return {
      status: "ok",
      records: inTurn(v4.records, v6.records),
      authentic: v4.authentic && v6.authentic,
    };
  const order = ["ok", "failure", "nodata", "nxdomain"];
  return order.indexOf(v4.status) <= order.indexOf(v6.status) ? v4 : v6;
}

/** The addresses of a host as a setting names it, which may be by one; null where none is known now. */
export async function addressesOfHost(resolver: Resolver, host: string): Promise<readonly string[] | null> {
  if (isIP(host) !== 0) return [host];
  const found = await resolveAddresses(resolver, host);
  return found.status === "ok" ? found.records : null;
}

function inTurn(first: readonly string[], second: readonly string[]): string[] {
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
