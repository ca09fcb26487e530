import type { MessageStatus, RecipientStatus } from "../../core/messages/states.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import { requireGuard } from "../engine/guards.ts";
import { raiseNotice } from "../notices/notices.ts";

/** Time in which an author gets one reply of a rule, milliseconds. */
export const REPLY_EVERY_MS = DAY_MS;
/** Number of failures one after another at which a rule is disabled. */
export const MAX_FAILURES = 50;
/** Number of forwards one after another that come back at which a rule is disabled. */
export const MAX_BOUNCES = 3;
/** Due effects among which those of each project get equal turns. */
const TURN_WINDOW = 500;

/** A reply or forward by a rule, after the message is stored. Times in milliseconds. */
export interface RuleEffect {
  messageId: string;
  /** Number of the effect among those of its message. */
  ord: number;
  senderId: string;
  ruleId: string;
  /** The template of a reply; null for a forward. */
  templateId: string | null;
  /** The keyed hash of the address that gets a reply; null for a forward. */
  author: string | null;
  /** The message that was sent; null: none was. */
  emailId: string | null;
  /** Why no message was sent. */
  reason: string | null;
  createdAt: number;
  /** Null: it has ended. */
  dueAt: number | null;
}

const EFFECTS = table<RuleEffect>("rule_effects", {
  messageId: plain("message_id"),
  ord: plain("ord"),
  senderId: plain("sender_id"),
  ruleId: plain("rule_id"),
  templateId: plain("template_id"),
  author: plain("author"),
  emailId: plain("email_id"),
  reason: plain("reason"),
  createdAt: plain("created_at"),
  dueAt: plain("due_at"),
});

/** Names an effect. */
export type EffectKey = Pick<RuleEffect, "messageId" | "ord">;

/** Returns the statement that asks for an effect. A reply is not asked for if the rule has answered the author within a day. */
export function askForEffect(effect: RuleEffect): Statement {
  if (effect.author === null) return EFFECTS.insert(effect);
  const values = EFFECTS.values(effect);
  return {
    sql: `INSERT INTO rule_effects (${EFFECTS.columns}) SELECT ${values.map(() => "?").join(", ")}
      WHERE NOT EXISTS (${ANSWERED})`,
    args: [...values, effect.ruleId, effect.author, effect.createdAt - REPLY_EVERY_MS],
  };
}

const ANSWERED = "SELECT 1 FROM rule_effects WHERE rule_id = ? AND author = ? AND created_at > ?";

/** Returns whether a rule has answered another message of the author within a day. */
export async function hasAnswered(
  db: Db,
  { ruleId, author, messageId }: Pick<RuleEffect, "ruleId" | "author" | "messageId">,
  now: number,
): Promise<boolean> {
  const args = [ruleId, author, now - REPLY_EVERY_MS, messageId];
  return (await db.first(`${ANSWERED} AND message_id <> ?`, args)) !== null;
}

/** Returns at most `take` effects that are due, of all projects in equal turns, oldest first. */
export function dueEffects(db: Db, now: number, take: number): Promise<RuleEffect[]> {
  return EFFECTS.all(
    db,
    `WHERE (message_id, ord) IN (SELECT message_id, ord FROM (
        SELECT message_id, ord, due_at, row_number() OVER (PARTITION BY sender_id ORDER BY due_at) AS turn FROM (
          SELECT message_id, ord, sender_id, due_at FROM rule_effects WHERE due_at <= ? ORDER BY due_at LIMIT ${TURN_WINDOW}))
        ORDER BY turn, due_at LIMIT ?) ORDER BY due_at`,
    [now, take],
  );
}

/** How an effect has ended: with a message, or why without one. */
export type EffectEnd = Pick<RuleEffect, "emailId" | "reason">;

/** Returns the statements that end an effect. They undo their write with the guard `changed_since_read` if it has ended. */
export function endEffect({ messageId, ord }: EffectKey, { emailId, reason }: EffectEnd): Statement[] {
  const condition =
    "EXISTS (SELECT 1 FROM rule_effects WHERE message_id = ? AND ord = ? AND due_at IS NOT NULL)";
  return [
    requireGuard("changed_since_read", { sql: condition, args: [messageId, ord] }),
    {
      sql: "UPDATE rule_effects SET due_at = NULL, email_id = ?, reason = ? WHERE message_id = ? AND ord = ?",
      args: [emailId, reason, messageId, ord],
    },
  ];
}

/** Returns the statement that tries an effect again later. */
export function postponeEffect({ messageId, ord }: EffectKey, dueAt: number): Statement {
  const sql = "UPDATE rule_effects SET due_at = ? WHERE message_id = ? AND ord = ? AND due_at IS NOT NULL";
  return { sql, args: [dueAt, messageId, ord] };
}

