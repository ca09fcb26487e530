import { within } from "../core/clock.ts";
import { organizationalDomain } from "../core/public-suffix.ts";
import type { Log } from "../log.ts";
import { createTtlCache, type TtlCache } from "./dns/cache.ts";
import { createGate, type Gate } from "../core/gate.ts";
import type { GuardedDeps } from "./guarded-request.ts";
import { resolveTxt } from "./dns/lookups.ts";
import { type FetchOptions, fetchStsPolicy } from "./mta-sts-fetch.ts";
import { readStsId, type StsPolicy } from "./mta-sts-policy.ts";

/** Time a delivery waits for a policy that is being fetched; then it is put off, so that it holds nobody else up. */
export const FETCH_WAIT_MS = 10_000;
/** Time without another fetch after one has failed (RFC 8461 §3.3 advises five minutes or more). */
export const FAILURE_PAUSE_SECONDS = 300;
/**
 * Age at which a policy in use is fetched anew though its id has not changed (RFC 8461 §10.2): whoever can suppress the
 * TXT record must keep at it for the whole life of the policy.
 */
export const REFRESH_AFTER_SECONDS = 86_400;
/** Time for which what is kept of a domain, or that nothing is, is not looked up again: other processes fetch too. */
const MEMORY_SECONDS = 3600;
/** Fetches on their way at a time, and those that wait for their turn; one more puts its delivery off. */
export const MAX_CONCURRENT_FETCHES = 128;
const MAX_WAITING_FETCHES = 1000;
/** Of one organizational domain at a time: a wildcard record and hosts that hang must not take the places of all. */
const MAX_FETCHES_PER_OWNER = 8;

/** A policy that has been fetched. */
export interface KeptPolicy extends StsPolicy {
  domain: string;
  /** Of the TXT record at the time of the fetch. */
  id: string;
  /** Milliseconds since the epoch. */
  fetchedAt: number;
}

/** Where policies outlive the process: a restart must not open a window for a downgrade (RFC 8461 §10.2). */
export interface PolicyStore {
  /** What was saved last for the domain; may be out of date. */
  load(domain: string): Promise<KeptPolicy | null>;
  save(policy: KeptPolicy): Promise<void>;
}

export interface MtaStsDeps extends GuardedDeps {
  log: Log;
  store: PolicyStore;
}

/** What is known of the policy of a domain. */
export type StsFinding =
  /** The policy to go by, null for none. `renewed` waits for a fetch that is under way and gives its policy, if any. */
  | { kind: "found"; policy: KeptPolicy | null; renewed: () => Promise<KeptPolicy | null> }
  /** Not known now; ask again later. */
  | { kind: "deferred"; reason: string };

export interface MtaSts {
  /** The policy of a domain (A-labels). Never rejects. */
  policyFor(domain: string): Promise<StsFinding>;
}

type Fetched = { kind: "policy"; policy: KeptPolicy } | { kind: "failed" } | { kind: "busy" };

interface State {
  deps: MtaStsDeps;
  options: FetchOptions;
  memory: TtlCache<KeptPolicy | null>;
  failures: TtlCache<true>;
  underway: Map<string, Promise<Fetched>>;
  /** Fetches under way or waiting, by the organizational domain whose hosts are asked. */
  byOwner: Map<string, number>;
  gate: Gate;
}

/** Finds, fetches and keeps the MTA-STS policies of domains (RFC 8461). */
export function createMtaSts(deps: MtaStsDeps, options: FetchOptions): MtaSts {
  const state: State = {
    deps,
    options,
    memory: createTtlCache(deps.clock),
    failures: createTtlCache(deps.clock),
    underway: new Map(),
    byOwner: new Map(),
    gate: createGate(MAX_CONCURRENT_FETCHES, MAX_WAITING_FETCHES),
  };
  return {
    async policyFor(domain) {
      try {
        return await find(state, domain.toLowerCase());
      } catch (error) {
        // Without what is kept nobody knows whether the domain asks for TLS: its mail waits.
        deps.log.error("MTA-STS lookup failed", { domain, error: String(error) });
        return { kind: "deferred", reason: `the MTA-STS policy of ${domain} cannot be looked up` };
      }
    },
  };
}

/** Domains that can have a policy host; an address literal, say, cannot, and nothing else belongs in a URL. */
const DOMAIN = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/;

