import { namesAbove } from "../../core/addresses.ts";
import { type Domain, DOMAINS } from "./domains.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { requireGuard } from "../engine/guards.ts";

// A domain with a wildcard includes every name below it that its account has not registered.

/**
 * Returns SQL for the id of the project's domain that mail from a name belongs to. It is the domain of that very name, or else the
 * one whose wildcard has it. Parameters are SQL of the account, the project and the name.
 */
export function domainOfName(of: { account: string; project: string; name: string }): string {
  const { account, project, name } = of;
  return `COALESCE(
    (SELECT w.id FROM domains w WHERE w.account_id = ${account} AND w.name = ${name} AND w.sender_id = ${project}),
    (SELECT w.id FROM domains w WHERE w.account_id = ${account} AND w.sender_id = ${project} AND w.wildcard = 1
        AND substr(${name}, -length(w.name) - 1) = '.' || w.name
        AND NOT EXISTS (SELECT 1 FROM domains o WHERE o.account_id = ${account} AND o.name = ${name})
      ORDER BY length(w.name) DESC LIMIT 1))`;
}

/** Returns the project's domain whose wildcard has a name; null if there is none. */
export function findWildcardAbove(db: Db, senderId: string, name: string): Promise<Domain | null> {
  return DOMAINS.first(
    db,
    `WHERE sender_id = ?1 AND wildcard = 1 AND name IN (SELECT value FROM json_each(?2))
      AND NOT EXISTS (SELECT 1 FROM domains o WHERE o.account_id = domains.account_id AND o.name = ?3)
      ORDER BY length(name) DESC LIMIT 1`,
    [senderId, JSON.stringify(namesAbove(name)), name],
  );
}

/** Returns the domain of any project that receives for a name by its wildcard; null if none does. */
export function wildcardReceiving(db: Db, name: string): Promise<Pick<Domain, "id" | "senderId"> | null> {
  return db.first(
    `SELECT id, sender_id AS senderId FROM domains
      WHERE receiving = 1 AND wildcard = 1 AND name IN (SELECT value FROM json_each(?)) ORDER BY length(name) DESC LIMIT 1`,
    [JSON.stringify(namesAbove(name))],
  );
}

/** Domain of an inbox's address, whose local part has no at sign. */
const DOMAIN_OF_INBOX = "substr(i.address, instr(i.address, '@') + 1)";
/** Types of records that are ours at the wildcard, or cannot be next to ours. */
const WILDCARD_TYPES = "('MX', 'TXT', 'CNAME')";

/**
 * Switches a delegated domain's wildcard. Breaks the guard `domain_not_delegated`, `wildcard_in_the_way` if its owner has such
 * a record, or `inboxes_below` if it is switched off and has inboxes.
 */
export async function setWildcard(
  db: Db,
  { senderId, id }: Pick<Domain, "senderId" | "id">,
  wildcard: boolean,
): Promise<void> {
  await db.write([
    ...(wildcard ? [requireDelegated(id), ownWildcardOnly(id)] : [noInboxesBelow(id)]),
    {
      sql: "UPDATE domains SET wildcard = ? WHERE sender_id = ? AND id = ? AND wildcard <> ?1",
      args: [Number(wildcard), senderId, id],
    },
  ]);
}

function requireDelegated(id: string): Statement {
  const sql = "EXISTS (SELECT 1 FROM domains WHERE id = ? AND delegated = 1)";
  return requireGuard("domain_not_delegated", { sql, args: [id] });
}

function ownWildcardOnly(id: string): Statement {
  return requireGuard("wildcard_in_the_way", {
    sql: `NOT EXISTS (SELECT 1 FROM domain_records r JOIN domains d ON d.id = r.domain_id
      WHERE r.domain_id = ? AND r.name = '*.' || d.name AND r.type IN ${WILDCARD_TYPES})`,
    args: [id],
  });
}

/** Returns the statement that undoes its write with `inboxes_below` if the domain has an inbox at a name below it. */
export function noInboxesBelow(id: string): Statement {
  return requireGuard("inboxes_below", {
    sql: `NOT EXISTS (SELECT 1 FROM inboxes i JOIN domains d ON d.id = i.domain_id
      WHERE i.domain_id = ? AND i.address <> i.id AND ${DOMAIN_OF_INBOX} <> d.name)`,
    args: [id],
  });
}

/** Returns the statement that undoes its write with `not_wildcard` if the domain has no wildcard. */
export function requireWildcard(id: string): Statement {
  const sql = "EXISTS (SELECT 1 FROM domains WHERE id = ? AND wildcard = 1)";
  return requireGuard("not_wildcard", { sql, args: [id] });
}

/**
 * Returns the statements that undo their write if an owner's record is in the way of the domain's wildcard.
 * `wildcard_in_the_way`: it is at the wildcard itself. `inboxes_below`: it would take the name of an inbox from the wildcard.
 * @param branch the name directly below the domain at or above the record (`branchOf`); null at the domain and its wildcard
 */
export function besideWildcard(
  { domainId, name, type }: { domainId: string; name: string; type: string },
  branch: string | null,
): Statement[] {
  const clash: Guard = {
    sql: `NOT EXISTS (SELECT 1 FROM domains WHERE id = ? AND wildcard = 1 AND ? = '*.' || name AND ? IN ${WILDCARD_TYPES})`,
    args: [domainId, name, type],
  };
  const hidden: Guard = {
    sql: `NOT EXISTS (SELECT 1 FROM inboxes i WHERE i.domain_id = ?1 AND i.address <> i.id
      AND (${DOMAIN_OF_INBOX} = ?2 OR substr(i.address, -length(?2) - 1) = '.' || ?2))`,
    args: [domainId, branch ?? ""],
  };
  return [
    requireGuard("wildcard_in_the_way", clash),
    ...(branch === null ? [] : [requireGuard("inboxes_below", hidden)]),
  ];
}
