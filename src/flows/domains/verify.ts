import { DAY_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { checkServedAround, makeRoom } from "../../store/domains/delegations.ts";
import type { Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import {
  activateDkimKeys,
  type DkimKeyStatus,
  listDkimKeys,
  type PublicDkimKey,
} from "../../store/domains/dkim-keys.ts";
import {
  type Domain,
  type DomainCheck,
  type DomainStatus,
  getDomain,
  type RecommendedFlags,
  type RecordFlags,
  storeCheck,
  unchangedSince,
} from "../../store/domains/domains.ts";
import { checkSpf } from "./spf-check.ts";
import { lookupsOf } from "./zone-lookups.ts";
import {
  type DomainLookups,
  type RecordState,
  findAllDkim,
  findDmarc,
  findAlias,
  findMx,
} from "../records/lookups.ts";
import { type RecommendedDeps, recommendedRecords } from "../records/records.ts";
import { FALL_BACK_AFTER_MS, nextCheckAt } from "./check-times.ts";
import type { Checking } from "./checking.ts";

/** Milliseconds that a replaced DKIM key stays published, for messages in transit. */
export const RETIRED_KEY_MS = 7 * DAY_MS;

/** Maximum number of attempts to store the result of a check while the domain keeps changing. */
const MAX_STORES = 3;

/** The states of a domain's records, and of its delegation to us if it has one. */
type Findings = Readonly<
  Record<keyof RecordFlags, RecordState> & Partial<Record<keyof RecommendedFlags | "delegation", RecordState>>
>;

const ALL_PRESENT: Findings = {
  dkim: "present",
  spf: "present",
  dmarc: "present",
  mx: "present",
  returnPath: "present",
  delegation: "present",
};

const NONE_PRESENT: Findings = {
  dkim: "absent",
  spf: "absent",
  dmarc: "absent",
  mx: "absent",
  delegation: "absent",
};

/** The result of looking up a domain's records. */
interface CheckResult {
  findings: Findings;
  /** When the keys were made whose records are awaited; null if none are. `resolved` is true if all are published now. */
  awaited: number | null;
  resolved: boolean;
}

/**
 * Checks a domain's records in the DNS and stores the result in one write. If another check ended in the meantime, the sweep
 * discards its own, because the other may be newer.
 * @returns the domain after the check; null if the project has no such domain
 */
export async function verifyDomain(
  deps: Checking,
  senderId: string,
  id: string,
  by: "client" | "sweep" = "client",
): Promise<Domain | null> {
  let domain = await getDomain(deps.db, senderId, id);
  if (domain === null) return null;
  let seen = await checkRecords(deps, domain, await listDkimKeys(deps.db, senderId, id));
  for (let stores = 0; domain !== null && stores < MAX_STORES; stores++) {
    const after = await store(deps, domain, seen);
    if (after !== null) return after;
    domain = await getDomain(deps.db, senderId, id);
    if (by === "sweep") return domain;
    seen = withKeys(seen, await listDkimKeys(deps.db, senderId, id));
  }
  return domain;
}

/** Applies the result to the present keys. It does not cover a key made since. */
function withKeys({ findings, ...before }: CheckResult, keys: readonly PublicDkimKey[]): CheckResult {
  const awaited = madeAt(keysIn(keys, "pending"));
  return { findings, awaited, resolved: before.resolved && awaited === before.awaited };
}

function keysIn(keys: readonly PublicDkimKey[], wanted: DkimKeyStatus): PublicDkimKey[] {
  return keys.filter(({ status }) => status === wanted);
}

/** Returns when the keys of a rotation were made, all at once; null if there are none. */
function madeAt([key]: readonly PublicDkimKey[]): number | null {
  return key?.createdAt ?? null;
}

/** Stores the result of a check. Returns null if the domain changed since it was read. */
async function store(
  { db, clock, recheckSeconds }: Checking,
  before: Domain,
  { findings, awaited, resolved }: CheckResult,
): Promise<Domain | null> {
  const now = clock.now();
  const judged = (states: Findings) => judge(before, states, recheckSeconds, now, resolved ? null : awaited);
  const activate =
    resolved && awaited !== null ? activateDkimKeys(before.id, awaited, now + RETIRED_KEY_MS) : [];
  const stored = async (check: DomainCheck, also: readonly Statement[]): Promise<Domain | null> => {
    const [written] = (await db.write([...also, storeCheck(before, check, awaited), ...activate])).slice(
      also.length,
    );
    return written?.changes === 1 ? { ...before, ...check } : null;
  };
  const check = judged(findings);
  if (before.served || !check.served) return logged(before, await stored(check, []));
  const proof = check.delegationFound ? "ns" : "records";
  const condition = unchangedSince(before, awaited);
  try {
    return logged(before, await stored(check, makeRoom(before, { proof, condition, now })));
  } catch (error) {
    if (!isBroken(error, "delegation_overlaps")) throw error;
    // Another domain is served there. If it has lost its NS record, its next check shows it.
    const unserved = {
      ...judged(findings.delegation === "present" ? NONE_PRESENT : findings),
      served: false,
    };
    return logged(before, await stored(unserved, [checkServedAround(before, now)]));
  }
}

function logged(before: Domain, check: Domain | null): Domain | null {
  if (check === null) return null;
  const { id, name: domain } = before;
  if (before.status !== check.status)
    log("verify").info("domain changed its status", { id, domain, status: check.status });
  return check;
}

async function checkRecords(
  deps: Checking,
  domain: Domain,
  keys: readonly PublicDkimKey[],
): Promise<CheckResult> {
  const pending = keysIn(keys, "pending");
  const awaited = madeAt(pending);
  if (deps.isCaptureDomain(domain.name))
    return { findings: ALL_PRESENT, awaited, resolved: awaited !== null };
  const [findings, found] = await Promise.all([
    recordStates(deps, domain, keys),
    findAllDkim(deps.lookups, domain.name, pending, deps.serviceDomain),
  ]);
  // If the new keys are published, they sign from now on, so their records count.
  const resolved = awaited !== null && found === "present";
  return { findings: resolved ? { ...findings, dkim: "present" } : findings, awaited, resolved };
}

async function recordStates(
  deps: Checking,
  domain: Domain,
  keys: readonly PublicDkimKey[],
): Promise<Findings> {
  const { serviceDomain } = deps;
  const { delegation, lookups } = await lookupsOf(deps, domain);
  const [dkim, spf, dmarc, mx, recommended] = await Promise.all([
    findAllDkim(lookups, domain.name, keysIn(keys, "active"), serviceDomain),
    checkSpf({ ...deps, lookups }, domain.name).then(({ state }) => state),
    findDmarc(lookups, domain.name),
    findMx(lookups, domain.name, serviceDomain),
    recommendedStates(deps, domain, lookups),
  ]);
  return { dkim, spf, dmarc, mx, ...recommended, delegation };
}

/** Returns the state of each purpose, which needs all of its records. */
async function recommendedStates(
  deps: RecommendedDeps,
  domain: Domain,
  lookups: DomainLookups,
): Promise<Record<keyof RecommendedFlags, RecordState>> {
  const records = recommendedRecords(domain, deps);
  const stateOf = async (wanted: string): Promise<RecordState> => {
    const needed = records.filter(({ purpose }) => purpose === wanted);
    const states = await Promise.all(needed.map(({ name, value }) => findAlias(lookups, name, value)));
    if (states.length === 0 || states.includes("absent")) return "absent";
    return states.includes("unknown") ? "unknown" : "present";
  };
  const [returnPath, links] = await Promise.all([stateOf("return_path"), stateOf("links")]);
  return { returnPath, links };
}

/** Returns the new state of a record. If its lookup failed, the state stays. */
function flagAfter(before: boolean, found: RecordState): boolean {
  return found === "unknown" ? before : found === "present";
}

/**
 * Judges a domain by the states of its records. A verified one becomes pending only after 72 hours of failing checks.
 * @param newKeyAt time at which a DKIM key was made that is not published yet; null if there is none
 */
export function judge(
  domain: Domain,
  findings: Findings,
  recheckSeconds: readonly number[] | null,
  now: number,
  newKeyAt: number | null = null,
): DomainCheck {
  const verified: RecordFlags = {
    dkim: flagAfter(domain.verified.dkim, findings.dkim),
    spf: flagAfter(domain.verified.spf, findings.spf),
    dmarc: flagAfter(domain.verified.dmarc, findings.dmarc),
    mx: flagAfter(domain.verified.mx, findings.mx),
  };
  const { returnPath = "absent", links = "absent" } = findings;
  const recommended: RecommendedFlags = {
    returnPath: flagAfter(domain.recommended.returnPath, returnPath),
    links: flagAfter(domain.recommended.links, links),
  };
  const delegationFound =
    domain.delegated && flagAfter(domain.delegationFound, findings.delegation ?? "absent");
  const sound = verified.dkim && verified.spf && verified.dmarc;
  const seenBroken = [findings.dkim, findings.spf, findings.dmarc].includes("absent");
  const failingSince = sound || domain.status === "pending" ? null : failingFrom(domain, seenBroken, now);
  // Only a check that found a record missing makes the domain pending, not a failed lookup.
  const fallen = failingSince !== null && seenBroken && now - failingSince >= FALL_BACK_AFTER_MS;
  const status: DomainStatus = sound || (domain.status === "verified" && !fallen) ? "verified" : "pending";
  // A name that its records prove switches to our zone without a gap.
  const served = domain.delegated && (domain.served || delegationFound || status === "verified");
  const after = {
    status,
    verified,
    recommended,
    delegationFound,
    served,
    failingSince: fallen ? null : failingSince,
  } as const;
  return {
    ...after,
    delegationSeenAt: delegationFound ? (domain.delegationSeenAt ?? now) : domain.delegationSeenAt,
    verifiedAt: sound ? (domain.verifiedAt ?? now) : domain.verifiedAt,
    checkedAt: now,
    nextCheckAt: nextCheckAt({ ...domain, ...after }, recheckSeconds, now, newKeyAt),
  };
}

/** Returns the time since which a domain fails. Time before a check whose lookups failed does not count. */
function failingFrom({ failingSince, checkedAt }: Domain, seenBroken: boolean, now: number): number {
  if (failingSince === null) return now;
  return seenBroken ? failingSince : failingSince + Math.max(0, now - (checkedAt ?? now));
}
