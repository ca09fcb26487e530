/**
 * The tables whose changes are in the audit trail. An administrator who asks who deleted a domain would miss it. The simpler
 * way is that each flow adds its row: sixty places, of which the next is forgotten.
 *
 * A released list never changes, because it is part of a schema step. A later step drops the triggers of a table and makes
 * them from a new list.
 */

export type Verb = "create" | "update" | "delete";

/** How a column is shown. `secret`: only that it changed. `long`: its first characters. */
export type Kind = "plain" | "long" | "flag" | "json" | "time" | "secret";

/** The name of a column in the API, and how it is shown. A name alone is a plain one. */
type Field = string | [name: string, kind: Kind];

/** A table in the audit trail. SQL speaks of its row as `row`. */
export interface Audited {
  table: string;
  /** The noun of its actions, such as `domain` in `domain.create`. */
  noun: string;
  /** Columns that identify the row, and name it to people. */
  id?: string;
  name: string;
  /** SQL of the account and the project that the row belongs to. */
  account: string;
  project: string;
  fields: Readonly<Record<string, Field>>;
  /** Updates that have a name, by their condition. The first that holds counts. A busy table has no other changes. */
  named?: readonly { verb: string; when: string }[];
  /** Columns that are watched, and not shown. */
  marks?: readonly string[];
  /** Condition of a deletion that has no entry: the row was marked before, or goes with its domain. */
  goes?: string;
  /**
   * The watched verbs of a table that delivery writes to. Only the changes of keys, members and the command line count. A
   * trigger costs each update of its columns three microseconds, so for columns that delivery changes, the flow of the
   * request notes the change (`noteChange`).
   */
  busy?: readonly Verb[];
}

/** The account and the project of a row with `sender_id`. */
export const BY_PROJECT = {
  account: "(SELECT account_id FROM senders WHERE id = row.sender_id)",
  project: "row.sender_id",
};
/** Of a table whose rows are deleted with their domain. */
const DOMAIN_GONE =
  "OLD.domain_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM domains WHERE id = OLD.domain_id)";
const BY_ACCOUNT = { account: "row.account_id", project: "row.sender_id" };

