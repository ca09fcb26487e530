import type { Db, Statement } from "../engine/client.ts";

// Certificates and accounts belong to the installation, not to a project. Times in milliseconds; keys are sealed.

export interface IssuedCertificate {
  /** PEM: ours first, then its issuers. */
  chain: string;
  sealedKey: string;
  issuedAt: number;
  notAfter: number;
  /** When every process uses a certificate with this key. A renewal with the same key keeps it. */
  servedFrom: number;
}

/** A certificate that we get and renew, with the pending order. */
export interface CertificateRecord {
  id: string;
  /** The delegated domain whose hosts it is for; null: the service's own. */
  domainId: string | null;
  /** URL of the CA's directory, and the names that the next order asks for. */
  directory: string;
  names: readonly string[];
  issued: IssuedCertificate | null;
  /** null until it has been computed for the current chain. */
  renewAt: number | null;
  order: { url: string; startedAt: number } | null;
  /** The key of the next certificate; null before an order, and after it. */
  sealedOrderKey: string | null;
  dueAt: number;
  /** Failed tries since the last success. */
  failures: number;
  lastError: { text: string; at: number } | null;
}

interface Row {
  id: string;
  domain_id: string | null;
  directory: string;
  names: string;
  chain: string | null;
  private_key: string | null;
  issued_at: number | null;
  not_after: number | null;
  served_from: number | null;
  renew_at: number | null;
  order_url: string | null;
  order_key: string | null;
  order_at: number | null;
  due_at: number;
  failures: number;
  last_error: string | null;
  last_error_at: number | null;
}

const COLUMNS = `id, domain_id, directory, names, chain, private_key, issued_at, not_after, served_from, renew_at, order_url,
  order_key, order_at, due_at, failures, last_error, last_error_at`;

function recordOf(row: Row): CertificateRecord {
  const { chain, private_key: sealedKey } = row;
  const { order_url: url, order_at: startedAt, last_error: text, last_error_at: at } = row;
  return {
    id: row.id,
    domainId: row.domain_id,
    directory: row.directory,
    names: JSON.parse(row.names),
    issued: chain === null || sealedKey === null ? null : { chain, sealedKey, ...timesOf(row) },
    renewAt: row.renew_at,
    order: url === null || startedAt === null ? null : { url, startedAt },
    sealedOrderKey: row.order_key,
    dueAt: row.due_at,
    failures: row.failures,
    lastError: text === null ? null : { text, at: at ?? 0 },
  };
}

/** The schema lets these be NULL only if there is no chain. */
function timesOf({ issued_at, not_after, served_from }: Row) {
  return { issuedAt: issued_at ?? 0, notAfter: not_after ?? 0, servedFrom: served_from ?? 0 };
}

/** Returns a certificate; null if it was never wanted. */
export async function findCertificate(db: Db, id: string): Promise<CertificateRecord | null> {
  const row = await db.first<Row>(`SELECT ${COLUMNS} FROM certificates WHERE id = ?`, [id]);
  return row === null ? null : recordOf(row);
}

/** A certificate that should exist. */
export interface CertificateWish {
  id: string;
  /** URL of the CA's directory. */
  directory: string;
  names: readonly string[];
}

/**
 * Returns the statement that adds a certificate to get. If there is one of that id with other names or another CA, its
 * order is dropped, and it is due now.
 */
export function wantCertificate({ id, directory, names }: CertificateWish, now: number): Statement {
  return {
    sql: `INSERT INTO certificates (id, directory, names, due_at) VALUES (?, ?, ?, ?)
          ON CONFLICT (id) DO UPDATE SET directory = excluded.directory, names = excluded.names, renew_at = 0,
            order_url = NULL, order_at = NULL, due_at = excluded.due_at, failures = 0, last_error = NULL,
            last_error_at = NULL
          WHERE certificates.directory <> excluded.directory OR certificates.names <> excluded.names`,
    args: [id, directory, JSON.stringify(names), now],
  };
}

/** Returns the statement that makes every certificate due whose last try failed. */
export function retryFailedCertificates(now: number): Statement {
  return {
    sql: "UPDATE certificates SET due_at = ? WHERE last_error IS NOT NULL AND due_at > ?",
    args: [now, now],
  };
}

