import { reseal } from "../../core/crypto/secretbox.ts";
import { atMostEvery } from "../../core/time/clock.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { certificateId } from "../../net/acme/certificate-id.ts";
import type { RenewalWindow } from "../../net/acme/objects.ts";
import { AcmeError } from "../../net/acme/problem.ts";
import { readChain } from "../../smtp/listener/certificate.ts";
import {
  type CertificateRecord,
  deleteChallenges,
  updateCertificate,
  wantCertificate,
} from "../../store/domains/certificates.ts";
import {
  domainsToCertify,
  moveDomainCertificates,
  wantDomainCertificate,
} from "../../store/domains/domain-certificates.ts";
import { claimDueCertificate } from "../../store/domains/due-certificates.ts";
import { type AccountDeps, forgetIfGone } from "./account.ts";
import {
  certifiedHosts,
  MAX_DOMAIN_CERTIFICATES,
  MAX_DOMAIN_ORDERS,
  ORDER_WINDOW_MS,
} from "./domain-hosts.ts";
import { placeOf, timesOf } from "./issued.ts";
import { advanceOrder, newKey, type OrderDeps } from "./order.ts";
import { FARTHEST_MS, renewalTime, retryPauseMs, windowCheckMs } from "./renewal-times.ts";
import type { WantedCertificate } from "./wanted.ts";

/** Maximum number of certificates handled in one turn. */
const MAX_PER_TURN = 20;
/** Domains that get a certificate to order in one comparison. */
const NEW_DOMAINS_PER_LOOK = 100;
/** Pause between two comparisons of the certificates that there are with those that are wanted. */
const WANTED_PAUSE_MS = MINUTE_MS;
/**
 * Time for which a certificate is claimed. If a turn takes longer, another process may begin, and the first one saves
 * nothing any more. Both see the same order, and answer its challenges in the same way.
 */
export const CLAIM_MS = 5 * MINUTE_MS;

export interface RenewDeps extends AccountDeps, Pick<OrderDeps, "settleMs" | "serviceDomain"> {
  /** Returns the certificates that the service should have for its own names. */
  wanted: () => Promise<readonly WantedCertificate[]>;
  /** True if delegated domains have hosts, and so certificates. */
  domains: boolean;
  /** Returns a number in [0, 1). */
  random: () => number;
}

/** Thrown in a turn whose claim is over. Another process has the certificate now. */
class ClaimOverError extends Error {}

/**
 * Makes the chore that gets and renews certificates. Any number of processes may run it: each certificate is claimed by
 * one at a time.
 */
export function openRenewal(deps: RenewDeps): () => Promise<void> {
  const isTimeToLook = atMostEvery(deps.clock, WANTED_PAUSE_MS);
  let ids: readonly string[] = [];
  return async () => {
    if (isTimeToLook()) ids = await lookForWanted(deps);
    for (let count = 0; count < MAX_PER_TURN; count++) if (!(await renewNext(deps, ids))) return;
  };
}

/**
 * Stores the certificates that are wanted, and returns the ids of ours. Those that are no longer wanted are left as
 * they are. Those of domains are deleted with their domain, or when its zone is no longer ours.
 */
async function lookForWanted({ db, clock, directory, wanted, domains }: RenewDeps): Promise<string[]> {
  const now = clock.now();
  const wishes = await wanted();
  const fresh = domains ? await domainsToCertify(db, NEW_DOMAINS_PER_LOOK, MAX_DOMAIN_CERTIFICATES) : [];
  await db.write([
    ...wishes.map(({ id, names }) => wantCertificate({ id, names, directory }, now)),
    ...(domains ? [moveDomainCertificates(directory, now)] : []),
    ...fresh.map((domain) =>
      wantDomainCertificate({ id: domain.id, names: certifiedHosts(domain), directory }, now),
    ),
  ]);
  return wishes.map(({ id }) => id);
}

/** Returns a record with its keys under the present master key, which may have changed since the record was read. */
function resealed({ boxKey }: RenewDeps, record: CertificateRecord): CertificateRecord {
  const { issued, sealedOrderKey } = record;
  const order = sealedOrderKey === null ? null : reseal(boxKey, sealedOrderKey);
  if (issued === null) return { ...record, sealedOrderKey: order };
  const isSame = issued.sealedKey === sealedOrderKey && order !== null;
  const sealedKey = isSame ? order : reseal(boxKey, issued.sealedKey);
  return { ...record, sealedOrderKey: order, issued: { ...issued, sealedKey } };
}

