import { AUDITED, type Audited } from "./audited-tables.ts";

const PROJECT = {
  account: "(SELECT account_id FROM senders WHERE id = row.sender_id)",
  project: "row.sender_id",
};

/** Tables whose triggers the step of the mailbox makes again, with the columns that it adds to them. */
export const AUDITED_AGAIN: readonly Audited[] = AUDITED.filter(({ table }) => table === "inboxes").map(
  (inboxes) => ({
    ...inboxes,
    fields: {
      ...inboxes.fields,
      signature_text: ["signatureText", "long"],
      signature_html: ["signatureHtml", "long"],
    },
  }),
);

/** The new tables of the step of the mailbox. What people write in them is not in the trail. */
export const AUDITED_MAILBOX: readonly Audited[] = [
  {
    table: "thread_notes",
    noun: "note",
    name: "id",
    ...PROJECT,
    goes: "NOT EXISTS (SELECT 1 FROM threads WHERE id = OLD.thread_id)",
    marks: ["text"],
    fields: { thread_id: "threadId" },
  },
  {
    table: "drafts",
    noun: "draft",
    name: "subject",
    ...PROJECT,
    named: [{ verb: "send", when: "OLD.message_id IS NULL AND NEW.message_id IS NOT NULL" }],
    // It goes with its message or its thread.
    goes: `OLD.message_id IS NOT NULL
      OR OLD.thread_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM threads WHERE id = OLD.thread_id)`,
    marks: ["item", "to_list"],
    fields: { thread_id: "threadId", subject: ["subject", "long"], message_id: "messageId" },
  },
];
