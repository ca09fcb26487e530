import { findContacts } from "../projects/contacts.ts";
import { erasedForms, IS_ERASED } from "../projects/erased-addresses.ts";
import { unsubscribedBeforeErasure } from "../projects/erased-unsubscriptions.ts";
import type { ConfigurationQuery, Db } from "../engine/client.ts";
import { IN_ORDER_OF_SIGNATURES } from "../domains/dkim-keys.ts";
import type { Project } from "../projects/projects.ts";
import { inForce } from "../projects/suppressions.ts";
import { type Subscription, SUBSCRIPTIONS_COLUMN } from "../webhooks/webhook-deliveries.ts";

// Queries of sending and receiving that read several tables at once.

export interface SendQuestion {
  fromDomain: string;
  /** The address of the inbox that From may be. */
  inboxAddress: string;
  /** Address keys of the recipients. */
  keys: readonly string[];
  /** True if unsubscribed recipients matter. */
  unsubscribeLink: boolean;
}

/** The facts about a send before it is accepted. */
export interface SendFacts {
  /** True if the From domain is the project's own and verified. */
  verified: boolean;
  /** Id of that domain if it has its own routes; null otherwise. */
  routedBy: string | null;
  /** The project's inbox with that address; null if there is none. */
  inboxId: string | null;
  /** Those of the address keys that are on the project's block list. */
  suppressed: ReadonlySet<string>;
  /** Those of them that are unsubscribed; empty if the question leaves them out. */
  unsubscribed: ReadonlySet<string>;
  webhooks: readonly Subscription[];
}

/** The facts that come from configuration. */
type SenderFacts = Pick<SendFacts, "verified" | "routedBy" | "inboxId" | "webhooks">;

/**
 * Domain and inbox are found by the leading columns of their unique indexes, because a project may have thousands.
 * Parameters: account, project, From domain, inbox address.
 */
const SENDER_FACTS: ConfigurationQuery<
  { verified: number | null; routed_by: string | null; inbox_id: string | null; webhooks: string },
  SenderFacts
> = {
  sql: `SELECT d.status = 'verified' AS verified, CASE WHEN d.route_ids <> '[]' THEN d.id END AS routed_by,
      (SELECT i.id FROM inboxes i WHERE i.domain_id = d.id AND i.address = ?4 AND i.sender_id = ?2) AS inbox_id,
      ${SUBSCRIPTIONS_COLUMN} AS webhooks
    FROM (SELECT 1) LEFT JOIN domains d ON d.account_id = ?1 AND d.name = ?3 AND d.sender_id = ?2`,
  read: ({ verified, routed_by, inbox_id, webhooks }) => ({
    verified: verified === 1,
    routedBy: routed_by,
    inboxId: inbox_id,
    webhooks: listIn<Subscription>(webhooks),
  }),
};
const NO_SENDER_FACTS: SenderFacts = { verified: false, routedBy: null, inboxId: null, webhooks: [] };

interface RefusalsRow {
  suppressed: string;
  /** 1 if the project refuses an address that was erased. */
  hasErased: number;
  unsubscribed: string | null;
}

/** Parameters: project, address keys, now, 1 if unsubscribed recipients matter. */
function refusalsQuery(among: string): string {
  return `SELECT (SELECT json_group_array(email) FROM suppressions WHERE sender_id = ?1 AND email ${among}
        AND ${inForce("?3")}) AS suppressed,
      EXISTS (SELECT 1 FROM suppressions WHERE sender_id = ?1 AND ${IS_ERASED})
        OR EXISTS (SELECT 1 FROM erased_unsubscriptions WHERE sender_id = ?1) AS hasErased,
      CASE WHEN ?4 THEN (SELECT json_group_array(email_key) FROM contacts WHERE sender_id = ?1 AND email_key ${among}
        AND subscribed = 0) END AS unsubscribed`;
}

/** A message usually has one recipient. Its query costs a third less than one with a list in JSON. */
const REFUSALS_OF_ONE = refusalsQuery("= ?2");
const REFUSALS_OF_SOME = refusalsQuery("IN (SELECT value FROM json_each(?2))");

/** Returns the facts about a send of the project at `now`, in milliseconds. */
export async function sendFacts(
  db: Db,
  { id: senderId, accountId }: Pick<Project, "id" | "accountId">,
  { fromDomain, inboxAddress, keys, unsubscribeLink }: SendQuestion,
  now: number,
): Promise<SendFacts> {
  const [only, ...others] = keys;
  const [sql, among] =
    only !== undefined && others.length === 0
      ? [REFUSALS_OF_ONE, only]
      : [REFUSALS_OF_SOME, JSON.stringify(keys)];
  const [sender, refusals] = await Promise.all([
    db.readConfig(SENDER_FACTS, [accountId, senderId, fromDomain, inboxAddress]),
    db.first<RefusalsRow>(sql, [senderId, among, now, Number(unsubscribeLink)]),
  ]);
  // Few projects have any, and the forms of the recipients take a twentieth of a send.
  const erased = refusals?.hasErased === 1 ? await erasedAmong(db, senderId, keys, now) : NONE_ERASED;
  return {
    ...(sender ?? NO_SENDER_FACTS),
    suppressed: new Set([...listIn<string>(refusals?.suppressed), ...erased.suppressed]),
    unsubscribed: new Set([
      ...listIn<string>(refusals?.unsubscribed),
      ...(unsubscribeLink ? erased.unsubscribed : []),
    ]),
  };
}

