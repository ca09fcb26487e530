import type { DmarcMove, DmarcPolicy } from "../../core/domains/dmarc-policies.ts";
import { idCeiling } from "../../core/ids.ts";
import { changesRow, type Db, type Guard, type Statement } from "../engine/client.ts";
import { flag, flags, json, plain, table } from "../engine/columns.ts";
import type { Place } from "../engine/place.ts";
import { requireGuard } from "../engine/guards.ts";

export type DomainStatus = "pending" | "verified";

/** Which of a domain's records the last check found in the DNS. */
export interface RecordFlags {
  dkim: boolean;
  spf: boolean;
  dmarc: boolean;
  mx: boolean;
}

/** Which of a domain's recommended records the last check found in the DNS. */
export interface RecommendedFlags {
  /** The alias that brings reports to the domain's own return path here. */
  returnPath: boolean;
  /** The aliases of the domain's own host of links. Never true for a delegated domain, whose zone has the host itself. */
  links: boolean;
}

/** A sending domain of a project. Times in milliseconds. */
export interface Domain {
  id: string;
  accountId: string;
  senderId: string;
  /** Lower case, A-labels. */
  name: string;
  status: DomainStatus;
  verified: RecordFlags;
  recommended: RecommendedFlags;
  receiving: boolean;
  /** Routes of its mail, in order. Empty: those of the project. */
  routeIds: readonly string[];
  /** True if its owner chose that our name server holds its zone. */
  delegated: boolean;
  /** The label of the NS record that proves control of the name for this registration alone. */
  delegationToken: string;
  /** True if control was proven, so that our name server answers for the zone. */
  served: boolean;
  /** True if the last check found the NS record that delegates the zone to us. */
  delegationFound: boolean;
  /** When a check first found that record; null: never since `delegated` was set. */
  delegationSeenAt: number | null;
  /** True if names below it receive too. Only of a delegated domain. */
  wildcard: boolean;
  /** True if reports move the DMARC policy. Only of a delegated domain. */
  dmarcAuto: boolean;
  /** The DMARC policy that its zone publishes. */
  dmarcPolicy: DmarcPolicy;
  /** The latest moves of that policy, newest first. */
  dmarcMoves: readonly DmarcMove[];
  /** When it was first verified; null: never. */
  verifiedAt: number | null;
  /**
   * Since when checks of a verified domain have found a record missing. Time in which checks got no answer is left
   * out.
   */
  failingSince: number | null;
  checkedAt: number | null;
  nextCheckAt: number | null;
  createdAt: number;
}

export const DOMAINS = table<Domain>("domains", {
  id: plain("id"),
  accountId: plain("account_id"),
  senderId: plain("sender_id"),
  name: plain("name"),
  status: plain("status"),
  verified: flags({ dkim: "dkim_verified", spf: "spf_verified", dmarc: "dmarc_verified", mx: "mx_verified" }),
  recommended: flags({ returnPath: "return_path_verified", links: "links_verified" }),
  receiving: flag("receiving"),
  routeIds: json("route_ids"),
  delegated: flag("delegated"),
  delegationToken: plain("delegation_token"),
  served: flag("served"),
  delegationFound: flag("delegation_found"),
  delegationSeenAt: plain("delegation_seen_at"),
  wildcard: flag("wildcard"),
  dmarcAuto: flag("dmarc_auto"),
  dmarcPolicy: plain("dmarc_policy"),
  dmarcMoves: json("dmarc_moves"),
  verifiedAt: plain("verified_at"),
  failingSince: plain("failing_since"),
  checkedAt: plain("checked_at"),
  nextCheckAt: plain("next_check_at"),
  createdAt: plain("created_at"),
});

/**
 * Returns the statement that stores a new domain. If the account has the name, it breaks UNIQUE on
 * `domains.account_id`. If it receives, and another domain receives for the name, it breaks UNIQUE on `domains.name`.
 */
