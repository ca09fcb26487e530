import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import { requireGuard } from "../engine/guards.ts";
import { raiseNotice } from "../notices/notices.ts";

/** Time in which an author gets one reply of a rule, milliseconds. */
export const REPLY_EVERY_MS = DAY_MS;
/** Number of failures one after another at which a rule is disabled. */
export const MAX_FAILURES = 50;

/** A reply that a rule gives to a message. Times in milliseconds. */
export interface RuleReply {
  messageId: string;
  senderId: string;
  ruleId: string;
  templateId: string;
  /** The keyed hash of the author's address. */
  author: string;
  createdAt: number;
  /** Null: it was sent or given up. */
  dueAt: number | null;
}

const REPLIES = table<RuleReply>("rule_replies", {
  messageId: plain("message_id"),
  senderId: plain("sender_id"),
  ruleId: plain("rule_id"),
  templateId: plain("template_id"),
  author: plain("author"),
  createdAt: plain("created_at"),
  dueAt: plain("due_at"),
});

/** Returns the statement that asks for a reply, unless the rule has answered the author within a day. */
export function askForReply(reply: RuleReply): Statement {
  return {
    sql: `INSERT INTO rule_replies (${REPLIES.columns}) SELECT ?, ?, ?, ?, ?, ?, ?
      WHERE NOT EXISTS (SELECT 1 FROM rule_replies WHERE rule_id = ? AND author = ? AND created_at > ?)`,
    args: [...REPLIES.values(reply), reply.ruleId, reply.author, reply.createdAt - REPLY_EVERY_MS],
  };
}

/** Returns at most `take` replies that are due, of all projects, oldest first. */
export function dueReplies(db: Db, now: number, take: number): Promise<RuleReply[]> {
  return REPLIES.all(db, "WHERE due_at <= ? ORDER BY due_at LIMIT ?", [now, take]);
}

/** Returns the statements that settle a reply. They undo their write with the guard `changed_since_read` if it was settled. */
export function settleReply(messageId: string): Statement[] {
  const condition = "EXISTS (SELECT 1 FROM rule_replies WHERE message_id = ? AND due_at IS NOT NULL)";
  return [
    requireGuard("changed_since_read", { sql: condition, args: [messageId] }),
    { sql: "UPDATE rule_replies SET due_at = NULL WHERE message_id = ?", args: [messageId] },
  ];
}

/** Returns the statement that tries a reply again later. */
export function postponeReply(messageId: string, dueAt: number): Statement {
  const sql = "UPDATE rule_replies SET due_at = ? WHERE message_id = ? AND due_at IS NOT NULL";
  return { sql, args: [dueAt, messageId] };
}

/** Deletes at most `limit` settled replies from before a time. Returns how many. */
export async function deleteOldReplies(db: Db, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM rule_replies WHERE message_id IN (
    SELECT message_id FROM rule_replies WHERE created_at < ? AND due_at IS NULL ORDER BY created_at LIMIT ?)`;
  const [written] = await db.write([{ sql, args: [before, limit] }]);
  return written?.changes ?? 0;
}

/** Returns the statement that forgets the failures of a rule, because it has worked. */
export function ruleWorked(ruleId: string): Statement {
  return { sql: "UPDATE rules SET failures = 0 WHERE id = ? AND failures > 0", args: [ruleId] };
}

/**
 * Returns the statements that count a failure of a rule. At the limit they disable it, with a notice.
 * @param noticeId from `newId("ntc", now)`
 */
export function ruleFailed(
  { ruleId, senderId, name }: { ruleId: string; senderId: string; name: string },
  { noticeId, reason, now }: { noticeId: string; reason: string; now: number },
): Statement[] {
  const isOver = {
    sql: "EXISTS (SELECT 1 FROM rules WHERE id = ? AND enabled = 1 AND failures >= ?)",
    args: [ruleId, MAX_FAILURES],
  };
  return [
    { sql: "UPDATE rules SET failures = failures + 1 WHERE id = ?", args: [ruleId] },
    raiseNotice(
      {
        id: noticeId,
        kind: "rule_disabled",
        senderId,
        subjectId: ruleId,
        subject: name,
        detail: reason,
        at: now,
      },
      isOver,
    ),
    {
      sql: "UPDATE rules SET enabled = 0, updated_at = ? WHERE id = ? AND enabled = 1 AND failures >= ?",
      args: [now, ruleId, MAX_FAILURES],
    },
  ];
}
