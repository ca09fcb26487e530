import { type DkimKeyRecord, KEYS } from "../domains/dkim-keys.ts";
import type { Db, Statement, Value } from "../engine/client.ts";

// What `postrider master-key reset` reads and writes, for all projects: the master key is the installation's.

/** Stands in place of a secret that cannot be made again. It is sealed as the secret was. */
export const LOST = "";

/** Returns the DKIM keys of some domains with these tokens and their siblings. */
export function keysWith(db: Db, tokens: readonly string[]): Promise<DkimKeyRecord[]> {
  return KEYS.all(
    db,
    `WHERE token IN (SELECT value FROM json_each(?1))
      OR domain_id IN (SELECT domain_id FROM dkim_keys WHERE token IN (SELECT value FROM json_each(?1)))`,
    [JSON.stringify(tokens)],
  );
}

/** A domain whose keys are replaced. */
export interface KeyedDomain {
  id: string;
  senderId: string;
  name: string;
  /** True if our name server publishes its keys. */
  served: number;
}

/** Returns some domains. */
export function domainsWith(db: Db, ids: readonly string[]): Promise<KeyedDomain[]> {
  return db.all(
    "SELECT id, sender_id AS senderId, name, served FROM domains WHERE id IN (SELECT value FROM json_each(?))",
    [JSON.stringify(ids)],
  );
}

/** Returns the statement that stores a key, also in place of another one at its token. */
export function putKey(key: DkimKeyRecord): Statement {
  const { sql, args } = KEYS.insert(key);
  return {
    sql: `${sql} ON CONFLICT (token) DO UPDATE SET public_key = excluded.public_key, private_key = excluded.private_key,
      status = excluded.status, retire_at = excluded.retire_at, created_at = excluded.created_at`,
    args,
  };
}

/** Returns the statement that makes a domain's records count as missing until its next check, which is due now. */
export function failDkim(id: string, now: number): Statement {
  return {
    sql: `UPDATE domains SET dkim_verified = 0, next_check_at = ?2,
        failing_since = CASE status WHEN 'verified' THEN COALESCE(failing_since, ?2) END WHERE id = ?1`,
    args: [id, now],
  };
}

/** A row with a lost secret, as an operator knows it. */
export interface NamedRow {
  id: string;
  name: string;
  senderId: string | null;
  /** How a webhook's events are named; the provider of a relay's events. */
  kind: string | null;
}

/** Returns the names of webhooks or routes. */
export function rowsNamed(db: Db, table: "webhooks" | "routes", ids: readonly string[]): Promise<NamedRow[]> {
  const fields = {
    webhooks: "url AS name, sender_id AS senderId, dialect AS kind",
    routes:
      "name || ' (' || COALESCE(relay_host, '') || ')' AS name, NULL AS senderId, events_provider AS kind",
  }[table];
  return db.all(`SELECT id, ${fields} FROM ${table} WHERE id IN (SELECT value FROM json_each(?))`, [
    JSON.stringify(ids),
  ]);
}

/** Returns the statement that gives a webhook a new secret. The one before ends. */
export function replaceSecret(id: string, sealed: string): Statement {
  return {
    sql: "UPDATE webhooks SET secret = ?, previous_secret = NULL, previous_secret_until = NULL WHERE id = ?",
    args: [sealed, id],
  };
}

/** Returns the statement that ends a webhook's previous secret. */
export function endPreviousSecret(id: string): Statement {
  return {
    sql: "UPDATE webhooks SET previous_secret = NULL, previous_secret_until = NULL WHERE id = ?",
    args: [id],
  };
}

/** Returns the statement that seals `LOST` in place of a relay's URL. */
export function loseRelay(id: string, sealed: string): Statement {
  return { sql: "UPDATE routes SET sealed_relay_url = ? WHERE id = ?", args: [sealed, id] };
}

/** Returns the statement that takes no more events of a route. */
export function endRelayEvents(id: string): Statement {
  return { sql: "UPDATE routes SET events_provider = NULL, sealed_proof = NULL WHERE id = ?", args: [id] };
}

/** Returns the statement that orders a certificate again. @param issued true if the key in use is lost, too */
export function orderAgain(id: string, issued: boolean, now: number): Statement {
  const chain =
    "chain = NULL, private_key = NULL, issued_at = NULL, not_after = NULL, served_from = NULL, renew_at = NULL,";
  return {
    sql: `UPDATE certificates SET ${issued ? chain : ""} order_url = NULL, order_key = NULL, order_at = NULL, due_at = ?
      WHERE id = ?`,
    args: [now, id],
  };
}

/** Returns the statement that deletes a row which is made again when it is needed. */
export function deleteRow(
  { table, key: columns }: { table: string; key: readonly string[] },
  key: readonly Value[],
): Statement {
  return {
    sql: `DELETE FROM ${table} WHERE ${columns.map((name) => `${name} = ?`).join(" AND ")}`,
    args: [...key],
  };
}
