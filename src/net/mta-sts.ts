import { within } from "../core/time/clock.ts";
import { organizationalDomain } from "../core/public-suffix.ts";
import type { Log } from "../log.ts";
import { createTtlCache, type TtlCache } from "./dns/cache.ts";
import { createTaskLimit, type TaskLimit } from "../core/concurrency/admission.ts";
import type { GuardedDeps } from "./guarded-request.ts";
import { resolveTxt } from "./dns/lookups.ts";
import { type FetchOptions, fetchStsPolicy } from "./mta-sts-fetch.ts";
import { readStsId, type StsPolicy } from "./mta-sts-policy.ts";

/** Time a delivery waits for a policy being fetched. After that it is deferred. */
export const FETCH_WAIT_MS = 10_000;
/** Pause after a failed fetch (RFC 8461 §3.3 advises five minutes or more). */
export const FAILURE_PAUSE_SECONDS = 300;
/**
 * Age at which a policy is fetched again, even if its id has not changed (RFC 8461 §10.2). An attacker who suppresses
 * the TXT record would have to do so for the policy's whole life.
 */
export const REFRESH_AFTER_SECONDS = 86_400;
/** Time until a stored policy, or its absence, is read again, because other processes fetch too. */
const MEMORY_SECONDS = 3600;
/**
 * Maximum number of concurrent fetches, and of fetches that may wait. If there are more, the delivery is deferred.
 */
export const MAX_CONCURRENT_FETCHES = 128;
const MAX_WAITING_FETCHES = 1000;
/**
 * Maximum number of concurrent fetches of one organizational domain. Wildcard records and hosts that hang must not
 * use all fetches.
 */
const MAX_FETCHES_PER_OWNER = 8;

/** A policy that has been fetched. */
export interface StoredPolicy extends StsPolicy {
  domain: string;
  /** The id in the TXT record when the policy was fetched. */
  id: string;
  /** Milliseconds since the epoch. */
  fetchedAt: number;
}

/** Stores policies across restarts: a restart must not allow a downgrade (RFC 8461 §10.2). */
export interface PolicyStore {
  /** Returns the policy saved last for the domain. It may have expired. */
  load(domain: string): Promise<StoredPolicy | null>;
  save(policy: StoredPolicy): Promise<void>;
}

export interface MtaStsDeps extends GuardedDeps {
  log: Log;
  store: PolicyStore;
}

/** Result of looking up the policy of a domain. */
export type StsFinding =
  /** The policy that applies, if any. `renewed` waits for a fetch in progress and returns its policy, or null. */
  | { kind: "found"; policy: StoredPolicy | null; renewed: () => Promise<StoredPolicy | null> }
  /** Unknown now; try again later. */
  | { kind: "deferred"; reason: string };

export interface MtaSts {
  /** Looks up the policy of a domain (A-labels). Never rejects. */
  policyFor(domain: string): Promise<StsFinding>;
}

type Fetched = { kind: "policy"; policy: StoredPolicy } | { kind: "failed" } | { kind: "busy" };

interface State {
  deps: MtaStsDeps;
  options: FetchOptions;
  memory: TtlCache<StoredPolicy | null>;
  failures: TtlCache<true>;
  underway: Map<string, Promise<Fetched>>;
  /** Fetches in progress or waiting, by organizational domain. */
  byOwner: Map<string, number>;
  limit: TaskLimit;
}

/** Finds, fetches and stores the MTA-STS policies of domains (RFC 8461). */
export function createMtaSts(deps: MtaStsDeps, options: FetchOptions): MtaSts {
  const state: State = {
    deps,
    options,
    memory: createTtlCache(deps.clock),
    failures: createTtlCache(deps.clock),
    underway: new Map(),
    byOwner: new Map(),
    limit: createTaskLimit(MAX_CONCURRENT_FETCHES, MAX_WAITING_FETCHES),
  };
  return {
    async policyFor(domain) {
      try {
        return await findPolicy(state, domain.toLowerCase());
      } catch (error) {
        // If the store cannot be read, we do not know whether the domain requires TLS, so its mail waits.
        deps.log.error("MTA-STS lookup failed", { domain, error: String(error) });
        return { kind: "deferred", reason: `the MTA-STS policy of ${domain} cannot be looked up` };
      }
    },
  };
}

/** Domains that can have a policy host. An address literal cannot, and must not get into a URL. */
const DOMAIN = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/;

async function findPolicy(state: State, domain: string): Promise<StsFinding> {
  if (!DOMAIN.test(domain)) return noPolicy();
  const { clock, resolver } = state.deps;
  const [kept, txt] = await Promise.all([
    currentPolicy(state, domain),
    resolveTxt(resolver, `_mta-sts.${domain}`),
  ]);
  const id = txt.status === "ok" ? readStsId(txt.records) : null;
  if (kept === null) return id === null ? noPolicy() : firstPolicy(state, domain, id);
  // RFC 8461 §5.1: a stored policy applies until it expires, even if the record is gone or the fetch fails.
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

/** RFC 8461 §5.1: if the first policy cannot be fetched, mail is sent as if there were none. */
async function firstPolicy(state: State, domain: string, id: string): Promise<StsFinding> {
  const fetched = await within(state.deps.clock, FETCH_WAIT_MS, fetchOnce(state, domain, id), null);
  if (fetched === null || fetched.kind === "busy")
    return { kind: "deferred", reason: `the MTA-STS policy of ${domain} is still being fetched` };
  return { kind: "found", policy: policyOf(fetched), renewed: async () => null };
}

function policyOf(fetched: Fetched | null): StoredPolicy | null {
  return fetched?.kind === "policy" ? fetched.policy : null;
}

/** Returns the unexpired policy from memory or from the store. */
async function currentPolicy(state: State, domain: string): Promise<StoredPolicy | null> {
  const { clock, store } = state.deps;
  let kept = state.memory.get(domain);
  if (kept === undefined) {
    const loaded = await store.load(domain);
    // If a fetch ended in the meantime, its policy is newer.
    kept = state.memory.get(domain) ?? loaded;
    state.memory.set(domain, kept, MEMORY_SECONDS);
  }
  return kept !== null && clock.now() < kept.fetchedAt + kept.maxAgeSeconds * 1000 ? kept : null;
}

/** Shares one fetch among all callers that want the same policy. After a failure, pauses. */
function fetchOnce(state: State, domain: string, id: string): Promise<Fetched> {
  if (state.failures.get(domain) === true) return Promise.resolve({ kind: "failed" });
  const shared = state.underway.get(domain);
  if (shared !== undefined) return shared;
  const owner = organizationalDomain(domain);
  const ofOwner = state.byOwner.get(owner) ?? 0;
  if (ofOwner >= MAX_FETCHES_PER_OWNER) return Promise.resolve({ kind: "busy" });
  state.byOwner.set(owner, ofOwner + 1);
  const fetching = state
    .limit(() => fetchAndKeep(state, domain, id))
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

/** Never rejects. If the policy cannot be saved, it stays in memory. */
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
