import type { Mailbox } from "../../core/addresses.ts";
import { type BroadcastStatus, MAX_BROADCASTS } from "../../core/audience/broadcasts.ts";
import type { AbTest } from "../../core/audience/ab-test.ts";
import type { Filter } from "../../core/audience/filter.ts";
import { idCeiling } from "../../core/ids.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { json, mailbox, nullableJson, plain, table } from "../engine/columns.ts";
import { requireGuard, requireRoom } from "../engine/guards.ts";
import type { Place } from "../engine/place.ts";
import type { SavedTemplate } from "../projects/templates.ts";

/** Why a broadcast waits or was paused. */
export interface BroadcastProblem {
  code: string;
  message: string;
}

/** A letter to the contacts of a project. Times in milliseconds. */
export interface Broadcast {
  id: string;
  senderId: string;
  name: string;
  status: BroadcastStatus;
  topicId: string;
  /** Null: all contacts. */
  segmentId: string | null;
  from: Mailbox;
  replyTo: Mailbox[];
  /** Null: that of the template. */
  subject: string | null;
  templateId: string | null;
  scheduledAt: number | null;
  /** Null: no limit. */
  ratePerHour: number | null;
  routeIds: string[];
  /** Null: all get the same subject. */
  abTest: AbTest | null;
  /** The key that answers for its messages. Null: the command line, or it is a draft. */
  keyId: string | null;
  /** The segment's filter when it was sent. Null: all contacts. */
  filter: Filter | null;
  /** Full paths of the variables of its content. */
  variables: string[];
  /** Bytes of its html and text. */
  octets: number;
  /** Contacts that passed the filter at the start. */
  audience: number | null;
  startedAt: number | null;
  endedAt: number | null;
  /** The contact up to which messages were made. */
  lastContactId: string;
  /** When the next messages are made. */
  nextAt: number | null;
  /** Contacts that got a message, and those that may not get one. */
  recipients: number;
  skipped: number;
  problem: BroadcastProblem | null;
  createdAt: number;
  updatedAt: number;
}

/** The content of a broadcast. */
export interface BroadcastBody {
  html: string | null;
  text: string | null;
}

