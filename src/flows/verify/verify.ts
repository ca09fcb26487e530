import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../store/client.ts";
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

/** A DKIM key that another takes the place of stays published this long, for mail on its way. */
const RETIRED_KEY_MS = 7 * 24 * 3_600_000;

type Findings = Readonly<Record<keyof RecordFlags, Finding>>;

/**
 * Checks a domain's records in the DNS now and stores what was found, in one write.
 * @returns the domain after it; null where the project has none such
 */
export async function verifyDomain(deps: VerifyDeps, senderId: string, id: string): Promise<Domain | null> {
  const domain = await getDomain(deps.db, senderId, id);
  if (domain === null) return null;
  const keys = await listDkimKeys(deps.db, senderId, id);
  const [seen, resolved] = await Promise.all([look(deps, domain, keys), pendingKeySeen(deps, domain, keys)]);
  // The key that signs from now on is the one that counts.
  const findings: Findings = resolved === null ? seen : { ...seen, dkim: "present" };
  const now = deps.clock.now();
  const check = judge(domain, findings, deps.recheckSeconds, now);
  const activate = resolved === null ? [] : activateDkimKey(id, resolved.token, now + RETIRED_KEY_MS);
  const [stored] = await deps.db.write([storeCheck(senderId, id, check), ...activate]);
  return stored?.changes === 1 ? { ...domain, ...check } : null;
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

/** The key that waits for its record, where that is now there. */
async function pendingKeySeen(
  { lookups, serviceDomain }: VerifyDeps,
  domain: Domain,
  keys: readonly PublicDkimKey[],
): Promise<PublicDkimKey | null> {
  const pending = keys.find(({ status }) => status === "pending");
  if (pending === undefined) return null;
  return (await findDkim(lookups, domain.name, pending, serviceDomain)) === "present" ? pending : null;
}

/** A record of which the DNS said nothing stays as it was last seen. */
function flagAfter(before: boolean, found: Finding): boolean {
  return found === "unknown" ? before : found === "present";
}

/** What findings make of a domain. A verified one that breaks falls back after 72 hours of failing checks only. */
export function judge(
  domain: Domain,
  findings: Findings,
  recheckSeconds: readonly number[] | null,
  now: number,
): DomainCheck {
  const verified: RecordFlags = {
    dkim: flagAfter(domain.verified.dkim, findings.dkim),
    spf: flagAfter(domain.verified.spf, findings.spf),
    dmarc: flagAfter(domain.verified.dmarc, findings.dmarc),
    mx: flagAfter(domain.verified.mx, findings.mx),
  };
  const sound = verified.dkim && verified.spf && verified.dmarc;
  const seenBroken = [findings.dkim, findings.spf, findings.dmarc].includes("absent");
  const failingSince = sound || domain.status === "pending" ? null : (domain.failingSince ?? now);
  // Only a check that saw a record missing ends the patience: silence of the DNS takes nothing from anybody.
  const fallen = failingSince !== null && seenBroken && now - failingSince >= FALL_BACK_AFTER_MS;
  const status = sound || (domain.status === "verified" && !fallen) ? "verified" : "pending";
  const after = { status, verified, failingSince: fallen ? null : failingSince } as const;
  return {
    ...after,
    verifiedAt: sound ? (domain.verifiedAt ?? now) : domain.verifiedAt,
    checkedAt: now,
    nextCheckAt: nextCheckAt({ ...domain, ...after }, recheckSeconds, now),
  };
}
