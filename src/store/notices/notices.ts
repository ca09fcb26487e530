import { idCeiling } from "../../core/ids.ts";
import type { NoticeKind } from "../../core/notices/kinds.ts";
import { WAITS } from "../messages/approvals.ts";
import { ALWAYS, type Db, type Guard, type Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import type { Place } from "../engine/place.ts";

/** Something that needs people. Times in milliseconds. */
export interface Notice {
  id: string;
  accountId: string;
  /** The project that it concerns. Null: the account. */
  senderId: string | null;
  kind: NoticeKind;
  /** Id of what it is about: an account has one open notice of a kind and subject. */
  subjectId: string;
  /** Its name for people. Never a person's address, because an erasure does not look here. */
  subject: string;
  /** What a check said, or a number; null if the kind needs none. */
  detail: string | null;
  at: number;
  seenAt: number | null;
  endedAt: number | null;
  /** Null: it was not mailed yet. 0: it never will be. */
  mailedAt: number | null;
}

export const NOTICES = table<Notice>("notices", {
  id: plain("id"),
  accountId: plain("account_id"),
  senderId: plain("sender_id"),
  kind: plain("kind"),
  subjectId: plain("subject_id"),
  subject: plain("subject"),
  detail: plain("detail"),
  at: plain("at"),
  seenAt: plain("seen_at"),
  endedAt: plain("ended_at"),
  mailedAt: plain("mailed_at"),
});

/** Condition of the notices that people should see: their fact is true, or it happened once. */
const NEWS = "(ended_at IS NULL OR ended_at = at)";

/** What a new notice says. */
export interface RaisedNotice
  extends Pick<Notice, "id" | "kind" | "senderId" | "subjectId" | "subject" | "detail" | "at"> {
  /** Left out: the account of the project. */
  accountId?: string;
  /** True for what happens once, such as the end of an erasure: it ends as it begins. */
  once?: true;
}

/**
 * Returns the statement that raises a notice if there is no open one of its kind and subject. Put it into the write that
 * makes the fact true: then no crash loses it.
 * @param id from `newId("ntc", at)`
 * @param guard condition under which it is raised
 */
export function raiseNotice(notice: RaisedNotice, guard: Guard = ALWAYS): Statement {
  const { id, kind, accountId = null, senderId, subjectId, subject, detail, at, once } = notice;
  return {
    sql: `INSERT INTO notices (id, account_id, sender_id, kind, subject_id, subject, detail, at, ended_at)
      SELECT ?, COALESCE(?, (SELECT account_id FROM senders WHERE id = ?)), ?, ?, ?, ?, ?, ?, ? WHERE ${guard.sql}
      ON CONFLICT DO NOTHING`,
    args: [
      id,
      accountId,
      senderId,
      senderId,
      kind,
      subjectId,
      subject,
      detail,
      at,
      once === true ? at : null,
      ...guard.args,
    ],
  };
}

/** Returns the statement that tells people of a message that waits for an approval. */
export function raiseApproval(
  id: string,
  {
    senderId,
    messageId,
    recipients,
    at,
  }: { senderId: string; messageId: string; recipients: number; at: number },
): Statement {
  const detail = String(recipients);
  const about = { senderId, subjectId: messageId, subject: messageId, detail };
  return raiseNotice({ ...about, id, kind: "approval_waiting", at });
}

/**
 * Returns the statement that ends the open notice about a subject, in the write that makes the fact untrue. One that was not
 * mailed yet is not mailed any more.
 */
export function endNotice(kind: NoticeKind, subjectId: string, now: number): Statement {
  return {
    sql: `UPDATE notices SET ended_at = ?, mailed_at = COALESCE(mailed_at, 0)
      WHERE kind = ? AND subject_id = ? AND ended_at IS NULL`,
    args: [now, kind, subjectId],
  };
}

/** Returns the open notices of a kind, of all accounts, oldest first. It serves the chore that compares them with the facts. */
export function openNotices(db: Db, kind: NoticeKind, take: number): Promise<Notice[]> {
  return NOTICES.all(db, "WHERE kind = ? AND ended_at IS NULL ORDER BY id LIMIT ?", [kind, take]);
}

/** Returns the details of a project's open notices of a kind, by the ids of their subjects. */
export async function openDetails(
  db: Db,
  senderId: string,
  kind: NoticeKind,
  subjectIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db.all<{ id: string; detail: string }>(
    `SELECT subject_id AS id, COALESCE(detail, '') AS detail FROM notices
      WHERE kind = ? AND ended_at IS NULL AND subject_id IN (SELECT value FROM json_each(?)) AND sender_id = ?`,
    [kind, JSON.stringify(subjectIds), senderId],
  );
  return new Map(rows.map(({ id, detail }) => [id, detail]));
}

/** Which notices a reader may see and wants. */
export interface NoticeFilter {
  /** Only those of this project. Null: those of the account and of all its projects. */
  senderId: string | null;
  /** True: only those that were seen. False: only those that still need to be: one that is over does not. Left out: all. */
  seen?: boolean | undefined;
  /** Only those that are over, or still true. Left out: both. */
  ended?: boolean | undefined;
}

/** Returns at most `take` notices of the account, newest first, at a place. */
export function listNotices(
  db: Db,
  accountId: string,
  { senderId, seen, ended }: NoticeFilter,
  place: Place,
  take: number,
): Promise<Notice[]> {
  const conditions = [
    "account_id = ?",
    ...(senderId === null ? [] : ["sender_id = ?"]),
    ...(seen === undefined ? [] : [seen ? "seen_at IS NOT NULL" : `seen_at IS NULL AND ${NEWS}`]),
    ...(ended === undefined ? [] : [`ended_at IS ${ended ? "NOT " : ""}NULL`]),
  ];
  const args = [accountId, ...(senderId === null ? [] : [senderId])];
  return NOTICES.page(db, { where: conditions.join(" AND "), args, place, ceiling: idCeiling("ntc"), take });
}

/** Notes that someone has seen a notice, or that no one has. Returns it afterwards; null if the reader sees none with that id. */
export function setSeen(
  db: Db,
  accountId: string,
  senderId: string | null,
  id: string,
  seenAt: number | null,
): Promise<Notice | null> {
  return NOTICES.update(
    db,
    `SET seen_at = iif(?1 IS NULL, NULL, COALESCE(seen_at, ?1)) WHERE account_id = ?2 AND id = ?3 AND (?4 IS NULL OR sender_id = ?4)`,
    [seenAt, accountId, id, senderId],
  );
}

/** Deletes at most `limit` notices that ended before a time. Returns how many. */
export async function deleteOldNotices(db: Db, before: number, limit: number): Promise<number> {
  const sql = "DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE ended_at < ? LIMIT ?)";
  const [written] = await db.write([{ sql, args: [before, limit] }]);
  return written?.changes ?? 0;
}

/** Returns the messages with an open notice that wait for no approval any more. */
export async function endedApprovals(db: Db, take: number): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    `SELECT subject_id AS id FROM notices WHERE kind = 'approval_waiting' AND ended_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM recipients WHERE message_id = subject_id AND ${WAITS}) LIMIT ?`,
    [take],
  );
  return rows.map(({ id }) => id);
}