export function insertDomain(domain: Domain): Statement {
  return DOMAINS.insert(domain);
}

/** Returns the project's domain; null if it has none with that id. */
export function getDomain(db: Db, senderId: string, id: string): Promise<Domain | null> {
  return DOMAINS.first(db, "WHERE sender_id = ? AND id = ?", [senderId, id]);
}

/** Returns the project's domain; null if it has none with that name. */
export function findDomain(db: Db, senderId: string, name: string): Promise<Domain | null> {
  return DOMAINS.first(db, "WHERE sender_id = ? AND name = ?", [senderId, name]);
}

/** Returns at most `take` of the project's domains, newest first, at a place. */
export function listDomains(db: Db, senderId: string, place: Place, take: number): Promise<Domain[]> {
  const owner = { where: "sender_id = ?", args: [senderId] };
  return DOMAINS.page(db, { ...owner, place, ceiling: idCeiling("dom"), take });
}

/** Sets the routes of the project's domain. Returns false if there is no such domain. */
export function setDomainRoutes(
  db: Db,
  senderId: string,
  id: string,
  routeIds: readonly string[],
): Promise<boolean> {
  const sql = "UPDATE domains SET route_ids = ? WHERE sender_id = ? AND id = ?";
  return changesRow(db, sql, [JSON.stringify(routeIds), senderId, id]);
}

/** Deletes a domain that has no inboxes, and its DKIM keys. Returns false if there is no such domain. */
export function deleteDomain(db: Db, senderId: string, id: string): Promise<boolean> {
  const sql = `DELETE FROM domains WHERE sender_id = ? AND id = ?
    AND NOT EXISTS (SELECT 1 FROM inboxes WHERE domain_id = domains.id)`;
  return changesRow(db, sql, [senderId, id]);
}

/**
 * Lets a verified domain receive mail, or stops it, and checks its MX record soon. If another project receives for the
 * name and can no longer prove that it owns it, that project stops receiving: a former owner must not keep a name. If
 * another project receives for it rightfully, this breaks UNIQUE on `domains.name`. In a zone of ours, an MX record of the
 * owner's breaks the guard `mx_in_the_way`. Returns false if the project has
 * no such domain, or if it is to receive and is not verified.
 */
export async function setReceiving(
  db: Db,
  senderId: string,
  id: string,
  enabled: boolean,
  now: number,
): Promise<boolean> {
  const written = await db.write([
    ...(enabled ? [ownMxOnly(id, "delegated = 1")] : []),
    {
      sql: `UPDATE domains SET receiving = 0 WHERE receiving = 1 AND status = 'pending' AND id <> ? AND ? = 1
              AND name = (SELECT name FROM domains WHERE sender_id = ? AND id = ? AND status = 'verified')`,
      args: [id, Number(enabled), senderId, id],
    },
    {
      sql: `UPDATE domains SET receiving = ?, next_check_at = ?,
              mx_verified = CASE WHEN delegated = 1 AND delegation_found = 1 THEN 1 ELSE mx_verified END
            WHERE sender_id = ? AND id = ? AND (status = 'verified' OR ? = 0)`,
      args: [Number(enabled), now, senderId, id, Number(enabled)],
    },
  ]);
  return written.at(-1)?.changes === 1;
}

/** The fields of a domain that a check of its DNS changes. */
export type DomainCheck = Pick<
  Domain,
  | ("status" | "verified" | "recommended" | "verifiedAt" | "failingSince" | "checkedAt" | "nextCheckAt")
  | ("delegationFound" | "delegationSeenAt" | "served")
>;

/**
 * Returns the statement that stores the outcome of a check. It changes nothing if something the check relied on has
 * changed: another check was stored, receiving or the delegation was switched, or a DKIM key was made.
 * @param newKeyAt when the key was made whose record is awaited; null: there is none
 */