/** The address keys that are refused in the form of an erased address. */
interface ErasedRefusals {
  suppressed: readonly string[];
  /** Without those that are subscribed again. */
  unsubscribed: readonly string[];
}
const NONE_ERASED: ErasedRefusals = { suppressed: [], unsubscribed: [] };

async function erasedAmong(
  db: Db,
  senderId: string,
  keys: readonly string[],
  now: number,
): Promise<ErasedRefusals> {
  const forms = await erasedForms(db, senderId, keys);
  const rows = await db.all<{ form: string }>(
    `SELECT email AS form FROM suppressions WHERE sender_id = ? AND email IN (SELECT value FROM json_each(?))
      AND ${inForce("?")}`,
    [senderId, JSON.stringify([...forms.keys()]), now],
  );
  const unsubscribed = await unsubscribedBeforeErasure(db, senderId, keys);
  const again = unsubscribed.size === 0 ? null : await findContacts(db, senderId, [...unsubscribed]);
  return {
    suppressed: rows.flatMap(({ form }) => forms.get(form) ?? []),
    unsubscribed: [...unsubscribed].filter((key) => again?.get(key)?.subscribed !== true),
  };
}

function listIn<Item>(json: string | null | undefined): Item[] {
  return json == null || json === "[]" ? [] : JSON.parse(json);
}

/** A key to sign with. The installation's master key opens `sealedPrivateKey`. */
export interface SigningKey {
  token: string;
  /** Milliseconds. A later key may reuse the token of a retired one. */
  createdAt: number;
  selector: string;
  sealedPrivateKey: string;
}

const KEY_COLUMNS = "k.token, k.created_at AS createdAt, k.selector, k.private_key AS sealedPrivateKey";

/** Parameters: From domain, project. */
const SIGNING_KEYS: ConfigurationQuery<{ keys: string }, readonly SigningKey[]> = {
  sql: `SELECT json_group_array(json_object('token', token, 'createdAt', createdAt, 'selector', selector,
      'sealedPrivateKey', sealedPrivateKey)) AS keys
    FROM (SELECT ${KEY_COLUMNS} FROM senders s
        JOIN domains d ON d.account_id = s.account_id AND d.sender_id = s.id AND d.name = ?
        JOIN dkim_keys k ON k.domain_id = d.id AND k.status = 'active'
      WHERE s.id = ? ORDER BY ${IN_ORDER_OF_SIGNATURES})`,
  read: ({ keys }) => listIn<SigningKey>(keys),
};

/** Returns the active DKIM keys of a project's domain in the order of their signatures. */
export async function signingKeys(db: Db, senderId: string, domain: string): Promise<readonly SigningKey[]> {
  return (await db.readConfig(SIGNING_KEYS, [domain, senderId])) ?? [];
}

const INSTALLATION_KEY: ConfigurationQuery<SigningKey, SigningKey> = {
  sql: `SELECT ${KEY_COLUMNS} FROM dkim_keys k WHERE k.domain_id IS NULL AND k.status = 'active'`,
  read: (key) => key,
};

/** Returns the installation's own active DKIM key, for the onboarding domain; null before the first start is over. */
export function installationKey(db: Db): Promise<SigningKey | null> {
  return db.readConfig(INSTALLATION_KEY, []);
}

const OWNER_EMAIL: ConfigurationQuery<{ owner_email: string }, string> = {
  sql: "SELECT owner_email FROM accounts WHERE id = ?",
  read: ({ owner_email }) => owner_email,
};

/** Returns the email address of the account's owner: the one real recipient of test mode. */
export function ownerEmail(db: Db, accountId: string): Promise<string | null> {
  return db.readConfig(OWNER_EMAIL, [accountId]);
}

/** An inbox as routes and threads need it. */
export interface InboxRef {
  id: string;
  senderId: string;
  address: string;
  displayName: string;
}

const INBOX_COLUMNS = "i.id, i.sender_id AS senderId, i.address, i.display_name AS displayName";

/** Returns the project's inbox with exactly that address key; null if it has none. */
export function ownInbox(db: Db, senderId: string, addressKey: string): Promise<InboxRef | null> {
  return db.first<InboxRef>(
    `SELECT ${INBOX_COLUMNS} FROM senders s
        JOIN domains d ON d.account_id = s.account_id AND d.sender_id = s.id AND d.name = ?
        JOIN inboxes i ON i.domain_id = d.id AND i.sender_id = s.id AND i.address = ?
      WHERE s.id = ?`,
    [addressKey.slice(addressKey.lastIndexOf("@") + 1), addressKey, senderId],
  );
}

/** The route of mail to an address: whether the domain receives, and the inbox of the address. */
export interface InboundRoute {
  receiving: boolean;
  inbox: InboxRef | null;
}

/** Parameters: inbox address, domain. */
const INBOUND_ROUTE: ConfigurationQuery<InboxRef | { id: null }, InboundRoute> = {
  sql: `SELECT ${INBOX_COLUMNS} FROM domains d
    LEFT JOIN inboxes i ON i.domain_id = d.id AND i.address = ?
    WHERE d.name = ? AND d.receiving = 1`,
  read: (row) => ({ receiving: true, inbox: row.id === null ? null : row }),
};
const NO_ROUTE: InboundRoute = { receiving: false, inbox: null };

/** Returns the route of mail to `addressKey` at `domain`, in any project. */
export async function inboundRoute(db: Db, domain: string, addressKey: string): Promise<InboundRoute> {
  return (await db.readConfig(INBOUND_ROUTE, [addressKey, domain])) ?? NO_ROUTE;
}
