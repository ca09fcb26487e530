import { createHmac } from "node:crypto";
import type { ConfigurationQuery, Db } from "../engine/client.ts";

/** The beginning of the form that an erased address has in a list of suppressions. No address has a colon there. */
export const ERASED_PREFIX = "erased:";
/** SQL that holds for such an entry, in the order of the index: a semicolon follows the colon. */
export const IS_ERASED = "email >= 'erased:' AND email < 'erased;'";

const ERASURE_KEY: ConfigurationQuery<{ key: string }, string> = {
  sql: "SELECT a.erasure_key AS key FROM senders s JOIN accounts a ON a.id = s.account_id WHERE s.id = ?",
  read: ({ key }) => key,
};

/**
 * Returns the form of address keys that an erasure leaves in the project's suppressions: a keyed hash, by which the address
 * stays suppressed, but cannot be read.
 */
export async function erasedForms(
  db: Db,
  senderId: string,
  keys: readonly string[],
): Promise<Map<string, string>> {
  const secret = (await db.readConfig(ERASURE_KEY, [senderId])) ?? "";
  const formOf = (key: string) =>
    ERASED_PREFIX + createHmac("sha256", secret).update(key).digest("base64url");
  return new Map(keys.map((key) => [formOf(key), key]));
}

/** Returns the form of one address key. */
export async function erasedForm(db: Db, senderId: string, key: string): Promise<string> {
  const [form = ""] = (await erasedForms(db, senderId, [key])).keys();
  return form;
}
