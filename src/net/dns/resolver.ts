import type { Answer, RecordType } from "dns-packet";
import type { Clock } from "../../core/clock.ts";
import { createTtlCache, MAX_CACHE_ENTRIES, type TtlCache } from "./cache.ts";
import { createGate, type Gate } from "../../core/gate.ts";
import { type DnsFailure, type DnsResult, MAX_CNAME_CHAIN, type ReadAnswer, readAnswer } from "./result.ts";
import type { DnsServer } from "./servers.ts";
import { type Exchange, exchange } from "./transport.ts";
import { askableName, type DnsQuestion } from "./wire.ts";

/** Rounds over all servers. */
const TRIES = 2;
/** Time a server has to answer in the first round; it doubles with each round. */
const TRY_TIMEOUT_MS = 2000;
/** Questions on the way at a time: each holds a socket. More wait their turn. */
const MAX_CONCURRENT_LOOKUPS = 256;
/** Questions that wait; one more fails at once. */
export const MAX_WAITING_LOOKUPS = 20_000;

const FORMAT_ERROR = 1;
const NOT_IMPLEMENTED = 4;

export interface ResolverOptions {
  servers: readonly DnsServer[];
  tryTimeoutMs?: number;
  tries?: number;
  maxCacheEntries?: number;
}

export interface LookupOptions {
  /** Asks the servers even where an answer is cached; the new answer is cached. */
  fresh?: boolean;
}

/** A stub resolver: asks recursive servers, keeps what they say for its time to live. Never throws. */
export interface Resolver {
  resolve(name: string, type: RecordType, options?: LookupOptions): Promise<DnsResult<Answer>>;
}

interface Lookups {
  clock: Clock;
  options: Required<ResolverOptions>;
  cache: TtlCache<DnsResult<Answer>>;
  underway: Map<string, Promise<ReadAnswer>>;
  gate: Gate;
}

/** A resolver over the given servers, asked in order. The cache is its own. */
export function createResolver(deps: { clock: Clock }, options: ResolverOptions): Resolver {
  const maxCacheEntries = options.maxCacheEntries ?? MAX_CACHE_ENTRIES;
  const lookups: Lookups = {
    clock: deps.clock,
    options: { tryTimeoutMs: TRY_TIMEOUT_MS, tries: TRIES, maxCacheEntries, ...options },
    cache: createTtlCache(deps.clock, maxCacheEntries),
    underway: new Map(),
    gate: createGate(MAX_CONCURRENT_LOOKUPS, MAX_WAITING_LOOKUPS),
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
    // A name that cannot be put on the wire cannot exist.
    if (name === null) return { status: "nxdomain" };
    const known = isLocalhost(name) ? localhost(name, type) : undefined;
    const cached = how.fresh ? undefined : lookups.cache.get(keyOf({ name, type }));
    const result = known ?? cached;
    if (result !== undefined) return onWay(result, vouched);
    const { result: found, alias } = await askOnce(lookups, { name, type });
    if (alias === undefined) return onWay(found, vouched);
    name = askableName(alias.name);
    vouched = vouched && alias.authentic;
  }
  return { status: "failure", reason: "servfail" };
}

/** A signed answer at the end of an alias that nobody vouches for may be anybody's: whoever forged the alias has zones too. */
function onWay(result: DnsResult<Answer>, vouched: boolean): DnsResult<Answer> {
  return result.status === "ok" && !vouched ? { ...result, authentic: false } : result;
}

function keyOf(question: DnsQuestion): string {
  return `${question.type} ${question.name}`;
}

/** Those who ask the same at the same time share one question: fewer packets, and no birthday attack (RFC 5452 §5). */
function askOnce(lookups: Lookups, question: DnsQuestion): Promise<ReadAnswer> {
  const key = keyOf(question);
  const shared = lookups.underway.get(key);
  if (shared !== undefined) return shared;
  const asked = lookups.gate
    .run(() => askServers(lookups, question))
    .then((done) => {
      const read = done ?? failed("overloaded");
      if (read.alias === undefined) lookups.cache.set(key, read.result, read.ttlSeconds);
      return read;
    })
    .finally(() => lookups.underway.delete(key));
  lookups.underway.set(key, asked);
  return asked;
}

/** Each server in turn, round after round, until one answers; else the last trouble. */
async function askServers(lookups: Lookups, question: DnsQuestion): Promise<ReadAnswer> {
  const { servers, tries, tryTimeoutMs } = lookups.options;
  let reason: DnsFailure = "unreachable";
  for (let round = 0; round < tries; round++) {
    for (const server of servers) {
      const outcome = await askServer(lookups.clock, server, question, tryTimeoutMs * 2 ** round);
      if (outcome.kind === "answer") {
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

/** RFC 6891 §7: a server that does not know EDNS is asked again without it. */
async function askServer(
  clock: Clock,
  server: DnsServer,
  question: DnsQuestion,
  timeoutMs: number,
): Promise<Exchange> {
  const outcome = await exchange(clock, { server, question, timeoutMs, edns: true });
  if (outcome.kind !== "answer") return outcome;
  const { rcode } = outcome.answer;
  if (rcode !== FORMAT_ERROR && rcode !== NOT_IMPLEMENTED) return outcome;
  return exchange(clock, { server, question, timeoutMs, edns: false });
}

function isLocalhost(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}

const LOCALHOST_DATA: Partial<Record<RecordType, string>> = { A: "127.0.0.1", AAAA: "::1" };

/** RFC 6761 §6.3: addresses of localhost names are loopback ones, and no server is asked. */
function localhost(name: string, type: RecordType): DnsResult<Answer> | undefined {
  const data = LOCALHOST_DATA[type];
  // Other types are asked: a service domain below localhost may have a server of its own behind DNS_SERVERS.
  if (data === undefined || (type !== "A" && type !== "AAAA")) return undefined;
  return { status: "ok", records: [{ name, type, ttl: 0, data }], authentic: false };
}
