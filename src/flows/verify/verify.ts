import type { Clock } from "../../core/clock.ts";
import { DAY_MS } from "../../core/time-units.ts";
import { log } from "../../log.ts";
import type { Db } from "../../store/engine/client.ts";
import { activateDkimKey, listDkimKeys, type PublicDkimKey } from "../../store/dkim-keys.ts";
import {
  type Domain,
  type DomainCheck,
  getDomain,
  type RecordFlags,
  storeCheck,
} from "../../store/domains.ts";
import { type DomainLookups, type Finding, findDkim, findDmarc, findMx, findSpf } from "./lookups.ts";
import { FALL_BACK_AFTER_MS, nextCheckAt } from "./schedule.ts";

export interface VerifyDeps {
  db: Db;
  clock: Clock;
  lookups: DomainLookups;
  serviceDomain: string;
  /** Delays between background checks; null: the default schedule. */
  recheckSeconds: readonly number[] | null;
}

/** A DKIM key that another takes the place of stays published this long, for mail on its way. Milliseconds. */
export const RETIRED_KEY_MS = 7 * DAY_MS;

/** Times that what a check has found is stored anew, since the domain has changed meanwhile. */
const MAX_STORES = 3;

type Findings = Readonly<Record<keyof RecordFlags, Finding>>;

/** What the DNS says of a domain. */
interface Seen {
  findings: Findings;
  /** The key that waits for its record, and whether that is now there. */
  pending: PublicDkimKey | null;
  resolved: boolean;
}

/**
 * Checks a domain's records in the DNS now and stores what was found, in one write. Where another check has ended
 * meanwhile, that of the sweep gives way, for the other may have begun later, and have seen more.
 * @returns the domain after it; null where the project has none such
 */
export async function verifyDomain(
  deps: VerifyDeps,
  senderId: string,
  id: string,
  by: "client" | "sweep" = "client",
): Promise<Domain | null> {
  let domain = await getDomain(deps.db, senderId, id);
  if (domain === null) return null;
  let seen = await lookAll(deps, domain, await listDkimKeys(deps.db, senderId, id));
  for (let stores = 0; domain !== null && stores < MAX_STORES; stores++) {
    const after = await store(deps, domain, seen);
    if (after !== null) return after;
    domain = await getDomain(deps.db, senderId, id);
    if (by === "sweep") return domain;
    seen = beside(seen, await listDkimKeys(deps.db, senderId, id));
  }
  return domain;
}

/** What was seen, beside the keys that there are by now: of one that has been made since nothing is known. */
function beside({ findings, ...before }: Seen, keys: readonly PublicDkimKey[]): Seen {
  const pending = pendingOf(keys);
  const isSame = pending !== null && pending.createdAt === before.pending?.createdAt;
  return { findings, pending, resolved: before.resolved && isSame };
}

function pendingOf(keys: readonly PublicDkimKey[]): PublicDkimKey | null {
  return keys.find(({ status }) => status === "pending") ?? null;
}

/** Stores what a check makes of the domain; null where that is no longer as it was read. */
async function store(
  { db, clock, recheckSeconds }: VerifyDeps,
  before: Domain,
  { findings, pending, resolved }: Seen,
): Promise<Domain | null> {
  const now = clock.now();
  const awaited = resolved ? null : (pending?.createdAt ?? null);
  const check = judge(before, findings, recheckSeconds, now, awaited);
  const activate =
    resolved && pending !== null ? activateDkimKey(before.id, pending.token, now + RETIRED_KEY_MS) : [];
  const [stored] = await db.write([storeCheck(before, check, pending?.createdAt ?? null), ...activate]);
  if (stored?.changes !== 1) return null;
  const { id, name: domain } = before;
  if (before.status !== check.status)
    log("verify").info("domain changed its status", { id, domain, status: check.status });
  return { ...before, ...check };
}

async function lookAll(deps: VerifyDeps, domain: Domain, keys: readonly PublicDkimKey[]): Promise<Seen> {
  const pending = pendingOf(keys);
  const [findings, resolved] = await Promise.all([look(deps, domain, keys), keySeen(deps, domain, pending)]);
  // The key that signs from now on is the one that counts.
  return { findings: resolved ? { ...findings, dkim: "present" } : findings, pending, resolved };
}

async function look(deps: VerifyDeps, domain: Domain, keys: readonly PublicDkimKey[]): Promise<Findings> {
  const { lookups, serviceDomain } = deps;
  const active = keys.find(({ status }) => status === "active");
  const [dkim, spf, dmarc, mx] = await Promise.all([
    active === undefined ? ("absent" as const) : findDkim(lookups, domain.name, active, serviceDomain),
    findSpf(lookups, domain.name, serviceDomain),
    findDmarc(lookups, domain.name),
    findMx(lookups, domain.name, serviceDomain),
  ]);
  return { dkim, spf, dmarc, mx };
}

async function keySeen(
  { lookups, serviceDomain }: VerifyDeps,
  domain: Domain,
  key: PublicDkimKey | null,
): Promise<boolean> {
  return key !== null && (await findDkim(lookups, domain.name, key, serviceDomain)) === "present";
}

/** A record of which the DNS said nothing stays as it was last seen. */
function flagAfter(before: boolean, found: Finding): boolean {
  return found === "unknown" ? before : found === "present";
}

/**
 * What findings make of a domain. A verified one that breaks falls back after 72 hours of failing checks only.
 * @param newKeyAt when a DKIM key was made whose record is still awaited; null: none is
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
  const sound = verified.dkim && verified.spf && verified.dmarc;
  const seenBroken = [findings.dkim, findings.spf, findings.dmarc].includes("absent");
  const failingSince = sound || domain.status === "pending" ? null : failingFrom(domain, seenBroken, now);
  // Only a check that saw a record missing ends the patience: silence of the DNS takes nothing from anybody.
  const fallen = failingSince !== null && seenBroken && now - failingSince >= FALL_BACK_AFTER_MS;
  const status = sound || (domain.status === "verified" && !fallen) ? "verified" : "pending";
  const after = { status, verified, failingSince: fallen ? null : failingSince } as const;
  return {
    ...after,
    verifiedAt: sound ? (domain.verifiedAt ?? now) : domain.verifiedAt,
    checkedAt: now,
    nextCheckAt: nextCheckAt({ ...domain, ...after }, recheckSeconds, now, newKeyAt),
  };
}

/** Since when a domain fails. The time up to a check that learned nothing does not count: it is put off by as much. */
function failingFrom({ failingSince, checkedAt }: Domain, seenBroken: boolean, now: number): number {
  if (failingSince === null) return now;
  return seenBroken ? failingSince : failingSince + Math.max(0, now - (checkedAt ?? now));
}
