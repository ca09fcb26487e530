import type { Db, Statement } from "./engine/client.ts";
import { mapping, plain, type Row } from "./columns.ts";

/** An account: the owner of projects and keys. */
export interface Account {
  id: string;
  name: string;
  ownerEmail: string;
  /** Milliseconds. */
  createdAt: number;
}

const ACCOUNTS = mapping<Account>({
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
export async function getAccount(db: Db, id: string): Promise<Account | null> {
  const row = await db.first<Row>(`SELECT ${ACCOUNTS.columns} FROM accounts WHERE id = ?`, [id]);
  return row === null ? null : ACCOUNTS.read(row);
}

/** Returns the statement that changes the address of an account's owner. */
export function updateOwnerEmail(id: string, ownerEmail: string): Statement {
  return { sql: "UPDATE accounts SET owner_email = ? WHERE id = ?", args: [ownerEmail, id] };
}

/** Returns at most `take` accounts of the installation, oldest first. */
export async function listAccounts(db: Db, take: number): Promise<Account[]> {
  const rows = await db.all<Row>(`SELECT ${ACCOUNTS.columns} FROM accounts ORDER BY id LIMIT ?`, [take]);
  return rows.map(ACCOUNTS.read);
}
