import { AUDITED, type Audited, BY_PROJECT, withFields } from "./audited-tables.ts";

/** The table of the step of wildcards, which makes the triggers of domains again. */
export const AUDITED_WILDCARD: readonly Audited[] = withFields(AUDITED, "domains", {
  wildcard: ["wildcard", "flag"],
});

/** The tables of the step of accepted senders, which makes the triggers of inboxes and keys again. A listed sender goes with its inbox. */
export const AUDITED_ACCEPTED: readonly Audited[] = [
  ...withFields(AUDITED, "inboxes", { accept: "accept" }),
  ...withFields(AUDITED, "api_keys", { inbox_ids: ["inboxIds", "json"] }),
  {
    table: "listed_senders",
    noun: "listed_sender",
    name: "pattern",
    ...BY_PROJECT,
    goes: "OLD.inbox_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inboxes WHERE id = OLD.inbox_id)",
    fields: { inbox_id: "inboxId", pattern: "pattern", list: "list" },
  },
];

/** The tables of all steps of receiving. */
export const AUDITED_RECEIVING: readonly Audited[] = [...AUDITED_WILDCARD, ...AUDITED_ACCEPTED];
