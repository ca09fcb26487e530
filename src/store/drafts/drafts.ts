import type { Author } from "../../core/threads/author.ts";
import { entriesOf } from "../../core/messages/address-input.ts";
import { idCeiling } from "../../core/ids.ts";
import type { DraftItem } from "../../core/threads/draft.ts";
import { changesRow, type Db, type Guard, type Statement, type Value } from "../engine/client.ts";
import { json, plain, table } from "../engine/columns.ts";
import { requireGuard, requireRoom } from "../engine/guards.ts";
import { logDraft } from "../events/event-log.ts";
import { allOf, type Condition } from "../matching/substring.ts";
import { changeResult, type ChangeLimit } from "../projects/holdings.ts";

/** Maximum number of drafts of a project. */
export const MAX_DRAFTS = 500;
/** Characters of the text that a list shows. */
const PREVIEW_CHARS = 200;

/** A message that waits until a person sends it. Times in milliseconds. */
export interface Draft {
  id: string;
  senderId: string;
  /** The thread that it answers; null: it begins one. */
  threadId: string | null;
  author: Author;
  item: DraftItem;
  /** Counts the changes. */
  version: number;
  createdAt: number;
  updatedAt: number;
}

const DRAFTS = table<Draft>("drafts", {
  id: plain("id"),
  senderId: plain("sender_id"),
  threadId: plain("thread_id"),
  author: json("author"),
  item: json("item"),
  version: plain("version"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

/** A draft in a list, without its bodies and files. */
export type DraftSummary = Omit<Draft, "item" | "senderId"> & {
  to: string[];
  subject: string;
  preview: string;
};

/** Returns the statements that store a draft. They undo their write with the guard `too_many_records`. */
export function insertDraft(draft: Draft): Statement[] {
  return [
    requireRoom("drafts WHERE sender_id = ?", draft.senderId, MAX_DRAFTS),
    DRAFTS.insert(draft),
    ...told(draft),
  ];
}

/** Returns the statements that tell streams of a draft. People see what they write. */
function told({ senderId, id, version, author, updatedAt }: Draft): Statement[] {
  return author.type === "key" ? [logDraft(senderId, id, version, updatedAt)] : [];
}

/** Returns a draft of the project; null if it has none with that id. */
export function getDraft(db: Db, senderId: string, id: string): Promise<Draft | null> {
  return DRAFTS.first(db, "WHERE sender_id = ? AND id = ?", [senderId, id]);
}

/** The drafts that a page of a list has. Null in a filter means all. */
export interface DraftPage {
  threadId: string | null;
  /** The inbox of the thread that they answer. */
  inboxId: string | null;
  /** Id of the member or key that wrote them. */
  authorId: string | null;
  authorType: Author["type"] | null;
  /** The last id of the page before; null: begin with the newest. */
  after: string | null;
  take: number;
}

/** Lists drafts, newest first. */
export function listDrafts(
  db: Db,
  senderId: string,
  { threadId, inboxId, authorId, authorType, after, take }: DraftPage,
): Promise<DraftSummary[]> {
  const when = (value: string | null, sql: string): Condition[] =>
    value === null ? [] : [{ sql, args: [value] }];
  const { sql, args } = allOf([
    { sql: "sender_id = ? AND id < ?", args: [senderId, after ?? idCeiling("drf")] },
    ...when(threadId, "thread_id = ?"),
    ...when(inboxId, "(SELECT inbox_id FROM threads WHERE threads.id = thread_id) = ?"),
    ...when(authorId, "author ->> '$.id' = ?"),
    ...when(authorType, "author ->> '$.type' = ?"),
  ]);
  return summaries(db, `${sql} ORDER BY id DESC LIMIT ?`, [...args, take]);
}

async function summaries(db: Db, where: string, args: Value[]): Promise<DraftSummary[]> {
  const rows = await db.all<{ draft: string }>(
    `SELECT json_object(${DRAFTS.jsonPairs("drafts", ["id", "threadId", "author", "version", "createdAt", "updatedAt"])},
      'to', json(COALESCE(item -> '$.to', '[]')), 'subject', COALESCE(NULLIF(item ->> '$.subject', ''), (SELECT subject FROM threads WHERE threads.id = thread_id), ''),
      'preview', substr(COALESCE(item ->> '$.text', ''), 1, ${PREVIEW_CHARS})) AS draft FROM drafts WHERE ${where}`,
    args,
  );
  return rows.map(({ draft }) => {
    const { to, ...rest } = JSON.parse(draft) as DraftSummary & Pick<DraftItem, "to">;
    return { ...rest, to: entriesOf(to).map((entry) => (typeof entry === "string" ? entry : entry.email)) };
  });
}

/** Holds while a draft is as it was read. */
function unchanged({ senderId, id, version }: Draft): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM drafts WHERE sender_id = ? AND id = ? AND version = ?)",
    args: [senderId, id, version],
  };
}

/** Replaces the fields of a draft as it was read. Returns it afterwards; null if it was changed or deleted since. */
export async function replaceDraft(
  db: Db,
  before: Draft,
  { item, updatedAt }: Pick<Draft, "item" | "updatedAt">,
  growing: ChangeLimit,
): Promise<Draft | null> {
  const version = before.version + 1;
  const { set, values } = DRAFTS.assignments({ item, updatedAt, version });
  const change: Statement = {
    sql: `UPDATE drafts SET ${set.join(", ")} WHERE sender_id = ? AND id = ? AND version = ?`,
    args: [...values, before.senderId, before.id, before.version],
  };
  const after = { ...before, item, updatedAt, version };
  const limited = growing(change);
  const written = changeResult((await db.write([...limited, ...told(after)])).slice(0, limited.length));
  return written?.changes === 1 ? after : null;
}

/** Returns the statements that take a draft away as it was read. They undo their write with the guard `changed_since_read`. */
export function takeDraft(draft: Draft): Statement[] {
  return [
    requireGuard("changed_since_read", unchanged(draft)),
    { sql: "DELETE FROM drafts WHERE sender_id = ? AND id = ?", args: [draft.senderId, draft.id] },
  ];
}

/** Deletes a draft. Returns false if the project has none with that id. */
export function deleteDraft(db: Db, senderId: string, id: string): Promise<boolean> {
  return changesRow(db, "DELETE FROM drafts WHERE sender_id = ? AND id = ?", [senderId, id]);
}
