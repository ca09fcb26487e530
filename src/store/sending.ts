import type { Db } from "./engine/client.ts";
import type { Sender } from "./senders.ts";
import { type Subscription, SUBSCRIPTIONS_COLUMN } from "./webhook-deliveries.ts";

// What sending and receiving ask of several tables, in one statement each.

/** What a send asks about. */
export interface SendQuestion {
  fromDomain: string;
  /** The address of the inbox that From would be. */
  inboxAddress: string;
  /** Address keys of the recipients. */
  keys: readonly string[];
  /** Whether those who have unsubscribed are asked for. */
  unsubscribeLink: boolean;
}

/** What the database says of a send before it is accepted. */
export interface SendFacts {
  /** Whether the From domain is the project's own and verified. */
  verified: boolean;
  /** The project's inbox of that address; null where there is none. */
  inboxId: string | null;
  /** Those of the address keys that the project does not send to. */
  suppressed: ReadonlySet<string>;
  /** Those of them that are unsubscribed; empty where not asked for. */
  unsubscribed: ReadonlySet<string>;
  webhooks: Subscription[];
}

interface FactsRow {
  verified: number | null;
  inbox_id: string | null;
  suppressed: string;
  unsubscribed: string | null;
  webhooks: string;
}

/**
 * In one read, since it is made for each accepted message. Domain and inbox are found by the names their unique indexes
 * begin with: a project may have thousands of each.
 */
function factsQuery(among: string): string {
  return `SELECT d.status = 'verified' AS verified,
      (SELECT i.id FROM inboxes i WHERE i.domain_id = d.id AND i.address = ?4 AND i.sender_id = ?2) AS inbox_id,
      (SELECT json_group_array(email) FROM suppressions WHERE sender_id = ?2 AND email ${among}
        AND (expires_at IS NULL OR expires_at > ?6)) AS suppressed,
      CASE WHEN ?7 THEN (SELECT json_group_array(email_key) FROM contacts WHERE sender_id = ?2 AND email_key ${among}
        AND subscribed = 0) END AS unsubscribed,
      ${SUBSCRIPTIONS_COLUMN} AS webhooks
    FROM (SELECT 1) LEFT JOIN domains d ON d.account_id = ?1 AND d.name = ?3 AND d.sender_id = ?2`;
}

/** Most mail has one recipient, which costs a third less than a list in JSON. */
const FACTS_OF_ONE = factsQuery("= ?5");
const FACTS_OF_SOME = factsQuery("IN (SELECT value FROM json_each(?5))");

/** What the database says of a send of the project at `now`, in milliseconds. */
export async function sendFacts(
  db: Db,
  { id: senderId, accountId }: Pick<Sender, "id" | "accountId">,
  { fromDomain, inboxAddress, keys, unsubscribeLink }: SendQuestion,
  now: number,
): Promise<SendFacts> {
  const [only, ...others] = keys;
  const [sql, among] =
    only !== undefined && others.length === 0 ? [FACTS_OF_ONE, only] : [FACTS_OF_SOME, JSON.stringify(keys)];
  const args = [accountId, senderId, fromDomain, inboxAddress, among, now, Number(unsubscribeLink)];
  const row = await db.first<FactsRow>(sql, args);
  return {
    verified: row?.verified === 1,
    inboxId: row?.inbox_id ?? null,
    suppressed: new Set(listIn<string>(row?.suppressed)),
    unsubscribed: new Set(listIn<string>(row?.unsubscribed)),
    webhooks: listIn<Subscription>(row?.webhooks),
  };
}

function listIn<Item>(json: string | null | undefined): Item[] {
  return json == null || json === "[]" ? [] : JSON.parse(json);
}

/** A key to sign with. `sealedPrivateKey` is opened with the installation's box key. */
export interface SigningKey {
  token: string;
  /** Milliseconds. A later key may have the token of one that has retired. */
  createdAt: number;
  selector: string;
  sealedPrivateKey: string;
}

interface KeyRow {
  token: string;
  created_at: number;
  selector: string;
  private_key: string;
}

function toSigningKey(row: KeyRow): SigningKey {
  return {
    token: row.token,
    createdAt: row.created_at,
    selector: row.selector,
    sealedPrivateKey: row.private_key,
  };
}

/** The active DKIM key of a project's domain; null where it has none. */
export async function signingKey(db: Db, senderId: string, domain: string): Promise<SigningKey | null> {
  const row = await db.first<KeyRow>(
    `SELECT k.token, k.created_at, k.selector, k.private_key FROM senders s
        JOIN domains d ON d.account_id = s.account_id AND d.sender_id = s.id AND d.name = ?
        JOIN dkim_keys k ON k.domain_id = d.id AND k.status = 'active'
      WHERE s.id = ?`,
    [domain, senderId],
  );
  return row === null ? null : toSigningKey(row);
}

/** The installation's own active DKIM key, for the onboarding domain; null before the first start is over. */
export async function installationKey(db: Db): Promise<SigningKey | null> {
  const row = await db.first<KeyRow>(
    "SELECT token, created_at, selector, private_key FROM dkim_keys WHERE domain_id IS NULL AND status = 'active'",
  );
  return row === null ? null : toSigningKey(row);
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

interface InboxRow {
  id: string;
  sender_id: string;
  address: string;
  display_name: string;
}

function toInboxRef(row: InboxRow): InboxRef {
  return { id: row.id, senderId: row.sender_id, address: row.address, displayName: row.display_name };
}

/** The project's inbox of exactly that address key; null where it has none. */
export async function ownInbox(db: Db, senderId: string, addressKey: string): Promise<InboxRef | null> {
  const row = await db.first<InboxRow>(
    `SELECT i.id, i.sender_id, i.address, i.display_name FROM senders s
        JOIN domains d ON d.account_id = s.account_id AND d.sender_id = s.id AND d.name = ?
        JOIN inboxes i ON i.domain_id = d.id AND i.sender_id = s.id AND i.address = ?
      WHERE s.id = ?`,
    [addressKey.slice(addressKey.lastIndexOf("@") + 1), addressKey, senderId],
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
  const row = await db.first<{ [Column in keyof InboxRow]: InboxRow[Column] | null }>(
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
