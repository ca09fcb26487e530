import { AUDITED, type Audited } from "./audited-tables.ts";

/** Returns a table of the first step with further fields. */
function withFields(table: string, fields: Audited["fields"]): Audited[] {
  return AUDITED.filter((one) => one.table === table).map((one) => ({
    ...one,
    fields: { ...one.fields, ...fields },
  }));
}

/** The table of the step of wildcards, which makes the triggers of domains again. */
export const AUDITED_WILDCARD: readonly Audited[] = withFields("domains", { wildcard: ["wildcard", "flag"] });

/** The tables of the step of accepted senders, which makes the triggers of inboxes and keys again. A listed sender goes with its inbox. */
export const AUDITED_ACCEPTED: readonly Audited[] = [
  ...withFields("inboxes", { accept: "accept" }),
  ...withFields("api_keys", { inbox_ids: ["inboxIds", "json"] }),
  {
    table: "listed_senders",
    noun: "listed_sender",
    name: "pattern",
    account: "(SELECT account_id FROM senders WHERE id = row.sender_id)",
    project: "row.sender_id",
    goes: "OLD.inbox_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inboxes WHERE id = OLD.inbox_id)",
    fields: { inbox_id: "inboxId", pattern: "pattern", list: "list" },
  },
];

/** The tables of all steps of receiving. */
export const AUDITED_RECEIVING: readonly Audited[] = [...AUDITED_WILDCARD, ...AUDITED_ACCEPTED];