/** Condition of the notices that wait to be sent. */
const TO_SEND = `mailed_at IS NULL AND ${NEWS}`;

/** Condition that none of a notice's kind and subject was sent since a time, the parameter: else it waits for the next day. */
const FIRST_OF_DAY = `NOT EXISTS (SELECT 1 FROM notices told WHERE told.account_id = notices.account_id
  AND told.kind = notices.kind AND told.subject_id = notices.subject_id AND told.mailed_at >= ?)`;

/**
 * Returns the accounts that have notices to send now. Those whose notices wait for the next day must not use up the turn.
 * @param today start of the UTC day, milliseconds
 */
export async function accountsToTell(db: Db, today: number, take: number): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    `SELECT DISTINCT account_id AS id FROM notices WHERE ${TO_SEND} AND ${FIRST_OF_DAY} LIMIT ?`,
    [Math.max(1, today), take],
  );
  return rows.map(({ id }) => id);
}

/**
 * Returns at most `take` notices of an account to send, oldest first. One whose kind and subject was sent since `today` waits for
 * the next day.
 * @param off kinds that are not sent
 * @param today start of the UTC day, milliseconds
 */
export function noticesToSend(
  db: Db,
  accountId: string,
  { off, today, take }: { off: readonly NoticeKind[]; today: number; take: number },
): Promise<Notice[]> {
  return NOTICES.all(
    db,
    `WHERE account_id = ? AND ${TO_SEND} AND kind NOT IN (SELECT value FROM json_each(?))
      AND ${FIRST_OF_DAY} ORDER BY id LIMIT ?`,
    [accountId, JSON.stringify(off), Math.max(1, today), take],
  );
}

/** Returns the statement that notes that notices are sent. */
export function noteSent(ids: readonly string[], now: number): Statement {
  return {
    sql: "UPDATE notices SET mailed_at = ? WHERE id IN (SELECT value FROM json_each(?))",
    args: [now, JSON.stringify(ids)],
  };
}

/** Holds while none of the notices was sent or has ended, so that each is sent once. */
export function unsentGuard(ids: readonly string[]): Guard {
  return {
    sql: `(SELECT COUNT(*) FROM notices WHERE id IN (SELECT value FROM json_each(?)) AND ${TO_SEND}) = ?`,
    args: [JSON.stringify(ids), ids.length],
  };
}

/** Returns the statement that drops what is not sent for its kind: it is not sent later, either. */
export function dropUnsent(accountId: string, off: readonly NoticeKind[]): Statement {
  return {
    sql: `UPDATE notices SET mailed_at = 0 WHERE account_id = ? AND mailed_at IS NULL
      AND kind IN (SELECT value FROM json_each(?))`,
    args: [accountId, JSON.stringify(off)],
  };
}