/** Deletes at most `limit` ended replies from before a time. Returns how many. Forwards go with their message. */
export async function deleteOldReplies(db: Db, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM rule_effects WHERE (message_id, ord) IN (
    SELECT message_id, ord FROM rule_effects
      WHERE author IS NOT NULL AND created_at < ? AND due_at IS NULL ORDER BY created_at LIMIT ?)`;
  const [written] = await db.write([{ sql, args: [before, limit] }]);
  return written?.changes ?? 0;
}

/** A forward of a message, as its record shows it. */
export interface Forward {
  ruleId: string;
  /** Null: neither the message nor the rule is there to tell. */
  to: string | null;
  emailId: string | null;
  /** Status of the message that was sent. Null: none was, or it is gone. */
  status: MessageStatus | null;
  reason: string | null;
  /** True until it is sent or given up. */
  isWaiting: boolean;
}

/** Returns the forwards of a received message of the project, in order. */
export async function forwardsOf(db: Db, senderId: string, messageId: string): Promise<Forward[]> {
  const rows = await db.all<Omit<Forward, "isWaiting"> & { waits: number }>(
    `SELECT e.rule_id AS ruleId, e.email_id AS emailId, e.reason, e.due_at IS NOT NULL AS waits, m.status,
        COALESCE((SELECT email FROM recipients r WHERE r.message_id = e.email_id AND r.ord = 0),
          (SELECT actions ->> '$.forwardTo' FROM rules WHERE id = e.rule_id)) AS "to"
      FROM rule_effects e LEFT JOIN messages m ON m.id = e.email_id
      WHERE e.message_id = ? AND e.sender_id = ? AND e.author IS NULL ORDER BY e.ord`,
    [messageId, senderId],
  );
  return rows.map(({ waits, ...forward }) => ({ ...forward, isWaiting: waits === 1 }));
}

/** Returns the statement that forgets the failures of a rule, because it has worked. */
export function ruleWorked(ruleId: string): Statement {
  return { sql: "UPDATE rules SET failures = 0 WHERE id = ? AND failures > 0", args: [ruleId] };
}

/** A rule that may be disabled, and the notice about it. */
export interface Failing {
  ruleId: string;
  senderId: string;
  name: string;
  /** From `newId("ntc", now)`. */
  noticeId: string;
  now: number;
}

/** States of a forward that its address has refused. Mail that is refused for its content is `failed`: a stranger may have written it. */
export const CAME_BACK: ReadonlySet<RecipientStatus> = new Set<RecipientStatus>([
  "bounced",
  "rejected",
  "complained",
]);
const CAME_BACK_LIST = [...CAME_BACK].map((status) => `'${status}'`).join(", ");

/** Returns the statements that count a failure of a rule. At the limit they disable it, with a notice. */
export function ruleFailed(failing: Failing, reason: string): Statement[] {
  return [
    { sql: "UPDATE rules SET failures = failures + 1 WHERE id = ?", args: [failing.ruleId] },
    ...disableIf(failing, reason, { sql: "rules.failures >= ?", args: [MAX_FAILURES] }),
  ];
}

/** Returns the statements that disable a rule, with a notice, if its last forwards since it was changed all came back. */
export function disableAfterBounces(failing: Failing): Statement[] {
  const last = `SELECT e.email_id FROM rule_effects e WHERE e.rule_id = rules.id AND e.email_id IS NOT NULL
    AND e.author IS NULL AND e.created_at >= rules.updated_at ORDER BY e.created_at DESC LIMIT ${MAX_BOUNCES}`;
  const sql = `(SELECT COUNT(*) FROM (${last}) l JOIN messages m ON m.id = l.email_id
    WHERE m.status IN (${CAME_BACK_LIST})) = ${MAX_BOUNCES}`;
  return disableIf(failing, `Its last ${MAX_BOUNCES} forwards came back.`, { sql, args: [] });
}

function disableIf(
  { ruleId, senderId, name, noticeId, now }: Failing,
  reason: string,
  condition: Guard,
): Statement[] {
  const isOver = `id = ? AND enabled = 1 AND ${condition.sql}`;
  return [
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
      { sql: `EXISTS (SELECT 1 FROM rules WHERE ${isOver})`, args: [ruleId, ...condition.args] },
    ),
    {
      sql: `UPDATE rules SET enabled = 0, updated_at = ? WHERE ${isOver}`,
      args: [now, ruleId, ...condition.args],
    },
  ];
}

/** Returns the rule by which a sent message was forwarded; null if it was not, or the rule is gone. */
export function forwardingRule(db: Db, emailId: string): Promise<{ ruleId: string; name: string } | null> {
  return db.first(
    `SELECT e.rule_id AS ruleId, r.name FROM rule_effects e JOIN rules r ON r.id = e.rule_id
      WHERE e.email_id = ? AND e.author IS NULL`,
    [emailId],
  );
}