/** The tables of schema step 2. */
export const AUDITED: readonly Audited[] = [
  {
    table: "accounts",
    noun: "account",
    name: "name",
    account: "row.id",
    project: "NULL",
    fields: { name: "name", owner_email: "ownerEmail" },
  },
  {
    table: "senders",
    noun: "sender",
    name: "name",
    account: "row.account_id",
    project: "row.id",
    // It is marked first, and deleted in steps.
    marks: ["deleted_at"],
    goes: "OLD.deleted_at IS NOT NULL",
    named: [
      { verb: "delete", when: "OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL" },
      { verb: "suspend", when: "OLD.suspended_at IS NULL AND NEW.suspended_at IS NOT NULL" },
      { verb: "resume", when: "OLD.suspended_at IS NOT NULL AND NEW.suspended_at IS NULL" },
    ],
    fields: {
      external_id: "externalId",
      name: "name",
      plan: "plan",
      trust_tier: "trustTier",
      daily_quota: "dailyQuota",
      track_opens: "trackOpens",
      track_clicks: ["trackClicks", "flag"],
      text_from_html: ["textFromHtml", "flag"],
      route_ids: ["routeIds", "json"],
      content_days: "contentDays",
      event_days: "eventDays",
      spam_check_fail: "spamCheckFail",
      suspended_at: ["suspendedAt", "time"],
    },
  },
  {
    table: "routes",
    noun: "route",
    name: "name",
    account: "row.account_id",
    project: "NULL",
    fields: {
      name: "name",
      kind: "kind",
      relay_host: "relayHost",
      sealed_relay_url: ["relayUrl", "secret"],
      pool: "pool",
      rate_per_second: "ratePerSecond",
      warm_up: ["warmUp", "json"],
      events_provider: "eventsProvider",
      sealed_proof: ["proof", "secret"],
    },
  },
  {
    table: "api_keys",
    noun: "api_key",
    name: "name",
    ...BY_ACCOUNT,
    named: [{ verb: "revoke", when: "OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL" }],
    fields: {
      name: "name",
      scopes: ["scopes", "json"],
      allow_recipients: ["allowRecipients", "json"],
      approval: ["approval", "flag"],
      revoked_at: ["revokedAt", "time"],
    },
  },
  {
    table: "domains",
    noun: "domain",
    name: "name",
    ...BY_ACCOUNT,
    fields: {
      name: "name",
      status: "status",
      dkim_verified: ["dkimVerified", "flag"],
      spf_verified: ["spfVerified", "flag"],
      dmarc_verified: ["dmarcVerified", "flag"],
      mx_verified: ["mxVerified", "flag"],
      return_path_verified: ["returnPathVerified", "flag"],
      links_verified: ["linksVerified", "flag"],
      route_ids: ["routeIds", "json"],
      receiving: ["receiving", "flag"],
      delegated: ["delegated", "flag"],
      served: ["served", "flag"],
      dmarc_auto: ["dmarcAuto", "flag"],
      dmarc_policy: "dmarcPolicy",
    },
  },
  {
    table: "domain_records",
    noun: "domain_record",
    name: "name",
    ...BY_PROJECT,
    goes: DOMAIN_GONE,
    fields: {
      domain_id: "domainId",
      type: "type",
      name: "name",
      value: ["value", "long"],
      ttl: "ttl",
      priority: "priority",
    },
  },
  {
    table: "dkim_keys",
    noun: "dkim_key",
    id: "token",
    name: "selector",
    // The service's own keys belong to no domain.
    account: "(SELECT account_id FROM domains WHERE id = row.domain_id)",
    project: "(SELECT sender_id FROM domains WHERE id = row.domain_id)",
    goes: DOMAIN_GONE,
    fields: { domain_id: "domainId", selector: "selector", algorithm: "algorithm", status: "status" },
  },
  {
    table: "inboxes",
    noun: "inbox",
    name: "address",
    ...BY_PROJECT,
    // An inbox with many threads is marked first, and deleted in steps.
    named: [{ verb: "delete", when: "OLD.address <> OLD.id AND NEW.address = NEW.id" }],
    goes: "OLD.address = OLD.id",
    fields: { address: "address", display_name: "displayName", type: "type" },
  },
  {
    table: "webhooks",
    noun: "webhook",
    name: "url",
    ...BY_PROJECT,
    // A webhook with a long log is marked first, and deleted in steps.
    named: [{ verb: "delete", when: "OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL" }],
    marks: ["deleted_at"],
    goes: "OLD.deleted_at IS NOT NULL",
    fields: {
      url: "url",
      enabled: ["enabled", "flag"],
      event_types: ["eventTypes", "json"],
      dialect: "dialect",
      content: ["content", "flag"],
      secret: ["secret", "secret"],
      disabled_reason: "disabledReason",
    },
  },
  {
    table: "templates",
    noun: "template",
    name: "name",
    ...BY_PROJECT,
    fields: {
      slug: "slug",
      name: "name",
      subject: ["subject", "long"],
      html: ["html", "long"],
      text: ["text", "long"],
    },
  },
  {
    table: "contacts",
    noun: "contact",
    name: "email",
    ...BY_PROJECT,
    fields: {
      email: "email",
      first_name: "firstName",
      last_name: "lastName",
      subscribed: ["subscribed", "flag"],
      metadata: ["metadata", "long"],
    },
  },
  {
    table: "suppressions",
    noun: "suppression",
    name: "email",
    ...BY_PROJECT,
    fields: {
      email: "email",
      reason: "reason",
      bounce_type: "bounceType",
      note: ["note", "long"],
      expires_at: ["expiresAt", "time"],
    },
  },
  {
    table: "erasures",
    noun: "erasure",
    name: "id",
    ...BY_ACCOUNT,
    fields: { status: "status" },
  },
  {
    table: "messages",
    noun: "email",
    name: "subject",
    ...BY_PROJECT,
    busy: ["update", "delete"],
    named: [
      { verb: "approve", when: "OLD.key_id IS NOT NEW.key_id" },
      { verb: "reschedule", when: "OLD.scheduled_at IS NOT NEW.scheduled_at" },
    ],
    fields: { key_id: "keyId", scheduled_at: ["scheduledAt", "time"] },
  },
  {
    table: "threads",
    noun: "thread",
    name: "subject",
    ...BY_PROJECT,
    busy: ["delete"],
    fields: { subject: "subject" },
  },
  {
    table: "lanes",
    noun: "lane",
    id: "name",
    name: "name",
    account: "NULL",
    project: "NULL",
    busy: ["update"],
    fields: { state: ["state", "json"] },
  },
];

/** Returns the description of a table of a list with further fields, for a step that makes its triggers again. */
export function withFields(list: readonly Audited[], table: string, fields: Audited["fields"]): Audited[] {
  return list
    .filter((one) => one.table === table)
    .map((one) => ({ ...one, fields: { ...one.fields, ...fields } }));
}