/** Returns the statement that saves a claimed certificate. If the claim is over, it changes no row. */
export function updateCertificate(record: CertificateRecord, leaseUntil: number): Statement {
  const { issued, order, lastError } = record;
  return {
    sql: `UPDATE certificates SET directory = ?, names = ?, chain = ?, private_key = ?, issued_at = ?, not_after = ?,
            served_from = ?, renew_at = ?, order_url = ?, order_key = ?, order_at = ?, due_at = ?, failures = ?, last_error = ?,
            last_error_at = ?
          WHERE id = ? AND due_at = ?`,
    args: [
      record.directory,
      JSON.stringify(record.names),
      issued?.chain ?? null,
      issued?.sealedKey ?? null,
      issued?.issuedAt ?? null,
      issued?.notAfter ?? null,
      issued?.servedFrom ?? null,
      record.renewAt,
      order?.url ?? null,
      record.sealedOrderKey,
      order?.startedAt ?? null,
      record.dueAt,
      record.failures,
      lastError?.text ?? null,
      lastError?.at ?? null,
      record.id,
      leaseUntil,
    ],
  };
}

export interface AcmeAccount {
  directory: string;
  sealedKey: string;
  /** null until the CA has registered the key. */
  url: string | null;
  /** The address that the CA writes to. */
  contact: string;
  /** Names by which CAA records let the CA issue. */
  caaNames: readonly string[];
}

interface AccountRow {
  directory: string;
  private_key: string;
  url: string | null;
  contact: string;
  caa_names: string;
}

/** Returns our account at a CA; null if there is none. */
export async function findAcmeAccount(db: Db, directory: string): Promise<AcmeAccount | null> {
  const row = await db.first<AccountRow>(
    "SELECT directory, private_key, url, contact, caa_names FROM acme_accounts WHERE directory = ?",
    [directory],
  );
  if (row === null) return null;
  const { private_key: sealedKey, url, contact } = row;
  return { directory, sealedKey, url, contact, caaNames: JSON.parse(row.caa_names) };
}

/** Returns the statement that stores a key before it is registered. It changes nothing if there is one. */
export function insertAcmeAccount(
  directory: string,
  sealedKey: string,
  contact: string,
  now: number,
): Statement {
  return {
    sql: `INSERT INTO acme_accounts (directory, private_key, contact, created_at) VALUES (?, ?, ?, ?)
          ON CONFLICT DO NOTHING`,
    args: [directory, sealedKey, contact, now],
  };
}

/** Returns the statement that records what the CA knows of an account. The key must still be the one in it. */
export function updateAcmeAccount({ directory, sealedKey, url, contact, caaNames }: AcmeAccount): Statement {
  return {
    sql: "UPDATE acme_accounts SET url = ?, contact = ?, caa_names = ? WHERE directory = ? AND private_key = ?",
    args: [url, contact, JSON.stringify(caaNames), directory, sealedKey],
  };
}

/** Returns the statement that forgets an account which the CA refuses. The key must still be the one in it. */
export function deleteAcmeAccount({ directory, sealedKey }: AcmeAccount): Statement {
  return {
    sql: "DELETE FROM acme_accounts WHERE directory = ? AND private_key = ?",
    args: [directory, sealedKey],
  };
}

/** A published answer to a challenge. */
export interface ChallengeRecord {
  /** `_acme-challenge.<name>`. */
  name: string;
  value: string;
  publishedAt: number;
}

/** Returns the statement that publishes an answer to a challenge of a certificate's order. */
export function insertChallenge(certificateId: string, name: string, value: string, now: number): Statement {
  return {
    sql: `INSERT INTO acme_challenges (name, value, certificate_id, published_at) VALUES (?, ?, ?, ?)
          ON CONFLICT DO NOTHING`,
    args: [name, value, certificateId, now],
  };
}

/** Returns the published answers of a certificate's order. */
export async function challengesOf(db: Db, certificateId: string): Promise<ChallengeRecord[]> {
  const rows = await db.all<{ name: string; value: string; published_at: number }>(
    "SELECT name, value, published_at FROM acme_challenges WHERE certificate_id = ? ORDER BY name, value",
    [certificateId],
  );
  return rows.map(({ name, value, published_at: publishedAt }) => ({ name, value, publishedAt }));
}

/** Returns at most `limit` values that are published at a name, for the name server. */
export async function challengeValues(db: Db, name: string, limit: number): Promise<string[]> {
  const rows = await db.all<{ value: string }>(
    "SELECT value FROM acme_challenges WHERE name = ? ORDER BY published_at DESC, value LIMIT ?",
    [name, limit],
  );
  return rows.map(({ value }) => value);
}

/** Returns at most `limit` answers below a parent, with their names. */
export function allChallenges(
  db: Db,
  parent: string,
  limit: number,
): Promise<{ name: string; value: string }[]> {
  const below = `.${parent}`;
  return db.all(
    "SELECT name, value FROM acme_challenges WHERE substr(name, -length(?)) = ? ORDER BY name, value LIMIT ?",
    [below, below, limit],
  );
}

/** Returns the statement that removes the answers of an order that is over. */
export function deleteChallenges(certificateId: string): Statement {
  return { sql: "DELETE FROM acme_challenges WHERE certificate_id = ?", args: [certificateId] };
}
