import type { Db } from "../engine/client.ts";

/** Maximum number of policies kept. The one that expires first is deleted. */
const MAX_KEPT_POLICIES = 100_000;

/** The MTA-STS policy of a remote domain, as fetched. It is public and belongs to no project. Times in milliseconds. */
export interface StsPolicyRecord {
  /** A-labels, lower case. */
  domain: string;
  id: string;
  mode: "enforce" | "testing" | "none";
  mx: readonly string[];
  maxAgeSeconds: number;
  fetchedAt: number;
}

/** Returns the policy saved last for a domain, which may have expired; null if there is none. */
export async function findStsPolicy(db: Db, domain: string): Promise<StsPolicyRecord | null> {
  const row = await db.first<Omit<StsPolicyRecord, "mx"> & { mx: string }>(
    `SELECT domain, policy_id AS id, mode, mx, max_age_seconds AS maxAgeSeconds, fetched_at AS fetchedAt
      FROM mta_sts_policies WHERE domain = ?`,
    [domain],
  );
  return row === null ? null : { ...row, mx: row.mx === "" ? [] : row.mx.split(" ") };
}

/** Saves a policy and replaces the domain's older one. Deletes expired policies and those over the bound. */
export async function saveStsPolicy(
  db: Db,
  policy: StsPolicyRecord,
  maxKept = MAX_KEPT_POLICIES,
): Promise<void> {
  const { domain, id, mode, mx, maxAgeSeconds, fetchedAt } = policy;
  await db.write([
    {
      sql: `INSERT INTO mta_sts_policies (domain, policy_id, mode, mx, max_age_seconds, fetched_at, expires_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (domain) DO UPDATE SET policy_id = excluded.policy_id, mode = excluded.mode, mx = excluded.mx,
          max_age_seconds = excluded.max_age_seconds, fetched_at = excluded.fetched_at,
          expires_at = excluded.expires_at
        WHERE excluded.fetched_at >= mta_sts_policies.fetched_at`,
      args: [domain, id, mode, mx.join(" "), maxAgeSeconds, fetchedAt, fetchedAt + maxAgeSeconds * 1000],
    },
    { sql: "DELETE FROM mta_sts_policies WHERE expires_at <= ?", args: [fetchedAt] },
    {
      sql: `DELETE FROM mta_sts_policies WHERE domain IN
        (SELECT domain FROM mta_sts_policies ORDER BY expires_at DESC LIMIT -1 OFFSET ?)`,
      args: [maxKept],
    },
  ]);
}
