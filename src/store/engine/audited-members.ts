import { AUDITED_AUDIENCE } from "./audited-audience.ts";
import { AUDITED_NOTES } from "./audited-notes.ts";
import { AUDITED_RECEIVING } from "./audited-receiving.ts";
import { AUDITED, type Audited, BY_PROJECT } from "./audited-tables.ts";

/** The tables of schema step 3. */
export const AUDITED_MEMBERS: readonly Audited[] = [
  {
    table: "members",
    noun: "member",
    name: "email",
    account: "row.account_id",
    project: "NULL",
    fields: { email: "email", role: "role", sender_ids: ["senderIds", "json"], status: "status" },
  },
  {
    table: "member_sessions",
    noun: "session",
    name: "ip",
    account: "(SELECT account_id FROM members WHERE id = row.member_id)",
    project: "NULL",
    // A session that has expired, or goes with its member.
    goes: `OLD.expires_at <= COALESCE((SELECT at FROM audit_actor), 0)
      OR NOT EXISTS (SELECT 1 FROM members WHERE id = OLD.member_id)`,
    fields: { member_id: "memberId", ip: "ip", user_agent: ["userAgent", "long"] },
  },
];

/** The table of the step of notices. */
export const AUDITED_NOTICES: readonly Audited[] = [
  {
    table: "notice_settings",
    noun: "notice_settings",
    id: "account_id",
    name: "account_id",
    account: "row.account_id",
    project: "NULL",
    fields: { to_list: ["to", "json"], off: ["off", "json"], webhook_id: "webhookId" },
  },
];

/** The table of the step of rules. A rule goes with its inbox. */
export const AUDITED_RULES: readonly Audited[] = [
  {
    table: "rules",
    noun: "rule",
    name: "name",
    ...BY_PROJECT,
    goes: "OLD.inbox_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inboxes WHERE id = OLD.inbox_id)",
    fields: {
      inbox_id: "inboxId",
      position: "position",
      name: "name",
      enabled: ["enabled", "flag"],
      conditions: ["when", "json"],
      actions: ["then", "json"],
    },
  },
];

/** The table of the step of imports. Its rows go by themselves after some days. */
export const AUDITED_IMPORTS: readonly Audited[] = [
  {
    table: "imports",
    noun: "import",
    name: "kind",
    ...BY_PROJECT,
    busy: ["create"],
    fields: { kind: "kind" },
  },
];

/** Tables of the first step that later steps watch with further columns. */
const MADE_AGAIN: ReadonlySet<string> = new Set(
  [...AUDITED_AUDIENCE, ...AUDITED_RECEIVING].map(({ table }) => table),
);

/** The tables of all steps, as the last of them watches them. */
export const ALL_AUDITED: readonly Audited[] = [
  ...AUDITED.filter(({ table }) => !MADE_AGAIN.has(table)),
  ...AUDITED_AUDIENCE,
  ...AUDITED_RECEIVING.filter(({ table }) => table !== "inboxes"),
  ...AUDITED_NOTES,
  ...AUDITED_MEMBERS,
  ...AUDITED_NOTICES,
  ...AUDITED_RULES,
  ...AUDITED_IMPORTS,
];
