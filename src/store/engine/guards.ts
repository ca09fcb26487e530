import { ConstraintError, type Guard, type Statement } from "./client.ts";

/*
 * A guard is a condition that the whole write depends on: if it does not hold, the write is undone. SQL has no statement
 * for that, so a guard is a NULL for a column that is NOT NULL. Each reason has its own column, which the database
 * names in its error, so two guards of one write cannot be confused.
 */

/** Reasons with their own statement: columns of the table `guards`, which never gets a row. */
const OWN_COLUMNS = {
  /** The API key that makes another key has been revoked. */
  key_revoked: "guards.key_revoked",
  webhook_deleted: "guards.webhook_deleted",
  webhook_disabled: "guards.webhook_disabled",
  /** An attempt at the delivery is in progress, or its webhook is disabled. */
  delivery_not_replayable: "guards.delivery_not_replayable",
  /** The message's time has come, or it was canceled. */
  message_not_scheduled: "guards.message_not_scheduled",
  /** Rows that a chore wants to delete have changed since it read them. */
  changed_since_read: "guards.changed_since_read",
  /** The domain's last rotation of its DKIM key is not over. */
  dkim_key_pending: "guards.dkim_key_pending",
  /** A domain at, above or below the name is delegated to us. */
  delegation_overlaps: "guards.delegation_overlaps",
  /** A customer's own MX record and our own would be at one name. */
  mx_in_the_way: "guards.mx_in_the_way",
  domain_not_delegated: "guards.domain_not_delegated",
  /** The domain has no wildcard for an inbox below it. */
  not_wildcard: "guards.not_wildcard",
  /** A customer's own record and ours would be at the wildcard. */
  wildcard_in_the_way: "guards.wildcard_in_the_way",
  /** The wildcard would no longer have the names of inboxes. */
  inboxes_below: "guards.inboxes_below",
  /** The owner of a row has as many of its kind as it may have: `requireRoom`. */
  too_many_records: "guards.too_many_records",
  /** The name has as many records of the type as it may have. */
  too_many_at_name: "guards.too_many_at_name",
  /** An alias and other data would be at one name. */
  alias_not_alone: "guards.alias_not_alone",
  /** The record is there already. */
  record_exists: "guards.record_exists",
  /** The report is in the sums already. */
  report_taken: "guards.report_taken",
  /** The domain has as many reports of the day as it may have. */
  too_many_reports: "guards.too_many_reports",
  /** An address, or a project, got as many links to confirm a forward address today as it may get. */
  too_many_links: "guards.too_many_links",
  /** A dry run undoes what it has written. */
  dry_run: "guards.dry_run",
} as const;

/** Reasons inside a statement that runs for nearly every message: a second statement would double its time. */
const INNER_COLUMNS = {
  /** The project's recipients of the day are over its limit: `takeUsage`. */
  over_daily_volume: "usage.recipients",
  /** The guard of `insertMessage` does not hold. */
  message_conflict: "messages.created_at",
  inbox_deleted: "threads.inbox_id",
  /** Another request with the Idempotency-Key has been answered: `insertAnswer`. */
  key_answered: "idempotency.body_hash",
  /** A content that was written ahead has been swept: `storeContent`. */
  content_gone: "contents.refs",
  over_stored_octets: "holdings.stored_octets",
  over_templates: "holdings.templates",
  over_webhooks: "holdings.webhooks",
  over_inboxes: "holdings.inboxes",
  over_domains: "holdings.domains",
  over_api_keys: "holdings.api_keys",
  over_contacts: "holdings.contacts",
  over_suppressions: "holdings.suppressions",
  /** The values of a contact are larger than they may be: `updateContact`. */
  over_properties: "contacts.properties",
} as const;

const COLUMNS = { ...OWN_COLUMNS, ...INNER_COLUMNS };

/** Why a write was undone. */
export type GuardReason = keyof typeof COLUMNS;

/** Returns the statement that undoes its whole write if the condition does not hold. */
export function requireGuard(reason: keyof typeof OWN_COLUMNS, condition: Guard): Statement {
  return {
    sql: `INSERT INTO guards (${reason}) SELECT NULL WHERE NOT (${condition.sql})`,
    args: [...condition.args],
  };
}

/**
 * Returns the statement that undoes its write with `too_many_records` unless its owner has fewer than `most` rows.
 * @param rows SQL of the table and the condition of the owner, which has one parameter
 */
export function requireRoom(rows: string, owner: string, most: number): Statement {
  return requireGuard("too_many_records", {
    sql: `(SELECT COUNT(*) FROM ${rows}) < ?`,
    args: [owner, most],
  });
}

/** Returns true if the error of a write says that it was undone for this reason. */
export function isBroken(error: unknown, reason: GuardReason): boolean {
  return error instanceof ConstraintError && error.notNull === COLUMNS[reason];
}
