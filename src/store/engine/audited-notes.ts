import { AUDITED_ACCEPTED } from "./audited-receiving.ts";
import { type Audited, BY_PROJECT, withFields } from "./audited-tables.ts";

/**
 * The tables of the step of notes, which makes the triggers of inboxes again. The text of notes and drafts is not in the trail,
 * because an erasure must find it. Drafts are saved while they are written, so changes of them have no entry.
 */
export const AUDITED_NOTES: readonly Audited[] = [
  {
    table: "thread_notes",
    noun: "note",
    name: "id",
    ...BY_PROJECT,
    goes: "NOT EXISTS (SELECT 1 FROM threads WHERE id = OLD.thread_id)",
    fields: { thread_id: "threadId" },
  },
  {
    table: "drafts",
    noun: "draft",
    name: "id",
    ...BY_PROJECT,
    goes: "OLD.thread_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM threads WHERE id = OLD.thread_id)",
    fields: { thread_id: "threadId" },
  },
  ...withFields(AUDITED_ACCEPTED, "inboxes", { signature: ["signature", "long"] }),
];
