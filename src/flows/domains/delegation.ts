import { isWithin } from "../../core/addresses.ts";
import { AppError, invalid } from "../../core/errors.ts";
import { type DkimKeyStatus, listDkimKeys, type PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import { setDelegated } from "../../store/domains/delegations.ts";
import { type Domain, getDomain } from "../../store/domains/domains.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { MAX_DELEGATED_LABELS } from "../zone/delegated-zone.ts";
import { delegationHost } from "../../core/own-names.ts";
import { findDelegation, type RecordState } from "../records/lookups.ts";
import { type DnsRecord, receivingRecords, sendingRecords } from "../records/records.ts";
import { stateOf } from "./record-state.ts";
import { wildcardRefusal } from "./wildcard.ts";
import type { Checking } from "./checking.ts";

/** `pending`: not seen yet. `active`: seen at the last check. `failing`: seen before, but not at the last check. */
export const DELEGATION_STATUSES = ["pending", "active", "failing"] as const;

/** The delegation of a domain to our name server. */
export interface Delegation {
  status: (typeof DELEGATION_STATUSES)[number];
  /** The records that its owner publishes for it: that of our name server, then those of secondaries, which are not checked. */
  records: { type: "NS"; name: string; value: string }[];
}

/** Returns the delegation of a domain; null if it publishes its records by hand. */
export function delegationOf(
  domain: Domain,
  serviceDomain: string,
  secondaryNames: readonly string[],
): Delegation | null {
  if (!domain.delegated) return null;
  const lost = domain.delegationSeenAt === null ? "pending" : "failing";
  return {
    status: domain.delegationFound ? "active" : lost,
    records: [delegationHost(domain.delegationToken, serviceDomain), ...secondaryNames].map((value) => ({
      type: "NS",
      name: domain.name,
      value,
    })),
  };
}

/**
 * Checks that our name server can hold the zone of a name.
 * @throws AppError 422 if it cannot
 */
export function requireDelegable({ serviceDomain }: { serviceDomain: string }, name: string): void {
  if (isWithin(name, serviceDomain))
    throw invalid("delegated", "A name of the service's own domain cannot be delegated.");
  if (name.split(".").length > MAX_DELEGATED_LABELS)
    throw invalid("delegated", `A delegated domain has at most ${MAX_DELEGATED_LABELS} labels.`);
}

/** Returns the 409 for a delegation that overlaps with another one. */
export function overlapping(name: string): AppError {
  return new AppError(
    "conflict",
    `${name}, a domain above it or one below it is delegated to this service already. Add the domain without \`delegated\`, and publish its records in that zone.`,
    { code: "duplicate", param: "delegated" },
  );
}

/**
 * Switches a domain between a zone that we serve and records that its owner publishes. The zone of a verified
 * domain is served at once, and the owner's records count until the delegation is seen, so no message fails. The
 * way back is checked first.
 * @returns false if the project has no such domain
 * @throws AppError 409 if another delegation overlaps, or if the owner's records are missing; 422 if it cannot be delegated
 */
export async function switchDelegation(
  deps: Checking,
  senderId: string,
  id: string,
  delegated: boolean,
): Promise<boolean> {
  const domain = await getDomain(deps.db, senderId, id);
  if (domain === null) return false;
  if (domain.delegated === delegated) return true;
  if (delegated) requireDelegable(deps, domain.name);
  else await requireOwnersRecords(deps, domain);
  try {
    return await setDelegated(deps.db, domain, delegated, deps.clock.now());
  } catch (error) {
    if (isBroken(error, "delegation_overlaps")) throw overlapping(domain.name);
    if (isBroken(error, "mx_in_the_way"))
      throw unready(
        "The domain receives here, and its zone has an MX record of yours. Delete that record first.",
      );
    throw wildcardRefusal(error, domain.name) ?? error;
  }
}

/** Keys whose signatures are on messages in transit. */
const SIGNING: readonly DkimKeyStatus[] = ["active", "retired"];

/** Checks that the domain no longer leads to us, and that its records are published elsewhere. */
async function requireOwnersRecords(deps: Checking, domain: Domain): Promise<void> {
  const { db, clock, lookups, serviceDomain } = deps;
  if (deps.isCaptureDomain(domain.name)) return;
  const delegation = await findDelegation(lookups, domain, serviceDomain);
  if (delegation === "unknown") throw unready(`The DNS did not answer for ${domain.name} NS. Try again.`);
  if (delegation === "present")
    throw unready(
      `${domain.name} still has the NS record of this service. Publish the domain's records at your DNS host, then remove that one.`,
    );
  const now = clock.now();
  const keys = (await listDkimKeys(db, domain.senderId, domain.id)).filter(
    ({ status, retireAt }) => SIGNING.includes(status) && (retireAt === null || retireAt > now),
  );
  const missing = await missingRecords(deps, domain, keys);
  if (missing.length > 0) throw unready(`Not published yet: ${missing.map(recordText).join("; ")}.`);
}

async function missingRecords(
  deps: Checking,
  domain: Domain,
  keys: readonly PublicDkimKey[],
): Promise<DnsRecord[]> {
  const { serviceDomain } = deps;
  const records = [
    // Of a retired key, too, the record is needed.
    ...sendingRecords(
      domain,
      keys.map((key) => ({ ...key, status: "active" as const })),
      serviceDomain,
    ),
    ...(domain.receiving ? receivingRecords(domain, serviceDomain) : []),
  ];
  const subject = { domain: domain.name, keys };
  const states = await Promise.all(
    records.map((record): Promise<RecordState> => stateOf(deps, subject, record)),
  );
  return records.filter((_, at) => states[at] !== "present");
}

function recordText({ name, type, value, priority }: DnsRecord): string {
  return [name, type, ...(priority === undefined ? [] : [priority]), value].join(" ");
}

function unready(message: string): AppError {
  return new AppError("conflict", message, { code: "invalid_state", param: "delegated" });
}
