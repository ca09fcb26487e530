import { isIPv4 } from "node:net";
import { mxHost, spfInclude } from "../../core/own-names.ts";
import { type Clock, within } from "../../core/time/clock.ts";
import { SECOND_MS } from "../../core/time/units.ts";
import { evaluateSpf, MAX_SPF_LOOKUPS, type SpfEvaluation } from "../../mail/auth/evaluate-spf.ts";
import type { AuthResolver } from "../../mail/auth/resolver.ts";
import { type DomainLookups, isSpf, type LookupResult, type RecordState } from "../records/lookups.ts";
import { includeCosts, mergedSpf, unquoted } from "./spf-merge.ts";

export interface SpfDeps {
  clock: Clock;
  lookups: DomainLookups;
  serviceDomain: string;
  publicIps: readonly string[];
}

/** The result of a domain's SPF record for our mail, as receivers see it. */
export interface SpfCheck {
  state: RecordState;
  /** As in RFC 7208 §2.6; of our addresses the one with the worst result. */
  result: string;
  lookups: number;
  voidLookups: number;
  /** A sentence. Null if all is well. */
  problem: string | null;
  /** The record to publish. Null if all is well, or if we know none. */
  fix: string | null;
}

/** Time for all evaluations of a domain. After that nothing is known. */
const MAX_CHECK_MS = 20 * SECOND_MS;
/** Maximum number of addresses of ours that are evaluated. */
const MAX_ADDRESSES = 8;
/** Maximum number of lookups in one domain's check, over all its evaluations. */
const MAX_LOOKUPS = 200;
/** An address that no host has (RFC 1112 §4). A record that lets it send lets anyone send. */
const STRANGER = "240.0.0.1";
/** Represents our addresses if PUBLIC_IPS is not set: an evaluation that reaches our record passes. */
const UNKNOWN_ADDRESS = "240.0.0.2";

/**
 * Evaluates SPF for mail of a domain from each of our addresses, as receivers do. Our record is read from the
 * settings, because the domain's owner cannot fix it.
 */
export async function checkSpf(deps: SpfDeps, domain: string): Promise<SpfCheck> {
  return within(deps.clock, MAX_CHECK_MS, evaluated(deps, domain), UNKNOWN);
}

const UNKNOWN: SpfCheck = {
  state: "unknown",
  result: "temperror",
  lookups: 0,
  voidLookups: 0,
  problem: "The DNS did not answer for the SPF record. Verify again.",
  fix: null,
};

/** The result for a domain whose name counts as verified without DNS. */
export const CAPTURED_SPF: SpfCheck = {
  state: "present",
  result: "pass",
  lookups: 0,
  voidLookups: 0,
  problem: null,
  fix: null,
};

async function evaluated(deps: SpfDeps, domain: string): Promise<SpfCheck> {
  const own = await deps.lookups.txt(domain);
  if (own.status === "failure") return UNKNOWN;
  const found = own.status === "ok" ? own.records : [];
  const txt: DomainLookups["txt"] = async (name) => (name === domain ? own : deps.lookups.txt(name));
  const resolve = resolverOf({ ...deps, lookups: { ...deps.lookups, txt } });
  const addresses = deps.publicIps.length === 0 ? [UNKNOWN_ADDRESS] : deps.publicIps.slice(0, MAX_ADDRESSES);
  const helo = mxHost(deps.serviceDomain);
  const evaluations: SpfEvaluation[] = [];
  for (const ip of addresses) evaluations.push(await evaluateSpf(resolve, { ip, domain, helo }));
  const stranger = await evaluateSpf(resolve, { ip: STRANGER, domain, helo });
  const worst = evaluations.reduce((one, other) => (badness(other) > badness(one) ? other : one));
  const { result } = worst;
  const isOpen = result === "pass" && stranger.result === "pass";
  const state = result === "temperror" ? "unknown" : result === "pass" && !isOpen ? "present" : "absent";
  // A receiver that finds no match before the end of the record makes the most lookups.
  const most = stranger.result === "temperror" ? worst : stranger;
  const { lookups, voidLookups } = most.lookups > worst.lookups ? most : worst;
  const asks = { resolve, found, serviceDomain: deps.serviceDomain, domain };
  return { state, result, lookups, voidLookups, ...(await advice(asks, { worst, stranger, isOpen })) };
}

const RESULTS = ["pass", "neutral", "softfail", "fail", "none", "temperror", "permerror"];
const badness = ({ result }: SpfEvaluation): number => RESULTS.indexOf(result);

interface Asked {
  resolve: AuthResolver;
  found: readonly string[];
  serviceDomain: string;
  domain: string;
}