const BROADCASTS = table<Broadcast>("broadcasts", {
  id: plain("id"),
  senderId: plain("sender_id"),
  name: plain("name"),
  status: plain("status"),
  topicId: plain("topic_id"),
  segmentId: plain("segment_id"),
  from: mailbox("from_email", "from_name"),
  replyTo: json("reply_to"),
  subject: plain("subject"),
  templateId: plain("template_id"),
  scheduledAt: plain("scheduled_at"),
  ratePerHour: plain("rate_per_hour"),
  routeIds: json("route_ids"),
  abTest: nullableJson("ab_test"),
  keyId: plain("key_id"),
  filter: nullableJson("filter"),
  variables: json("variables"),
  octets: plain("octets"),
  audience: plain("audience"),
  startedAt: plain("started_at"),
  endedAt: plain("ended_at"),
  lastContactId: plain("last_contact_id"),
  nextAt: plain("next_at"),
  recipients: plain("recipients"),
  skipped: plain("skipped"),
  problem: nullableJson("problem"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

const OWN = "sender_id = ? AND id = ?";

/** Returns a broadcast of the project; null if it has none with that id. */
export function getBroadcast(db: Db, senderId: string, id: string): Promise<Broadcast | null> {
  return BROADCASTS.first(db, `WHERE ${OWN}`, [senderId, id]);
}

/** Returns at most `take` of the project's broadcasts, newest first, at a place. */
export function listBroadcasts(db: Db, senderId: string, place: Place, take: number): Promise<Broadcast[]> {
  const where = "sender_id = ?";
  return BROADCASTS.page(db, { where, args: [senderId], place, ceiling: idCeiling("bro"), take });
}

/** Returns the content of a broadcast of the project; null if it is gone. */
export function findBody(db: Db, senderId: string, id: string): Promise<BroadcastBody | null> {
  const sql = "SELECT html, text FROM broadcast_bodies WHERE sender_id = ? AND broadcast_id = ?";
  return db.first<BroadcastBody & Record<string, unknown>>(sql, [senderId, id]);
}

/** Returns the statements that store a draft. With too many broadcasts, the guard `too_many_records` undoes the write. */
export function insertBroadcast(broadcast: Broadcast, { html, text }: BroadcastBody): Statement[] {
  const { id, senderId } = broadcast;
  return [
    requireRoom("broadcasts WHERE sender_id = ?", senderId, MAX_BROADCASTS),
    BROADCASTS.insert(broadcast),
    {
      sql: "INSERT INTO broadcast_bodies (broadcast_id, sender_id, html, text) VALUES (?, ?, ?, ?)",
      args: [id, senderId, html, text],
    },
  ];
}

/** Returns the statement that replaces the content of a broadcast. */
export function replaceBody(
  { id, senderId }: Pick<Broadcast, "id" | "senderId">,
  body: BroadcastBody,
): Statement {
  return {
    sql: "UPDATE broadcast_bodies SET html = ?, text = ? WHERE sender_id = ? AND broadcast_id = ?",
    args: [body.html, body.text, senderId, id],
  };
}

/** Returns the time of a change, which is later than the last one, because `changeBroadcast` knows by it whether another came first. */
export function timeOfChange({ updatedAt }: Broadcast, now: number): number {
  return Math.max(now, updatedAt + 1);
}

/**
 * Returns the statements that change a broadcast. If a client has changed it since it was read, or its status is another, the guard
 * `changed_since_read` undoes the write.
 */
export function changeBroadcast(before: Broadcast, changes: Partial<Broadcast>): Statement[] {
  return change(before, changes, unchanged(before));
}

/** As `changeBroadcast`, and the guard holds only if no messages were made since: two processes must not make the same ones. */
export function advanceBroadcast(before: Broadcast, changes: Partial<Broadcast>): Statement[] {
  const { sql, args } = unchanged(before);
  return change(before, changes, {
    sql: `${sql} AND ${AT_POSITION}`,
    args: [...args, before.id, before.lastContactId],
  });
}

const AT_POSITION = "EXISTS (SELECT 1 FROM broadcasts WHERE id = ? AND last_contact_id = ?)";

function change(before: Broadcast, changes: Partial<Broadcast>, guard: Guard): Statement[] {
  const { set, values } = BROADCASTS.assignments(changes);
  return [
    requireGuard("changed_since_read", guard),
    {
      sql: `UPDATE broadcasts SET ${set.join(", ")} WHERE ${OWN}`,
      args: [...values, before.senderId, before.id],
    },
  ];
}

/** Holds while a broadcast has the status and the time of change with which it was read. */
function unchanged({ id, senderId, status, updatedAt }: Broadcast): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM broadcasts WHERE ${OWN} AND status = ? AND updated_at = ?)`,
    args: [senderId, id, status, updatedAt],
  };
}

/** Returns the statements that delete a broadcast with its figures, if it is as it was read. */
export function removeBroadcast(before: Broadcast): Statement[] {
  return [
    requireGuard("changed_since_read", unchanged(before)),
    { sql: "DELETE FROM broadcast_figures WHERE broadcast_id = ?", args: [before.id] },
    { sql: "DELETE FROM broadcast_variant_figures WHERE broadcast_id = ?", args: [before.id] },
    { sql: "DELETE FROM broadcast_bodies WHERE broadcast_id = ?", args: [before.id] },
    { sql: `DELETE FROM broadcasts WHERE ${OWN}`, args: [before.senderId, before.id] },
  ];
}

/** Returns the content of a broadcast as the template of its messages, whose subjects they have themselves; null if it is gone. */
export async function templateOfBroadcast(
  db: Db,
  senderId: string,
  id: string,
): Promise<Pick<SavedTemplate, "senderId" | "subject" | "html" | "text" | "updatedAt"> | null> {
  const body = await findBody(db, senderId, id);
  return body === null ? null : { senderId, subject: "", ...body, updatedAt: 0 };
}

/** Returns the broadcasts of any project whose next step is due, longest due first. */
export function dueBroadcasts(db: Db, now: number, limit: number): Promise<Broadcast[]> {
  return BROADCASTS.all(
    db,
    "WHERE status IN ('scheduled', 'sending') AND next_at <= ? ORDER BY next_at, id LIMIT ?",
    [now, limit],
  );
}

/** SQL of the recipients of a broadcast that wait for a worker, in the project's waiting bulk mail. Parameters: project, broadcast. */
const WAITING = `FROM recipients r INDEXED BY recipients_turns JOIN messages m ON m.id = r.message_id
  WHERE r.sender_id = ? AND r.bulk = 1 AND r.due_at IS NOT NULL AND r.status <> 'accepted' AND m.template_id = ?`;

/** Returns whether a message of the broadcast waits for its first attempt. */
export async function hasUntried(db: Db, { senderId, id }: Broadcast): Promise<boolean> {
  return (await db.first(`SELECT 1 ${WAITING} AND r.attempts = 0 LIMIT 1`, [senderId, id])) !== null;
}

/** Returns whether messages of the broadcast are kept. They show its content. */
export async function hasMessages(db: Db, { id }: Broadcast): Promise<boolean> {
  return (await db.first("SELECT 1 FROM broadcast_messages WHERE broadcast_id = ? LIMIT 1", [id])) !== null;
}

/** Returns how many messages of the project's bulk mail are due, at most `most`. */
export async function dueBulk(db: Db, senderId: string, now: number, most: number): Promise<number> {
  const row = await db.first<{ n: number }>(
    `SELECT COUNT(*) AS n FROM (SELECT 1 FROM recipients INDEXED BY recipients_turns
      WHERE sender_id = ? AND bulk = 1 AND due_at <= ? AND status <> 'accepted' LIMIT ?)`,
    [senderId, now, most],
  );
  return row?.n ?? 0;
}

/**
 * Returns the statement that holds the messages of a broadcast that are due. One by one, workers would write each of some thousand.
 * @param dueAt when they are looked at again
 */
export function holdDue(
  { senderId, id }: Broadcast,
  reason: string,
  { now, dueAt }: { now: number; dueAt: number },
): Statement {
  return {
    sql: `UPDATE recipients SET due_at = ?, reason = ? WHERE (message_id, ord) IN (SELECT r.message_id, r.ord ${WAITING} AND r.due_at <= ?)`,
    args: [dueAt, reason, senderId, id, now],
  };
}

/** Returns the statement that makes the messages due that were held while the broadcast was paused. */
export function releaseHeld({ senderId, id }: Broadcast, reason: string, now: number): Statement {
  return {
    sql: `UPDATE recipients SET due_at = ? WHERE (message_id, ord) IN (SELECT r.message_id, r.ord ${WAITING} AND r.reason = ?)`,
    args: [now, senderId, id, reason],
  };
}