async function find(state: State, domain: string): Promise<StsFinding> {
  if (!DOMAIN.test(domain)) return noPolicy();
  const { clock, resolver } = state.deps;
  const [kept, txt] = await Promise.all([
    currentPolicy(state, domain),
    resolveTxt(resolver, `_mta-sts.${domain}`),
  ]);
  const id = txt.status === "ok" ? readStsId(txt.records) : null;
  if (kept === null) return id === null ? noPolicy() : firstPolicy(state, domain, id);
  // RFC 8461 §5.1: a policy that is kept holds until it expires, though the record be gone or the fetch fail.
  const refreshAt = kept.fetchedAt + Math.min(REFRESH_AFTER_SECONDS, kept.maxAgeSeconds / 2) * 1000;
  const stale = (id !== null && id !== kept.id) || clock.now() >= refreshAt;
  const fetching = stale ? fetchOnce(state, domain, id ?? kept.id) : Promise.resolve(null);
  return {
    kind: "found",
    policy: kept,
    renewed: async () => policyOf(await within(clock, FETCH_WAIT_MS, fetching, null)),
  };
}

function noPolicy(): StsFinding {
  return { kind: "found", policy: null, renewed: async () => null };
}

/** RFC 8461 §5.1: where the first policy cannot be had, mail goes as though there were none. */
async function firstPolicy(state: State, domain: string, id: string): Promise<StsFinding> {
  const fetched = await within(state.deps.clock, FETCH_WAIT_MS, fetchOnce(state, domain, id), null);
  if (fetched === null || fetched.kind === "busy")
    return { kind: "deferred", reason: `the MTA-STS policy of ${domain} is still being fetched` };
  return { kind: "found", policy: policyOf(fetched), renewed: async () => null };
}

function policyOf(fetched: Fetched | null): KeptPolicy | null {
  return fetched?.kind === "policy" ? fetched.policy : null;
}

/** What is kept and not expired, from memory or from where it outlives us. */
async function currentPolicy(state: State, domain: string): Promise<KeptPolicy | null> {
  const { clock, store } = state.deps;
  let kept = state.memory.get(domain);
  if (kept === undefined) {
    const loaded = await store.load(domain);
    // A fetch may have ended meanwhile: what it brought is newer.
    kept = state.memory.get(domain) ?? loaded;
    state.memory.set(domain, kept, MEMORY_SECONDS);
  }
  return kept !== null && clock.now() < kept.fetchedAt + kept.maxAgeSeconds * 1000 ? kept : null;
}

/** All who want the same policy share one fetch; after a failed one there is none for a while. */
function fetchOnce(state: State, domain: string, id: string): Promise<Fetched> {
  if (state.failures.get(domain) === true) return Promise.resolve({ kind: "failed" });
  const shared = state.underway.get(domain);
  if (shared !== undefined) return shared;
  const owner = organizationalDomain(domain);
  const ofOwner = state.byOwner.get(owner) ?? 0;
  if (ofOwner >= MAX_FETCHES_PER_OWNER) return Promise.resolve({ kind: "busy" });
  state.byOwner.set(owner, ofOwner + 1);
  const fetching = state.gate
    .run(() => fetchAndKeep(state, domain, id))
    .then((done): Fetched => done ?? { kind: "busy" })
    .finally(() => {
      state.underway.delete(domain);
      const left = (state.byOwner.get(owner) ?? 1) - 1;
      if (left > 0) state.byOwner.set(owner, left);
      else state.byOwner.delete(owner);
    });
  state.underway.set(domain, fetching);
  return fetching;
}

/** Never rejects: where the policy cannot be saved it is kept in memory still. */
async function fetchAndKeep(state: State, domain: string, id: string): Promise<Fetched> {
  const { clock, log, store } = state.deps;
  const fetched = await fetchStsPolicy(state.deps, domain, state.options);
  if (fetched.kind === "failed") {
    log.info("MTA-STS policy not fetched", { domain, reason: fetched.reason });
    state.failures.set(domain, true, FAILURE_PAUSE_SECONDS);
    return { kind: "failed" };
  }
  const policy = { domain, id, fetchedAt: clock.now(), ...fetched.policy };
  state.memory.set(domain, policy, MEMORY_SECONDS);
  try {
    await store.save(policy);
  } catch (error) {
    log.error("MTA-STS policy not saved", { domain, error: String(error) });
  }
  return { kind: "policy", policy };
}
