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

/** The table of the step of forward addresses. A removed one is marked, deleted later, and may be asked for again. */
export const AUDITED_FORWARDS: readonly Audited[] = [
  {
    table: "forward_addresses",
    noun: "forward_address",
    name: "email",
    ...BY_PROJECT,
    marks: ["removed_at"],
    named: [
      { verb: "delete", when: "OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL" },
      { verb: "confirm", when: "OLD.confirmed_at IS NULL AND NEW.confirmed_at IS NOT NULL" },
    ],
    goes: "OLD.removed_at IS NOT NULL",
    fields: { email: "email", confirmed_at: ["confirmedAt", "time"] },
  },
];

/** The tables of all steps of receiving. */
export const AUDITED_RECEIVING: readonly Audited[] = [
  ...AUDITED_WILDCARD,
  ...AUDITED_ACCEPTED,
  ...AUDITED_FORWARDS,
];
