import { algorithmsOf, type DkimChoice } from "../../core/domains/dkim-keys.ts";
import { AppError, invalid } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { ConstraintError, type Guard, type Statement } from "../../store/engine/client.ts";
import { insertDkimKey, type PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import { deleteUnproven, makeRoom, noActiveDelegationAround } from "../../store/domains/delegations.ts";
import { type Domain, insertDomain } from "../../store/domains/domains.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { type IsCaptureDomain, isInboxDomain } from "./capture-domain.ts";
import { overlapping, requireDelegable } from "./delegation.ts";
import { makeDkimKey, newToken, SELECTORS } from "../records/keys.ts";
import { nextCheckAt } from "./check-times.ts";
import { isWithin, MAX_DOMAIN_OCTETS, normalizeDomain } from "../../core/addresses.ts";
import { isPublicSuffix } from "../../core/public-suffix.ts";
import type { Checking } from "./checking.ts";

const ALWAYS: Guard = { sql: "1", args: [] };

export interface NewDomain {
  accountId: string;
  senderId: string;
  /** The text that the client sent. */
  name: string;
  now: number;
  /** If true, our name server holds its zone. */
  delegated?: boolean;
  /** If true, names below it receive too. */
  wildcard?: boolean;
  /** If true, reports move the DMARC policy of that zone. */
  dmarcAuto?: boolean;
  /** RSA if left out. */
  dkimKeys?: DkimChoice | undefined;
  /** Statements for the same write. */
  also: (domain: Domain, keys: PublicDkimKey[]) => Statement[];
}

function newDomain(deps: Checking, wanted: NewDomain, name: string): Domain {
  const { accountId, senderId, now, delegated = false, wildcard = false, dmarcAuto = false } = wanted;
  const captured = deps.isCaptureDomain(name);
  const domain: Domain = {
    id: newId("dom", now),
    accountId,
    senderId,
    name,
    status: captured ? "verified" : "pending",
    verified: { dkim: captured, spf: captured, dmarc: captured, mx: captured },
    recommended: { returnPath: captured, links: false },
    receiving: captured && isInboxDomain(name, deps.serviceDomain),
    routeIds: [],
    delegated,
    delegationToken: newToken(),
    served: delegated && captured,
    delegationFound: delegated && captured,
    delegationSeenAt: delegated && captured ? now : null,
    wildcard,
    dmarcAuto,
    dmarcPolicy: "none",
    dmarcMoves: [],
    verifiedAt: captured ? now : null,
    failingSince: null,
    checkedAt: null,
    nextCheckAt: null,
    createdAt: now,
  };
  return { ...domain, nextCheckAt: nextCheckAt(domain, deps.recheckSeconds, now) };
}

/**
 * Registers a domain with new DKIM keys. Their tokens are new, so that the record of a former owner does not verify it.
 * @throws AppError 422 if the name cannot be sent from, or not be delegated; 409 if the account has the domain already, or
 *   a delegated domain overlaps with it
 */
export async function registerDomain(deps: Checking, wanted: NewDomain): Promise<void> {
  const { now } = wanted;
  const name = sendingDomainName(wanted.name, deps);
  const domain = newDomain(deps, wanted, name);
  if (domain.delegated) requireDelegable(deps, name);
  else requireOwnZone(domain);
  const keys = await Promise.all(
    algorithmsOf(wanted.dkimKeys ?? "rsa").map((algorithm) => {
      const first = { domainId: domain.id, selector: SELECTORS[algorithm][0], algorithm } as const;
      return makeDkimKey(deps, { ...first, status: "active" }, now);
    }),
  );
  try {
    await deps.db.write([
      deleteUnproven(domain),
      ...(domain.delegated ? [noActiveDelegationAround(domain)] : []),
      ...(domain.served ? makeRoom(domain, { proof: "records", condition: ALWAYS, now }) : []),
      insertDomain(domain),
      ...keys.map(insertDkimKey),
      ...wanted.also(domain, keys),
    ]);
  } catch (error) {
    if (error instanceof ConstraintError && error.unique?.startsWith("domains.") === true)
      throw new AppError("conflict", `The domain ${name} is registered in this account already.`, {
        code: "duplicate",
        param: "domain",
      });
    if (isBroken(error, "delegation_overlaps")) throw overlapping(name);
    throw error;
  }
}

/** Refuses what needs a zone of ours. */
function requireOwnZone({ dmarcAuto, wildcard }: Domain): void {
  const why = 'only with "delegated": true, because the service must hold the zone.';
  if (dmarcAuto) throw invalid("dmarc", `can be "auto" ${why}`);
  if (wildcard) throw invalid("wildcard", `can be true ${why}`);
}

/** Octets of the longest prefix of a record to publish. */
const LONGEST_PREFIX = "pr1._domainkey.".length;

/**
 * Returns the name of a sending domain in lower case and A-labels.
 * @throws AppError 422 if it is not a host name, a public suffix, or a name of the service's own zone
 */
function sendingDomainName(
  text: string,
  { serviceDomain, isCaptureDomain }: { serviceDomain: string; isCaptureDomain: IsCaptureDomain },
): string {
  const name = normalizeDomain(text.trim());
  // A host name has no underscore (RFC 1123 §2.1). Names such as _dmarc are for records.
  if (name === null || name.includes("_") || !name.includes("."))
    throw invalid("domain", 'must be a domain name, such as "mail.example.com".');
  if (name.length > MAX_DOMAIN_OCTETS - LONGEST_PREFIX)
    throw invalid("domain", "This domain name is too long to publish records below it.");
  // The holder of a public suffix could claim the mail of every domain below it.
  if (isPublicSuffix(name)) throw invalid("domain", "This is a public suffix: use your own domain below it.");
  if (isWithin(name, serviceDomain) && !(isCaptureDomain(name) && isInboxDomain(name, serviceDomain)))
    throw invalid("domain", "This domain belongs to the service itself.");
  return name;
}
