import { namesAbove } from "../../core/addresses.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { type Domain, ownMxOnly } from "./domains.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { noInboxesBelow } from "./wildcards.ts";
import { requireGuard } from "../engine/guards.ts";

// Which delegated domain the name server answers for. Any number of projects may ask for a name, and one is served: the one
// that has proven control of it.

/**
 * Returns the statement that undoes its write with the guard `delegation_overlaps` if the DNS delegates a name above or below
 * to another domain. Such a registration could not be served.
 */
export function noActiveDelegationAround(domain: Pick<Domain, "id" | "name">): Statement {
  const around = servedAround(domain);
  return requireGuard("delegation_overlaps", {
    sql: `NOT EXISTS (SELECT 1 FROM domains WHERE ${around.sql} AND delegation_found = 1 AND name <> ?)`,
    args: [...around.args, domain.name],
  });
}

/** Proof of control over a name: its NS record has the token of the registration, or its own records were verified. */
export type Proof = "ns" | "records";

/** A claim of a domain to be served. */
export interface Claim {
  proof: Proof;
  /** Holds for the row of the domain. If it does not, nothing changes. */
  condition: Guard;
  now: number;
}

/**
 * Returns the statements that make room for a domain's zone. Served domains at, above or below the name
 * give way if the last check of their NS record failed: a former owner must not keep a name. If only its records
 * prove the domain, those that are verified stay. If another one stays, the write is undone with the guard
 * `delegation_overlaps`: otherwise one project could answer for names of another.
 */
export function makeRoom(domain: Pick<Domain, "id" | "name">, { proof, condition, now }: Claim): Statement[] {
  const around = servedAround(domain);
  const mine = `EXISTS (SELECT 1 FROM domains WHERE ${condition.sql})`;
  return [
    {
      sql: `UPDATE domains SET served = 0, delegation_seen_at = NULL, next_check_at = ?
            WHERE ${around.sql} AND delegation_found = 0 AND (status = 'pending' OR ?) AND ${mine}`,
      args: [now, ...around.args, Number(proof === "ns"), ...condition.args],
    },
    requireGuard("delegation_overlaps", {
      sql: `NOT (${mine} AND EXISTS (SELECT 1 FROM domains WHERE ${around.sql}))`,
      args: [...condition.args, ...around.args],
    }),
  ];
}

/** Returns the statement that checks the domains soon that are served at, above or below a name. */
export function checkServedAround(domain: Pick<Domain, "id" | "name">, now: number): Statement {
  const around = servedAround(domain);
  return {
    sql: `UPDATE domains SET next_check_at = ? WHERE ${around.sql} AND next_check_at > ?`,
    args: [now, ...around.args, now],
  };
}

/** Returns the condition of the other served domains at, above and below a name. */
function servedAround({ id, name }: Pick<Domain, "id" | "name">): Guard {
  const below = `.${name}`;
  return {
    sql: `served = 1 AND id <> ? AND (name IN (SELECT value FROM json_each(?)) OR substr(name, -length(?)) = ?)`,
    args: [id, JSON.stringify([name, ...namesAbove(name)]), below, below],
  };
}

/**
 * Switches whether our name server is to hold the domain's zone, and checks the domain soon. A verified domain is served at
 * once. Its own return path and links wait for that check, because they may be gone from the new zone. It breaks the guard `delegation_overlaps` or, if the domain receives and its owner has an MX record, `mx_in_the_way`, or on the way back `inboxes_below`.
 * Returns false if the project has no such domain.
 */
export async function setDelegated(
  db: Db,
  domain: Domain,
  delegated: boolean,
  now: number,
): Promise<boolean> {
  const { senderId, id } = domain;
  const isVerified = { sql: "sender_id = ? AND id = ? AND status = 'verified'", args: [senderId, id] };
  const written = await db.write([
    ...(delegated
      ? [
          ...makeRoom(domain, { proof: "records", condition: isVerified, now }),
          noActiveDelegationAround(domain),
          ownMxOnly(id, "receiving = 1"),
        ]
      : [noInboxesBelow(id)]),
    {
      sql: `UPDATE domains SET delegated = ?1, served = (?1 AND status = 'verified'), delegation_found = 0,
              delegation_seen_at = NULL, return_path_verified = 0, links_verified = 0, next_check_at = ?2,
              dmarc_auto = 0, dmarc_policy = 'none', wildcard = 0
            WHERE sender_id = ?3 AND id = ?4`,
      args: [Number(delegated), now, senderId, id],
    },
  ]);
  return written.at(-1)?.changes === 1;
}

/** Time after which a domain that was never verified gives way to another project of its account, milliseconds. */
export const UNPROVEN_FOR_MS = 7 * DAY_MS;

/**
 * Returns the statement that deletes another project's registration of a name within the account, if it is that old
 * and was never verified. So a project cannot block a name's owner by registering it.
 */
export function deleteUnproven({
  accountId,
  senderId,
  name,
  createdAt: now,
}: Pick<Domain, "accountId" | "senderId" | "name" | "createdAt">): Statement {
  return {
    sql: `DELETE FROM domains WHERE account_id = ? AND name = ? AND sender_id <> ? AND created_at <= ?
            AND verified_at IS NULL AND NOT EXISTS (SELECT 1 FROM inboxes WHERE domain_id = domains.id)`,
    args: [accountId, name, senderId, now - UNPROVEN_FOR_MS],
  };
}