type Advice = Pick<SpfCheck, "problem" | "fix">;

async function advice(
  { resolve, found, serviceDomain, domain }: Asked,
  { worst, stranger, isOpen }: { worst: SpfEvaluation; stranger: SpfEvaluation; isOpen: boolean },
): Promise<Advice> {
  const included = spfInclude(serviceDomain);
  const records = found.filter(isSpf);
  const quoted = found.filter((text) => !isSpf(text) && isSpf(unquoted(text)));
  const texts = [...records, ...quoted.map(unquoted)];
  const fix = mergedSpf(texts, included);
  if (records.length === 0)
    return quoted.length > 0
      ? {
          problem:
            "The SPF record is published with quotation marks, so receivers ignore it. Publish it without them.",
          fix,
        }
      : { problem: `There is no SPF record at ${domain}.`, fix };
  if (records.length > 1)
    return {
      problem: `There are ${records.length} SPF records, and with more than one receivers use none. Replace them by one.`,
      fix,
    };
  if (isOpen)
    return { problem: "The SPF record lets every host send for the domain: it must not end in +all.", fix };
  const limit = limitProblem(worst.result === "permerror" ? worst : stranger);
  if (limit !== null) {
    const costs = await includeCosts(resolve, records[0] ?? "");
    const [dearest] = costs;
    const named = dearest === undefined ? "" : ` ${dearest.term} costs most: ${dearest.lookups}.`;
    // Receivers stop at the first term that matches, so ours comes first.
    return { problem: `${limit}${named}`, fix: mergedSpf(texts, included, "first") };
  }
  if (worst.result === "pass") return { problem: null, fix: null };
  if (worst.result === "temperror") return { problem: UNKNOWN.problem, fix: null };
  if (worst.result === "permerror")
    return { problem: `Receivers cannot evaluate the SPF record: ${reason(worst.comment)}.`, fix };
  return {
    problem: `The SPF record does not include ${included}, or includes it after "all", where it has no effect.`,
    fix,
  };
}

/** Returns what is wrong if an evaluation ended at a limit; null if it did not. */
function limitProblem({ result, comment }: SpfEvaluation): string | null {
  if (result !== "permerror") return null;
  if (comment.includes("Too many DNS requests"))
    return `The SPF record needs more than ${MAX_SPF_LOOKUPS} DNS lookups, and receivers stop there.`;
  if (comment.includes("Too many void DNS results"))
    return "More than two names in the SPF record do not exist, and receivers stop there.";
  return null;
}

/** Returns the last part of mailauth's comment, which says why. */
function reason(comment: string): string {
  return comment.split(": ").slice(2).join(": ") || "it has an error";
}

/** Answers as node's resolver does. Each name of a check is queried once, up to the limit. */
function resolverOf({ lookups, serviceDomain, publicIps }: SpfDeps): AuthResolver {
  const ours = spfInclude(serviceDomain);
  const ips = publicIps.length === 0 ? [UNKNOWN_ADDRESS] : publicIps;
  const record = ["v=spf1", ...ips.map((ip) => `${isIPv4(ip) ? "ip4" : "ip6"}:${ip}`), "~all"].join(" ");
  const asked = new Map<string, Promise<unknown[]>>();
  const ask = async (name: string, type: string): Promise<unknown[]> => {
    if (name === ours && type === "TXT") return [[record]];
    switch (type) {
      case "TXT":
        return recordsOf(await lookups.txt(name)).map((text) => [text]);
      case "MX":
        return recordsOf(await lookups.mx(name)).map(({ preference: priority, exchange }) => ({
          priority,
          exchange,
        }));
      case "A":
        return [...recordsOf(await lookups.a(name))];
      case "AAAA":
        return [...recordsOf(await lookups.aaaa(name))];
      default:
        // A PTR lookup that fails does not match (RFC 7208 §5.5), and our reverse names do not concern the domain.
        return [];
    }
  };
  return (text, type) => {
    const name = text.toLowerCase().replace(/\.$/, "");
    const key = `${type} ${name}`;
    const known = asked.get(key);
    if (known !== undefined) return known;
    if (asked.size >= MAX_LOOKUPS) return Promise.reject(dnsError("ESERVFAIL"));
    const answer = ask(name, type);
    asked.set(key, answer);
    return answer;
  };
}

function recordsOf<Value>(result: LookupResult<Value>): readonly Value[] {
  if (result.status === "ok") return result.records;
  throw dnsError(
    result.status === "failure" ? "ESERVFAIL" : result.status === "nodata" ? "ENODATA" : "ENOTFOUND",
  );
}

function dnsError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
