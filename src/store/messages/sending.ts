import { catchAllOf } from "../../core/addresses.ts";
import { outsideTopic } from "../audience/topics.ts";
import { findContacts } from "../projects/contacts.ts";
import type { Accept } from "../../core/messages/listed-sender.ts";
import { erasedForms, IS_ERASED } from "../projects/erased-addresses.ts";
import { unsubscribedAmong } from "../projects/erased-unsubscriptions.ts";
import type { ConfigurationQuery, Db } from "../engine/client.ts";
import type { Domain } from "../domains/domains.ts";
import { domainOfName, wildcardReceiving } from "../domains/wildcards.ts";
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
  /** The topic that recipients must get. */
  topicId?: string | null;
}

/** The facts about a send before it is accepted. */
export interface SendFacts {
  /** True if the From domain is the project's own and verified. */
  verified: boolean;
  /** Id of that domain if it has its own routes; null otherwise. */
  routedBy: string | null;
  /** The project's inbox that takes mail to that address, which may be a catch-all; null if there is none. */
  inbox: { id: string; address: string } | null;
  /** Those of the address keys that are on the project's block list. */
  suppressed: ReadonlySet<string>;
  /** Those of them that are unsubscribed or do not get the topic; empty if the question leaves them out. */
  unsubscribed: ReadonlySet<string>;
  webhooks: readonly Subscription[];
}

/** The facts that come from configuration. */
type SenderFacts = Pick<SendFacts, "verified" | "routedBy" | "inbox" | "webhooks">;

/**
 * Domain and inbox are found by the leading columns of their unique indexes, because a project may have thousands.
 * Parameters: account, project, From domain, address of the inbox, address of the catch-all.
 */
const SENDER_FACTS: ConfigurationQuery<
  { verified: number | null; routed_by: string | null; inbox: string | null; webhooks: string },
  SenderFacts
> = {
  sql: `SELECT d.status = 'verified' AS verified, CASE WHEN d.route_ids <> '[]' THEN d.id END AS routed_by,
      (SELECT json_object('id', i.id, 'address', i.address) FROM inboxes i
        WHERE i.domain_id = d.id AND i.address IN (?4, ?5) AND i.sender_id = ?2 ORDER BY i.address = ?5 LIMIT 1) AS inbox,
      ${SUBSCRIPTIONS_COLUMN} AS webhooks
    FROM (SELECT 1) LEFT JOIN domains d ON d.id = ${domainOfName({ account: "?1", project: "?2", name: "?3" })}`,
  read: ({ verified, routed_by, inbox, webhooks }) => ({
    verified: verified === 1,
    routedBy: routed_by,
    inbox: inbox === null ? null : JSON.parse(inbox),
    webhooks: listIn<Subscription>(webhooks),
  }),
};
const NO_SENDER_FACTS: SenderFacts = { verified: false, routedBy: null, inbox: null, webhooks: [] };

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
        OR (?4 AND EXISTS (SELECT 1 FROM erased_unsubscriptions WHERE sender_id = ?1)) AS hasErased,
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
  { fromDomain, inboxAddress, keys, unsubscribeLink, topicId = null }: SendQuestion,
  now: number,
): Promise<SendFacts> {
  const [only, ...others] = keys;
  const [sql, among] =
    only !== undefined && others.length === 0
      ? [REFUSALS_OF_ONE, only]
      : [REFUSALS_OF_SOME, JSON.stringify(keys)];
  const [sender, refusals, outside] = await Promise.all([
    db.readConfig(SENDER_FACTS, [accountId, senderId, fromDomain, inboxAddress, catchAllOf(inboxAddress)]),
    db.first<RefusalsRow>(sql, [senderId, among, now, Number(unsubscribeLink)]),
    topicId === null ? [] : outsideTopic(db, senderId, topicId, keys),
  ]);
  // Few projects have any, and the forms of the recipients take a twentieth of a send.
  const erased =
    refusals?.hasErased === 1 ? await erasedAmong(db, senderId, { keys, unsubscribeLink }, now) : NONE_ERASED;
  return {
    ...(sender ?? NO_SENDER_FACTS),
    suppressed: new Set([...listIn<string>(refusals?.suppressed), ...erased.suppressed]),
    unsubscribed: new Set([...listIn<string>(refusals?.unsubscribed), ...outside, ...erased.unsubscribed]),
  };
}

