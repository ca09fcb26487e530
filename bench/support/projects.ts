import type { Statement } from "../../src/store/engine/client.ts";

/** Returns the statement that makes the account "acc". */
export function accountRow(): Statement {
  return {
    sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'a@a.example', 0)",
    args: [],
  };
}

/** Returns the statement that makes a project of an account. */
export function projectRow(accountId: string, id: string): Statement {
  return {
    sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
      VALUES (?, ?, ?, 'p', 'unlimited', 'unlimited', 0)`,
    args: [id, accountId, id],
  };
}
