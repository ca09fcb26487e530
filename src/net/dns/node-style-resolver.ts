import type { Answer, RecordType } from "dns-packet";
import { joinedStrings } from "./lookups.ts";
import type { DnsFailure, DnsResult } from "./result.ts";
import type { Resolver } from "./resolver.ts";

/** A record as `node:dns/promises` returns it: text, an MX object, or the strings of a TXT record. */
export type NodeStyleRecord = string | string[] | { exchange: string; priority: number } | object;
export type NodeStyleResolver = (name: string, type: string) => Promise<NodeStyleRecord[]>;

/** An error as `node:dns` throws it. By its code, libraries distinguish "no record" from a temporary failure. */
class DnsError extends Error {
  readonly code: string;
  readonly hostname: string;

  constructor(code: string, type: string, hostname: string) {
    super(`query${type} ${code} ${hostname}`);
    this.name = "DnsError";
    this.code = code;
    this.hostname = hostname;
  }
}

const FAILURE_CODES: Readonly<Record<DnsFailure, string>> = {
  timeout: "ETIMEOUT",
  unreachable: "ECONNREFUSED",
  servfail: "ESERVFAIL",
  refused: "EREFUSED",
  overloaded: "ESERVFAIL",
};
/** Types that mail authentication looks up. Any other one is a bug of the caller. */
const TYPES: Readonly<Record<string, RecordType>> = {
  A: "A",
  AAAA: "AAAA",
  CNAME: "CNAME",
  MX: "MX",
  NS: "NS",
  PTR: "PTR",
  TXT: "TXT",
};

/** Wraps the resolver like `dns.promises.resolve`, for libraries that need that. A TXT record is one joined string. */
export function nodeStyleResolver(resolver: Resolver): NodeStyleResolver {
  return async (name, type) => {
    const known = TYPES[type.toUpperCase()];
    if (known === undefined) throw new DnsError("EBADQUERY", type, name);
    const result = await resolver.resolve(name, known);
    if (result.status !== "ok") throw new DnsError(errorCode(result), type, name);
    return result.records.map(nodeStyle);
  };
}

function errorCode(result: Exclude<DnsResult<Answer>, { status: "ok" }>): string {
  if (result.status === "nxdomain") return "ENOTFOUND";
  if (result.status === "nodata") return "ENODATA";
  return FAILURE_CODES[result.reason];
}

function nodeStyle(answer: Answer): NodeStyleRecord {
  if (answer.type === "OPT") return {};
  if (answer.type === "MX")
    return {
      exchange: answer.data.exchange === "." ? "" : answer.data.exchange,
      priority: answer.data.preference ?? 0,
    };
  if (answer.type !== "TXT") return answer.data;
  return [joinedStrings(answer.data)];
}
