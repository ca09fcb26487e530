import type { Db } from "./client.ts";

/** What the send pipeline asks of other resources' tables, in one statement each. */

/** Whether the project may send from that domain: it is its own and verified. */
export async function isVerifiedDomain(db: Db, senderId: string, domain: string): Promise<boolean> {
  const row = await db.first<{ id: string }>(
    "SELECT id FROM domains WHERE sender_id = ? AND name = ? AND status = 'verified'",
    [senderId, domain],
  );
  return row !== null;
}

/** A key to sign with. `sealedPrivateKey` is opened with the installation's box key. */
export interface SigningKey {
  token: string;
  selector: string;
  sealedPrivateKey: string;
}

/** The active DKIM key of a project's domain; null where it has none. */
export async function signingKey(db: Db, senderId: string, domain: string): Promise<SigningKey | null> {
  const row = await db.first<{ token: string; selector: string; private_key: string }>(
    `SELECT k.token, k.selector, k.private_key FROM dkim_keys k JOIN domains d ON d.id = k.domain_id
      WHERE d.sender_id = ? AND d.name = ? AND k.status = 'active'`,
    [senderId, domain],
  );
  return row === null
    ? null
    : { token: row.token, selector: row.selector, sealedPrivateKey: row.private_key };
}

/** The installation's own active DKIM key, for the onboarding domain. */
export async function installationKey(db: Db): Promise<SigningKey | null> {
  const row = await db.first<{ token: string; selector: string; private_key: string }>(
    "SELECT token, selector, private_key FROM dkim_keys WHERE domain_id IS NULL AND status = 'active'",
  );
  return row === null
    ? null
    : { token: row.token, selector: row.selector, sealedPrivateKey: row.private_key };
}

/** The email address of the account's owner: the one real recipient of test mode. */
export async function ownerEmail(db: Db, accountId: string): Promise<string | null> {
  const row = await db.first<{ owner_email: string }>("SELECT owner_email FROM accounts WHERE id = ?", [
    accountId,
  ]);
  return row?.owner_email ?? null;
}

/** An inbox as routes and threads need it. */
export interface InboxRef {
  id: string;
  senderId: string;
  address: string;
  displayName: string;
}

/** The project's inbox of exactly that address key; null where it has none. */
export async function ownInbox(db: Db, senderId: string, addressKey: string): Promise<InboxRef | null> {
  const row = await db.first<{ id: string; sender_id: string; address: string; display_name: string }>(
    "SELECT id, sender_id, address, display_name FROM inboxes WHERE address = ? AND sender_id = ?",
    [addressKey, senderId],
  );
  return row === null ? null : toInboxRef(row);
}

/** Where mail to a domain and inbox may go: whether the domain receives, and the inbox behind the address. */
export interface InboundRoute {
  receiving: boolean;
  inbox: InboxRef | null;
}

/** The route of mail to `addressKey` at `domain`, of whichever project receives for it. */
export async function inboundRoute(db: Db, domain: string, addressKey: string): Promise<InboundRoute> {
  const row = await db.first<{
    id: string | null;
    sender_id: string | null;
    address: string | null;
    display_name: string | null;
  }>(
    `SELECT i.id, i.sender_id, i.address, i.display_name FROM domains d
      LEFT JOIN inboxes i ON i.domain_id = d.id AND i.address = ?
      WHERE d.name = ? AND d.receiving = 1`,
    [addressKey, domain],
  );
  if (row === null) return { receiving: false, inbox: null };
  const { id, sender_id, address, display_name } = row;
  if (id === null || sender_id === null || address === null || display_name === null)
    return { receiving: true, inbox: null };
  return { receiving: true, inbox: toInboxRef({ id, sender_id, address, display_name }) };
}

function toInboxRef(row: { id: string; sender_id: string; address: string; display_name: string }): InboxRef {
  return { id: row.id, senderId: row.sender_id, address: row.address, displayName: row.display_name };
}
