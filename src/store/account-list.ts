import type { Account } from "./accounts.ts";
import type { Db } from "./client.ts";

interface AccountRow {
  id: string;
  name: string;
  owner_email: string;
  created_at: number;
}

/** Accounts of the installation, oldest first, at most `take`. */
export async function listAccounts(db: Db, take: number): Promise<Account[]> {
  const rows = await db.all<AccountRow>(
    "SELECT id, name, owner_email, created_at FROM accounts ORDER BY id LIMIT ?",
    [take],
  );
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    ownerEmail: row.owner_email,
    createdAt: row.created_at,
  }));
}
