import type { Answer, RecordType } from "dns-packet";
import { isWithin } from "../../core/addresses.ts";
import type { Clock } from "../../core/time/clock.ts";
import { createTtlCache, MAX_CACHE_ENTRIES, type TtlCache } from "./cache.ts";
import { createTaskLimit, type TaskLimit } from "../../core/concurrency/admission.ts";
import { type DnsFailure, type DnsResult, MAX_CNAME_CHAIN, type ReadAnswer, readAnswer } from "./result.ts";
import type { DnsServer } from "./servers.ts";
import { type Exchange, exchange } from "./exchange.ts";
import { askableName, type DnsQuestion } from "./packet.ts";

/** Rounds over all servers. */
const TRIES = 2;
/** Time limit of a server in the first round. It doubles with each round. */
const TRY_TIMEOUT_MS = 2000;
/** Maximum number of concurrent questions; each uses a socket. */
const MAX_CONCURRENT_LOOKUPS = 256;
/** Maximum number of questions that may wait. If there are more, they fail at once. */
export const MAX_WAITING_LOOKUPS = 20_000;

const FORMAT_ERROR = 1;
const NOT_IMPLEMENTED = 4;

export interface ResolverOptions {
  servers: readonly DnsServer[];
  tryTimeoutMs?: number;
  tries?: number;
  maxCacheEntries?: number;
  /**
   * The zone in which the answers of a server that is no resolver count. If our own name server is among the servers, a
   * customer could otherwise forge the records of any name by adding it as a delegated domain. If left out, all answers count.
   */
  ownZone?: string;
}

export interface LookupOptions {
  /** If true, asks the servers even if the answer is cached, and caches the new one. */
  fresh?: boolean;
}

/** A stub resolver: asks recursive servers and caches answers for their TTL. Never throws. */
export interface Resolver {
  resolve(name: string, type: RecordType, options?: LookupOptions): Promise<DnsResult<Answer>>;
}

interface Lookups {
  clock: Clock;
  options: Required<Omit<ResolverOptions, "ownZone">> & Pick<ResolverOptions, "ownZone">;
  cache: TtlCache<DnsResult<Answer>>;
  underway: Map<string, Promise<ReadAnswer>>;
  limit: TaskLimit;
  /** Servers that do not repeat the case of a question. */
  caseFolding: Set<DnsServer>;
}

/** Creates a resolver with its own cache. It asks the servers in order. */
export function createResolver(deps: { clock: Clock }, options: ResolverOptions): Resolver {
  const maxCacheEntries = options.maxCacheEntries ?? MAX_CACHE_ENTRIES;
  const lookups: Lookups = {
    clock: deps.clock,
    options: { tryTimeoutMs: TRY_TIMEOUT_MS, tries: TRIES, maxCacheEntries, ...options },
    cache: createTtlCache(deps.clock, maxCacheEntries),
    underway: new Map(),
    limit: createTaskLimit(MAX_CONCURRENT_LOOKUPS, MAX_WAITING_LOOKUPS),
    caseFolding: new Set(),
  };
  return { resolve: (name, type, how) => resolve(lookups, name, type, how ?? {}) };
}

async function resolve(
  lookups: Lookups,
  text: string,
  type: RecordType,
  how: LookupOptions,
): Promise<DnsResult<Answer>> {
  let name = askableName(text);
  let vouched = true;
  for (let aliases = 0; aliases < MAX_CNAME_CHAIN; aliases++) {
    // If a name cannot be encoded, it cannot exist.
    if (name === null) return { status: "nxdomain" };
    const known = isLocalhost(name) ? localhost(name, type) : undefined;
    const cached = how.fresh ? undefined : lookups.cache.get(keyOf({ name, type }));
    const result = known ?? cached;
    if (result !== undefined) return throughAliases(result, vouched);
    const { result: found, alias } = await askOnce(lookups, { name, type });
    if (alias === undefined) return throughAliases(found, vouched);
    name = askableName(alias.name);
    vouched = vouched && alias.authentic;
  }
  return { status: "failure", reason: "servfail" };
}

/** Clears `authentic` if an alias was not signed: a forged alias can point to a signed zone of the attacker. */
function throughAliases(result: DnsResult<Answer>, vouched: boolean): DnsResult<Answer> {
  return result.status === "ok" && !vouched ? { ...result, authentic: false } : result;
}

function keyOf(question: DnsQuestion): string {
  return `${question.type} ${question.name}`;
}

/** Shares one query among callers with the same question: fewer packets, and no birthday attack (RFC 5452 §5). */
function askOnce(lookups: Lookups, question: DnsQuestion): Promise<ReadAnswer> {
  const key = keyOf(question);
  const shared = lookups.underway.get(key);
  if (shared !== undefined) return shared;
  const asked = lookups
    .limit(() => askServers(lookups, question))
    .then((done) => {
      const read = done ?? failed("overloaded");
      if (read.alias === undefined) lookups.cache.set(key, read.result, read.ttlSeconds);
      return read;
    })
    .finally(() => lookups.underway.delete(key));
  lookups.underway.set(key, asked);
  return asked;
}

/** Asks each server, round after round, until one answers. If none does, returns the last failure. */
async function askServers(lookups: Lookups, question: DnsQuestion): Promise<ReadAnswer> {
  const { servers, tries, tryTimeoutMs, ownZone } = lookups.options;
  const trustsAll = ownZone === undefined || isWithin(question.name, ownZone);
  let reason: DnsFailure = "unreachable";
  for (let round = 0; round < tries; round++) {
    for (const server of servers) {
      const outcome = await askServer(lookups, server, question, tryTimeoutMs * 2 ** round);
      if (outcome.kind === "answer" && !outcome.answer.recursive && !trustsAll) reason = "refused";
      else if (outcome.kind === "answer") {
        const read = readAnswer(outcome.answer, question);
        if (read.result.status !== "failure") return read;
        reason = read.result.reason;
      } else reason = outcome.kind;
    }
  }
  return failed(reason);
}

function failed(reason: DnsFailure): ReadAnswer {
  return { result: { status: "failure", reason }, ttlSeconds: 0 };
}

/** RFC 6891 §7: if a server does not know EDNS, asks again without it. */
async function askServer(
  { clock, caseFolding }: Lookups,
  server: DnsServer,
  question: DnsQuestion,
  timeoutMs: number,
): Promise<Exchange> {
  const outcome = await exchange(clock, { server, question, timeoutMs, edns: true, caseFolding });
  if (outcome.kind !== "answer") return outcome;
  const { rcode } = outcome.answer;
  if (rcode !== FORMAT_ERROR && rcode !== NOT_IMPLEMENTED) return outcome;
  return exchange(clock, { server, question, timeoutMs, edns: false, caseFolding });
}

function isLocalhost(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}

const LOCALHOST_DATA: Partial<Record<RecordType, string>> = { A: "127.0.0.1", AAAA: "::1" };

/** RFC 6761 §6.3: localhost names resolve to loopback addresses without asking a server. */
function localhost(name: string, type: RecordType): DnsResult<Answer> | undefined {
  const data = LOCALHOST_DATA[type];
  // Ask for other types: a service domain under localhost may have its own server in DNS_SERVERS.
  if (data === undefined || (type !== "A" && type !== "AAAA")) return undefined;
  return { status: "ok", records: [{ name, type, ttl: 0, data }], authentic: false };
}