/** Works on the certificate that has been due for the longest. Returns false if none is due. */
async function renewNext(deps: RenewDeps, ids: readonly string[]): Promise<boolean> {
  const now = deps.clock.now();
  const leaseUntil = now + CLAIM_MS;
  const domains = deps.domains ? { since: now - ORDER_WINDOW_MS, orders: MAX_DOMAIN_ORDERS } : null;
  const due = { ids, domains, now, leaseUntil, farthest: now + FARTHEST_MS };
  const record = await claimDueCertificate(deps.db, due);
  if (record === null) return false;
  const keep = async (changed: CertificateRecord): Promise<CertificateRecord> => {
    const [written] = await deps.db.write([updateCertificate(resealed(deps, changed), leaseUntil)]);
    if (written?.changes !== 1) throw new ClaimOverError();
    return changed;
  };
  let latest = record;
  const keepOpen = async (changed: CertificateRecord) => {
    latest = await keep({ ...changed, dueAt: leaseUntil });
    return latest;
  };
  try {
    const next = await advance({ ...deps, keep: keepOpen }, record);
    if (next.order === null) await deps.db.write([deleteChallenges(record.id)]);
    await keep(next);
    if (next.issued !== latest.issued) logIssued(next);
  } catch (error) {
    if (error instanceof ClaimOverError) return true;
    await keep(await afterFailure(deps, latest, error)).catch(ignoreOver);
  }
  return true;
}

function ignoreOver(error: unknown): void {
  if (!(error instanceof ClaimOverError)) throw error;
}

function logIssued({ names, issued }: CertificateRecord): void {
  const ends = issued === null ? null : new Date(issued.notAfter).toISOString();
  log("net").info("a certificate was issued", { names, ends });
}

async function advance(
  deps: Parameters<typeof advanceOrder>[0],
  record: CertificateRecord,
): Promise<CertificateRecord> {
  const { issued, order, renewAt } = record;
  if (issued === null || order !== null || (renewAt !== null && renewAt <= deps.clock.now()))
    return advanceOrder(deps, record);
  return plan(deps, record, issued);
}

/** Computes when to renew a certificate, and when to ask for that again. */
async function plan(
  { client, clock }: AccountDeps,
  record: CertificateRecord,
  { chain, issuedAt }: NonNullable<CertificateRecord["issued"]>,
): Promise<CertificateRecord> {
  const [leaf] = readChain(chain);
  const window = await windowOf(client, certificateId(leaf.raw));
  const now = clock.now();
  const renewAt = renewalTime({ ...timesOf(leaf), issuedAt }, window, placeOf(leaf), now);
  return { ...record, renewAt, dueAt: Math.max(now + 1, Math.min(renewAt, now + windowCheckMs(window))) };
}

/** Returns the CA's window; null if it has none or cannot be asked. Then a third of the lifetime counts. */
async function windowOf(client: AccountDeps["client"], id: string | null): Promise<RenewalWindow | null> {
  if (id === null) return null;
  try {
    return await client.renewalWindow(id);
  } catch (error) {
    if (!(error instanceof AcmeError)) throw error;
    log("net").debug("the CA does not say when to renew", { error: error.message });
    return null;
  }
}

/** Records a failure and when to try again. A refusal ends the order; trouble on the way leaves it as it is. */
async function afterFailure(
  deps: RenewDeps,
  record: CertificateRecord,
  cause: unknown,
): Promise<CertificateRecord> {
  const error = cause instanceof AcmeError ? cause : new AcmeError(`an error of ours: ${String(cause)}`);
  const isGone = await forgetIfGone(deps, error);
  const isOver = error.refused || isGone;
  if (isOver) await deps.db.write([deleteChallenges(record.id)]);
  const failures = record.failures + 1;
  const now = deps.clock.now();
  const dueAt = now + retryPauseMs(error, failures, deps.random());
  log("net").warn("a certificate could not be had", {
    names: record.names,
    error: error.message,
    again: new Date(dueAt).toISOString(),
  });
  return {
    ...record,
    order: isOver ? null : record.order,
    sealedOrderKey: error.type === "badPublicKey" ? await newKey(deps.boxKey, record) : record.sealedOrderKey,
    failures,
    dueAt,
    lastError: { text: error.message, at: now },
  };
}
