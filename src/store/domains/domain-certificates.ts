import type { Db, Statement } from "../engine/client.ts";
import type { CertificateWish } from "./certificates.ts";

// Certificates of the hosts of domains. The id of each is that of its domain, and it is deleted with it.

/** The condition that the hosts of a domain, the row `d`, lead here: its delegation is seen, or the aliases of its links. */
export const HAS_HOSTS = "(d.served = 1 AND d.delegation_found = 1 OR d.links_verified = 1)";

/**
 * Returns at most `limit` domains of all projects whose hosts lead here and which have no certificate for all of them yet. With
 * `most` certificates of domains in the installation, returns none.
 */
export async function domainsToCertify(
  db: Db,
  limit: number,
  most: number,
): Promise<{ id: string; name: string; delegated: boolean }[]> {
  const rows = await db.all<{ id: string; name: string; delegated: number }>(
    `SELECT id, name, delegated FROM domains AS d WHERE ${HAS_HOSTS}
       AND NOT EXISTS (SELECT 1 FROM certificates WHERE certificates.id = d.id
         AND json_array_length(certificates.names) = 1 + d.delegated)
     ORDER BY id LIMIT MAX(0, MIN(?, ? - (SELECT COUNT(*) FROM certificates WHERE domain_id IS NOT NULL)))`,
    [limit, most],
  );
  return rows.map((row) => ({ ...row, delegated: row.delegated === 1 }));
}

/**
 * Returns the statement that adds a domain's certificate to get, if its hosts still lead here. If it has one for other hosts,
 * that is served until the new one comes.
 */
export function wantDomainCertificate({ id, directory, names }: CertificateWish, now: number): Statement {
  return {
    sql: `INSERT INTO certificates (id, domain_id, directory, names, due_at)
          SELECT id, id, ?, ?, ? FROM domains AS d WHERE id = ? AND ${HAS_HOSTS}
          ON CONFLICT (id) DO UPDATE SET names = excluded.names, renew_at = 0, order_url = NULL, order_at = NULL,
            due_at = excluded.due_at, failures = 0, last_error = NULL, last_error_at = NULL
          WHERE certificates.names <> excluded.names`,
    args: [directory, JSON.stringify(names), now, id],
  };
}

/** Returns the statement that orders the certificates of domains from this CA from now on, if they came from another. */
export function moveDomainCertificates(directory: string, now: number): Statement {
  return {
    sql: `UPDATE certificates SET directory = ?, renew_at = 0, order_url = NULL, order_at = NULL, due_at = ?,
            failures = 0, last_error = NULL, last_error_at = NULL
          WHERE domain_id IS NOT NULL AND directory <> ?`,
    args: [directory, now, directory],
  };
}

/** Returns the statements that count a new order of a domain's certificate, and forget those begun before `since`. */
export function countDomainOrder(certificateId: string, now: number, since: number): Statement[] {
  return [
    { sql: "DELETE FROM domain_orders WHERE begun_at <= ? OR begun_at > ?", args: [since, now] },
    {
      sql: `INSERT INTO domain_orders (sender_id, begun_at)
            SELECT sender_id, ? FROM domains WHERE id = (SELECT domain_id FROM certificates WHERE id = ?)`,
      args: [now, certificateId],
    },
  ];
}

/** Returns a string that changes if certificates of domains are issued or deleted. It reads only an index. */
export async function domainCertificatesVersion(db: Db): Promise<string> {
  const row = await db.first<{ version: string }>(
    `SELECT COUNT(issued_at) || ' ' || COALESCE(SUM(issued_at), 0) AS version FROM certificates
     WHERE domain_id IS NOT NULL`,
  );
  return row?.version ?? "";
}

export interface DomainCertificate {
  id: string;
  domain: string;
  /** The names that its next order asks for. */
  names: readonly string[];
  /** PEM: ours first, then its issuers. */
  chain: string;
  sealedKey: string;
  issuedAt: number;
}

/** Returns when the certificate of each domain was issued, by id, for those that are valid at `now`. */
export async function issuedDomainCertificates(
  db: Db,
  now: number,
  limit: number,
): Promise<Map<string, number>> {
  const rows = await db.all<{ id: string; issued_at: number }>(
    "SELECT id, issued_at FROM certificates WHERE domain_id IS NOT NULL AND not_after > ? ORDER BY id LIMIT ?",
    [now, limit],
  );
  return new Map(rows.map(({ id, issued_at: issuedAt }) => [id, issuedAt]));
}

/** Returns the issued certificates of these domains. */
export async function domainCertificates(db: Db, ids: readonly string[]): Promise<DomainCertificate[]> {
  const rows = await db.all<{
    id: string;
    name: string;
    names: string;
    chain: string;
    private_key: string;
    issued_at: number;
  }>(
    `SELECT c.id, d.name, c.names, c.chain, c.private_key, c.issued_at FROM certificates c JOIN domains d ON d.id = c.domain_id
     WHERE c.id IN (SELECT value FROM json_each(?)) AND c.chain IS NOT NULL`,
    [JSON.stringify(ids)],
  );
  return rows.map(({ id, name: domain, names, chain, private_key: sealedKey, issued_at: issuedAt }) => ({
    id,
    domain,
    names: JSON.parse(names),
    chain,
    sealedKey,
    issuedAt,
  }));
}

/** The state of a domain's certificate, for the operator. Times in milliseconds. */
export interface DomainCertificateState {
  accountId: string;
  names: readonly string[];
  notAfter: number | null;
  renewAt: number | null;
  dueAt: number;
  lastError: { text: string; at: number } | null;
}

/** Returns the states of at most `limit` certificates of domains: those whose last try failed first, then by their end. */
export async function domainCertificateStates(db: Db, limit: number): Promise<DomainCertificateState[]> {
  const rows = await db.all<{
    account_id: string;
    names: string;
    not_after: number | null;
    renew_at: number | null;
    due_at: number;
    last_error: string | null;
    last_error_at: number | null;
  }>(
    `SELECT d.account_id, c.names, c.not_after, c.renew_at, c.due_at, c.last_error, c.last_error_at
     FROM certificates c JOIN domains d ON d.id = c.domain_id
     ORDER BY c.last_error IS NULL, c.not_after, c.id LIMIT ?`,
    [limit],
  );
  return rows.map((row) => ({
    accountId: row.account_id,
    names: JSON.parse(row.names),
    notAfter: row.not_after,
    renewAt: row.renew_at,
    dueAt: row.due_at,
    lastError: row.last_error === null ? null : { text: row.last_error, at: row.last_error_at ?? 0 },
  }));
}
