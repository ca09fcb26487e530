import type { Db, Statement } from "./engine/client.ts";

/** An account: the owner of projects and keys. */
export interface Account {
  id: string;
  name: string;
  ownerEmail: string;
  /** Milliseconds. */
  createdAt: number;
}

/** Whether the database has an account: whether its first start is over. */
export async function hasAccount(db: Db): Promise<boolean> {
  return (await db.first<{ id: string }>("SELECT id FROM accounts LIMIT 1")) !== null;
}

/** The statement that makes the first account; it changes nothing where there is one. */
export function insertFirstAccount(account: Account): Statement {
  return {
    sql: `INSERT INTO accounts (id, name, owner_email, created_at)
          SELECT ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM accounts)`,
    args: [account.id, account.name, account.ownerEmail, account.createdAt],
  };
}

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
