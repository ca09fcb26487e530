import type { Db } from "./engine/client.ts";

/** The operator's project: the oldest of the oldest account; null before the first start is over. */
export async function operatorProject(db: Db): Promise<string | null> {
  const row = await db.first<{ id: string }>(
    "SELECT id FROM senders WHERE account_id = (SELECT id FROM accounts ORDER BY id LIMIT 1) ORDER BY id LIMIT 1",
  );
  return row?.id ?? null;
}

/** The project that receives mail for a domain; null where none does. */
export async function receivingProject(db: Db, domain: string): Promise<string | null> {
  const row = await db.first<{ sender_id: string }>(
    "SELECT sender_id FROM domains WHERE name = ? AND receiving = 1",
    [domain],
  );
  return row?.sender_id ?? null;
}