export function storeCheck(before: CheckedDomain, check: DomainCheck, newKeyAt: number | null): Statement {
  const { status, verified, recommended, verifiedAt, failingSince, checkedAt, nextCheckAt } = check;
  const { delegationFound, delegationSeenAt, served } = check;
  const checked = {
    status,
    verified,
    recommended,
    verifiedAt,
    failingSince,
    checkedAt,
    nextCheckAt,
    delegationFound,
    delegationSeenAt,
    served,
  };
  const { set, values } = DOMAINS.assignments(checked);
  const unchanged = unchangedSince(before, newKeyAt);
  return {
    sql: `UPDATE domains SET ${set.join(", ")} WHERE ${unchanged.sql}`,
    args: [...values, ...unchanged.args],
  };
}

/** The part of a domain that its check relies on. */
export type CheckedDomain = Pick<
  Domain,
  "id" | "senderId" | "checkedAt" | "receiving" | "delegated" | "served"
>;

/** Returns the condition that nothing of a domain has changed on which its check relies. */
export function unchangedSince(before: CheckedDomain, newKeyAt: number | null): Guard {
  return {
    sql: `sender_id = ? AND id = ? AND checked_at IS ? AND receiving = ? AND delegated = ? AND served = ?
            AND (SELECT created_at FROM dkim_keys WHERE domain_id = domains.id AND status = 'pending') IS ?`,
    args: [
      before.senderId,
      before.id,
      before.checkedAt,
      Number(before.receiving),
      Number(before.delegated),
      Number(before.served),
      newKeyAt,
    ],
  };
}

/** Returns the statement that makes a domain's check due at that time. */
export function checkAt(senderId: string, id: string, at: number): Statement {
  return {
    sql: "UPDATE domains SET next_check_at = ? WHERE sender_id = ? AND id = ?",
    args: [at, senderId, id],
  };
}

/**
 * Claims at most `limit` domains of all projects whose check is due, by moving the check to `leaseUntil`. No other
 * process gets them until then, and a crash only delays them.
 */
export async function claimDueDomains(
  db: Db,
  now: number,
  leaseUntil: number,
  limit: number,
): Promise<Domain[]> {
  const [written] = await db.write([
    {
      sql: `UPDATE domains SET next_check_at = ? WHERE id IN
              (SELECT id FROM domains WHERE next_check_at <= ? ORDER BY next_check_at LIMIT ?)
            RETURNING id, sender_id`,
      args: [leaseUntil, now, limit],
    },
  ]);
  const found: Domain[] = [];
  for (const { id, sender_id: senderId } of written?.rows ?? []) {
    const domain = await getDomain(db, String(senderId), String(id));
    if (domain !== null) found.push(domain);
  }
  return found;
}

/** Returns the statement that undoes its write with `mx_in_the_way` if the domain has an MX record of its owner's. */
export function ownMxOnly(id: string, condition: string): Statement {
  return requireGuard("mx_in_the_way", {
    sql: `NOT EXISTS (SELECT 1 FROM domains JOIN domain_records AS own ON own.domain_id = domains.id
            WHERE domains.id = ? AND ${condition} AND own.name = domains.name AND own.type = 'MX')`,
    args: [id],
  });
}

/**
 * Returns the domain of any project whose zone we serve under one of the names; null if there is none. Served domains do not
 * overlap. It serves the name server, which publishes the domain.
 */
export function findServedDomain(db: Db, names: readonly string[]): Promise<Domain | null> {
  return DOMAINS.first(
    db,
    "WHERE served = 1 AND name IN (SELECT value FROM json_each(?)) ORDER BY length(name) DESC LIMIT 1",
    [JSON.stringify(names)],
  );
}

/** Returns the verified domains of all projects with these names. It serves arriving reports, which name domains. */
export function verifiedDomains(db: Db, names: readonly string[]): Promise<Domain[]> {
  return DOMAINS.all(db, "WHERE status = 'verified' AND name IN (SELECT value FROM json_each(?))", [
    JSON.stringify(names),
  ]);
}
