import { branchOf } from "../../core/addresses.ts";
import { AppError, invalid, existing } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import {
  insertOwnRecord,
  MAX_OWN_RECORDS,
  MAX_RECORDS_AT_NAME,
  type OwnRecord,
} from "../../store/domains/domain-records.ts";
import { type Domain, getDomain } from "../../store/domains/domains.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { type GuardReason, isBroken } from "../../store/engine/guards.ts";
import { bounceDomain } from "../../core/own-names.ts";
import { SELECTORS } from "../records/keys.ts";
import { isSpf } from "../records/lookups.ts";
import { dkimName, dmarcName } from "../records/records.ts";
import { namesOfHosts } from "./domain-host-records.ts";
import { ownRecordName, ownRecordValue } from "./own-records.ts";

/** Default TTL, seconds. */
const DEFAULT_TTL_SECONDS = 3600;
/** Default preference of an MX record. */
const DEFAULT_PRIORITY = 10;

/** A record that the owner of a domain adds to its zone. */
export interface WantedRecord {
  senderId: string;
  domainId: string;
  type: OwnRecord["type"];
  name: string;
  value: string;
  ttl: number | undefined;
  priority: number | undefined;
  now: number;
  /** Statements for the same write. */
  also: (record: OwnRecord) => Statement[];
}

/**
 * Adds a record of its owner's to a delegated domain.
 * @throws AppError 404; 409 if the domain is not delegated or the record stands in the way of another; 403 if there are too
 *   many; 422 if the type cannot have that name or value
 */
export async function addOwnRecord(db: Db, wanted: WantedRecord): Promise<void> {
  const { senderId, domainId } = wanted;
  const domain = existing("domain", await getDomain(db, senderId, domainId));
  if (!domain.delegated) throw refusals.domain_not_delegated();
  const record = recordOf(wanted, domain);
  requireFree(record, domain);
  const isTopMx = record.type === "MX" && record.name === domain.name;
  try {
    await db.write([
      ...insertOwnRecord(record, { isTopMx, branch: branchOf(record.name, domain.name) }),
      ...wanted.also(record),
    ]);
  } catch (error) {
    for (const reason of REASONS) if (isBroken(error, reason)) throw refusals[reason]();
    throw error;
  }
}

function recordOf(wanted: WantedRecord, domain: Domain): OwnRecord {
  const { type, now, priority } = wanted;
  if (priority !== undefined && type !== "MX") throw invalid("priority", "Only an MX record has a priority.");
  return {
    id: newId("rec", now),
    senderId: wanted.senderId,
    domainId: domain.id,
    type,
    name: ownRecordName(wanted.name, domain.name),
    value: ownRecordValue(type, wanted.value),
    ttl: wanted.ttl ?? DEFAULT_TTL_SECONDS,
    priority: type === "MX" ? (priority ?? DEFAULT_PRIORITY) : null,
    createdAt: now,
  };
}

/** Checks that a record is not in the way of one that we publish. */
function requireFree({ type, name, value }: OwnRecord, { name: domain }: Domain): void {
  const ours = [dmarcName(domain), `_smtp._tls.${domain}`, bounceDomain(domain), ...namesOfHosts(domain)];
  const keys = Object.values(SELECTORS).flatMap((names) => names.map((name) => dkimName(name, domain)));
  if (ours.includes(name) || keys.includes(name))
    throw inTheWay(`The service publishes its own record at ${name}.`);
  if (name !== domain) return;
  if (type === "CNAME") throw inTheWay("The top of a zone cannot be an alias (RFC 1034 §3.6.2).");
  if (type === "TXT" && isSpf(value)) throw inTheWay("The service publishes the SPF record of the domain.");
}

function inTheWay(message: string): AppError {
  return new AppError("conflict", message, { param: "name" });
}

type Refused =
  | ("wildcard_in_the_way" | "inboxes_below")
  | ("domain_not_delegated" | "mx_in_the_way" | "record_exists" | "alias_not_alone")
  | ("too_many_at_name" | "too_many_records");

const refusals: Readonly<Record<Refused & GuardReason, () => AppError>> = {
  domain_not_delegated: () =>
    new AppError("conflict", "Only a delegated domain has records here. Publish them at your DNS host.", {
      code: "invalid_state",
    }),
  mx_in_the_way: () =>
    inTheWay("The domain receives here, so its MX record is ours. Turn receiving off to use another host."),
  wildcard_in_the_way: () =>
    inTheWay(
      "The service publishes its own records at the domain's wildcard. Turn `wildcard` off to use yours.",
    ),
  inboxes_below: () =>
    inTheWay(
      "The domain's wildcard does not reach names that have records, and there are inboxes at or below this one.",
    ),
  record_exists: () =>
    new AppError("conflict", "The zone has this record already.", { code: "duplicate", param: "value" }),
  alias_not_alone: () => inTheWay("An alias (CNAME) and other records cannot be at one name."),
  too_many_at_name: () =>
    new AppError("permission_error", `A name has at most ${MAX_RECORDS_AT_NAME} records of one type.`, {
      code: "quota_exceeded",
      param: "records",
    }),
  too_many_records: () =>
    new AppError("permission_error", `A domain has at most ${MAX_OWN_RECORDS} records of its owner.`, {
      code: "quota_exceeded",
      param: "records",
    }),
};
const REASONS = Object.keys(refusals) as Refused[];
