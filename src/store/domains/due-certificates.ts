import { type CertificateRecord, findCertificate } from "./certificates.ts";
import { HAS_HOSTS } from "./domain-certificates.ts";
import type { Db } from "../engine/client.ts";

/** The limit of new orders for domains, which all processes share. Times in milliseconds. */
export interface OrderLimit {
  /** Orders that were begun after it count. */
  since: number;
  orders: number;
}

/** Which certificates are due, and the claim on one. */
export interface DueCertificates {
  /** Ids of the service's own certificates that are still wanted. */
  ids: readonly string[];
  /** The limit of new orders for domains; null if none of their certificates is worked on. */
  domains: OrderLimit | null;
  now: number;
  leaseUntil: number;
  /** No certificate waits longer than until then, unless the clock has been set back since; so it is due. */
  farthest: number;
}

/**
 * One certificate that is due. Our own come first, then pending orders, then domains of the project with the fewest
 * recent orders. A project may begin as many as it leaves to all other projects. A domain whose hosts lead
 * elsewhere could prove nothing.
 */
const DUE = `WITH recent AS (SELECT sender_id, COUNT(*) AS orders FROM domain_orders
    WHERE begun_at > ?1 AND begun_at <= ?2 GROUP BY sender_id)
  SELECT c.id, c.due_at FROM certificates c
    LEFT JOIN domains d ON d.id = c.domain_id
    LEFT JOIN recent r ON r.sender_id = d.sender_id
  WHERE (c.due_at <= ?2 OR c.due_at > ?3)
    AND (c.id IN (SELECT value FROM json_each(?4))
      OR (${HAS_HOSTS} AND ?5 > 0
        AND (c.order_url IS NOT NULL
          OR (c.chain IS NOT NULL AND (c.renew_at IS NULL OR c.renew_at > ?2))
          OR COALESCE(r.orders, 0) + (SELECT COALESCE(SUM(orders), 0) FROM recent) < ?5)))
  ORDER BY c.domain_id IS NOT NULL, c.order_url IS NULL, COALESCE(r.orders, 0), c.due_at, c.id LIMIT 1`;

/**
 * Claims a certificate that is due, by moving it to `leaseUntil`; null if none is. No other process gets it until then, and a
 * crash only delays it.
 */
export async function claimDueCertificate(
  db: Db,
  { ids, domains, now, leaseUntil, farthest }: DueCertificates,
): Promise<CertificateRecord | null> {
  // Most of the time nothing is due, and a read needs no commit.
  const due = await db.first<{ id: string; due_at: number }>(DUE, [
    domains?.since ?? now,
    now,
    farthest,
    JSON.stringify(ids),
    domains?.orders ?? 0,
  ]);
  if (due === null) return null;
  const [written] = await db.write([
    {
      sql: "UPDATE certificates SET due_at = ? WHERE id = ? AND due_at = ?",
      args: [leaseUntil, due.id, due.due_at],
    },
  ]);
  return written?.changes === 1 ? findCertificate(db, due.id) : null;
}
