import type { Db, Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";

/** An account: the owner of projects and keys. */
export interface Account {
  id: string;
  name: string;
  ownerEmail: string;
  /** Milliseconds. */
  createdAt: number;
}

const ACCOUNTS = table<Account>("accounts", {
  id: plain("id"),
  name: plain("name"),
  ownerEmail: plain("owner_email"),
  createdAt: plain("created_at"),
});

/** Returns true if the database has an account, which means that its first start is over. */
export async function hasAccount(db: Db): Promise<boolean> {
  return (await db.first<{ id: string }>("SELECT id FROM accounts LIMIT 1")) !== null;
}

/** Returns the statement that makes the first account. It changes nothing if there is one. */
export function insertFirstAccount(account: Account): Statement {
  return {
    sql: `INSERT INTO accounts (${ACCOUNTS.columns})
          SELECT ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM accounts)`,
    args: ACCOUNTS.values(account),
  };
}

/** Returns an account; null if no account has that id. */
export function getAccount(db: Db, id: string): Promise<Account | null> {
  return ACCOUNTS.first(db, "WHERE id = ?", [id]);
}

/** Returns the statement that changes the address of an account's owner. */
export function updateOwnerEmail(id: string, ownerEmail: string): Statement {
  return { sql: "UPDATE accounts SET owner_email = ? WHERE id = ?", args: [ownerEmail, id] };
}

/** Returns at most `take` accounts of the installation, oldest first. */
export function listAccounts(db: Db, take: number): Promise<Account[]> {
  return ACCOUNTS.all(db, "ORDER BY id LIMIT ?", [take]);
}