/** The address keys that are refused in the form of an erased address. */
interface ErasedRefusals {
  suppressed: readonly string[];
  /** Without those that are subscribed again; empty if the question leaves them out. */
  unsubscribed: readonly string[];
}
const NONE_ERASED: ErasedRefusals = { suppressed: [], unsubscribed: [] };

async function erasedAmong(
  db: Db,
  senderId: string,
  { keys, unsubscribeLink }: Pick<SendQuestion, "keys" | "unsubscribeLink">,
  now: number,
): Promise<ErasedRefusals> {
  const forms = await erasedForms(db, senderId, keys);
  const rows = await db.all<{ form: string }>(
    `SELECT email AS form FROM suppressions WHERE sender_id = ? AND email IN (SELECT value FROM json_each(?))
      AND ${inForce("?")}`,
    [senderId, JSON.stringify([...forms.keys()]), now],
  );
  const unsubscribed = unsubscribeLink ? await unsubscribedAmong(db, senderId, forms) : new Set<string>();
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
  accept: Accept;
}

const INBOX_COLUMNS = "i.id, i.sender_id AS senderId, i.address, i.display_name AS displayName, i.accept";

/** Returns the project's inbox that takes mail to an address key, which may be a catch-all; null if it has none. */
export function ownInbox(db: Db, senderId: string, addressKey: string): Promise<InboxRef | null> {
  return db.first<InboxRef>(
    `SELECT ${INBOX_COLUMNS} FROM senders s
        JOIN domains d ON d.id = ${domainOfName({ account: "s.account_id", project: "s.id", name: "?1" })}
        JOIN inboxes i ON i.domain_id = d.id AND i.sender_id = s.id AND i.address IN (?2, ?3)
      WHERE s.id = ?4 ORDER BY i.address = ?3 LIMIT 1`,
    [addressKey.slice(addressKey.lastIndexOf("@") + 1), addressKey, catchAllOf(addressKey), senderId],
  );
}

/** A domain that receives, and its project. */
export type ReceivingDomain = Pick<Domain, "id" | "senderId">;

/** Parameters: domain. */
const RECEIVING_DOMAIN: ConfigurationQuery<ReceivingDomain, ReceivingDomain> = {
  sql: "SELECT id, sender_id AS senderId FROM domains WHERE name = ? AND receiving = 1",
  read: (domain) => domain,
};

/**
 * Returns the domain, of any project, that receives for a name; null if none does. A name that only a wildcard has is not cached,
 * so a flood to invented names displaces no answers.
 */
export async function receivingDomain(db: Db, name: string): Promise<ReceivingDomain | null> {
  return (await db.readConfig(RECEIVING_DOMAIN, [name])) ?? wildcardReceiving(db, name);
}

/** Parameters: id of the domain, address of the inbox. */
const INBOX_AT: ConfigurationQuery<InboxRef, InboxRef> = {
  sql: `SELECT ${INBOX_COLUMNS} FROM inboxes i WHERE i.domain_id = ? AND i.address = ?`,
  read: (inbox) => inbox,
};

/**
 * Returns the inbox of a domain with exactly that address key; null if it has none. An address without an inbox is not cached,
 * so a flood to invented addresses displaces no answers.
 */
export function inboxAt(db: Db, domainId: string, addressKey: string): Promise<InboxRef | null> {
  return db.readConfig(INBOX_AT, [domainId, addressKey]);
}
