import { MAX_TOPICS, type TopicShape } from "../../core/audience/topics.ts";
import { idCeiling } from "../../core/ids.ts";
import {
  type ConfigurationQuery,
  changesRow,
  type Db,
  type Guard,
  type Statement,
} from "../engine/client.ts";
import { flag, plain, table } from "../engine/columns.ts";
import { requireRoom } from "../engine/guards.ts";
import type { Place } from "../engine/place.ts";

/** A topic of a project. Times in milliseconds. */
export interface Topic extends TopicShape {
  senderId: string;
  createdAt: number;
  updatedAt: number;
}

const TOPICS = table<Topic>("topics", {
  id: plain("id"),
  senderId: plain("sender_id"),
  name: plain("name"),
  description: plain("description"),
  defaultSubscribed: flag("default_subscribed"),
  visible: flag("visible"),
  doubleOptIn: flag("double_opt_in"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

const KEPT = "deleted_at IS NULL";

const SHAPES: ConfigurationQuery<{ topics: string }, readonly TopicShape[]> = {
  sql: `SELECT json_group_array(json_object('id', id, 'name', name, 'description', description,
      'defaultSubscribed', json(iif(default_subscribed, 'true', 'false')), 'visible', json(iif(visible, 'true', 'false')),
      'doubleOptIn', json(iif(double_opt_in, 'true', 'false')))) AS topics
    FROM (SELECT * FROM topics WHERE sender_id = ? AND ${KEPT} ORDER BY id LIMIT ${MAX_TOPICS})`,
  read: ({ topics }) => JSON.parse(topics),
};

/** Returns the project's topics, oldest first. They are cached until configuration changes. */
export async function topicShapes(db: Db, senderId: string): Promise<readonly TopicShape[]> {
  return (await db.readConfig(SHAPES, [senderId])) ?? [];
}

/** Returns a topic of the project; null if it has none with that id. */
export function getTopic(db: Db, senderId: string, id: string): Promise<Topic | null> {
  return TOPICS.first(db, `WHERE sender_id = ? AND id = ? AND ${KEPT}`, [senderId, id]);
}

/** Returns at most `take` of the project's topics, newest first, at a place. */
export function listTopics(db: Db, senderId: string, place: Place, take: number): Promise<Topic[]> {
  const where = `sender_id = ? AND ${KEPT}`;
  return TOPICS.page(db, { where, args: [senderId], place, ceiling: idCeiling("top"), take });
}

/** Returns the statements that store a topic. With too many topics, the guard `too_many_records` undoes the write. */
export function insertTopic(topic: Topic): Statement[] {
  return [requireRoom("topics WHERE sender_id = ?", topic.senderId, MAX_TOPICS), TOPICS.insert(topic)];
}

/** Fields of a topic that may be changed. */
export type TopicChanges = Partial<
  Pick<Topic, "name" | "description" | "defaultSubscribed" | "visible" | "doubleOptIn">
>;

/** Changes the given fields. Returns the topic afterwards; null if the project has none with that id. */
export function updateTopic(
  db: Db,
  senderId: string,
  id: string,
  changes: TopicChanges,
  now: number,
): Promise<Topic | null> {
  const { set, values } = TOPICS.assignments({ ...changes, updatedAt: now });
  return TOPICS.update(db, `SET ${set.join(", ")} WHERE sender_id = ? AND id = ? AND ${KEPT}`, [
    ...values,
    senderId,
    id,
  ]);
}

/** Marks a topic as deleted. Returns false if the project has none with that id. */
export function markTopic(db: Db, senderId: string, id: string, now: number): Promise<boolean> {
  const sql = `UPDATE topics SET deleted_at = ? WHERE sender_id = ? AND id = ? AND ${KEPT}`;
  return changesRow(db, sql, [now, senderId, id]);
}

/**
 * Returns SQL of whether an address does not get a topic. It does not if the topic is gone, or if it has left the topic or all
 * mail. A topic that its readers must choose goes only to those who have.
 * @param sender SQL of the project
 * @param key SQL of the address key
 * @param topic SQL of the topic's id
 */
export function notInTopic(sender: string, key: string, topic: string): string {
  return `NOT EXISTS (SELECT 1 FROM topics t LEFT JOIN contacts c ON c.sender_id = ${sender} AND c.email_key = ${key}
    WHERE t.id = ${topic} AND t.sender_id = ${sender} AND t.${KEPT} AND COALESCE(c.subscribed, 1) = 1
      AND COALESCE(c.topics ->> ('$."' || t.id || '"'), t.default_subscribed) = 1)`;
}

/** Returns those of the address keys that do not get the topic. */
export async function outsideTopic(
  db: Db,
  senderId: string,
  topicId: string,
  keys: readonly string[],
): Promise<string[]> {
  const rows = await db.all<{ key: string }>(
    `SELECT k.value AS key FROM json_each(?3) k WHERE ${notInTopic("?1", "k.value", "?2")}`,
    [senderId, topicId, JSON.stringify(keys)],
  );
  return rows.map(({ key }) => key);
}

/** Returns the topic that the link of a message leaves; null if the message has none, or the topic is gone. */
export async function topicOfMessage(db: Db, messageId: string): Promise<string | null> {
  const row = await db.first<{ id: string }>(
    `SELECT t.id FROM messages m JOIN topics t ON t.id = m.topic_id AND t.sender_id = m.sender_id AND t.${KEPT} WHERE m.id = ?`,
    [messageId],
  );
  return row?.id ?? null;
}

/** Holds unless the project has a contact with the address that has left the topic. */
export function notLeftGuard(senderId: string, emailKey: string, topicId: string): Guard {
  return {
    sql: "NOT EXISTS (SELECT 1 FROM contacts WHERE sender_id = ? AND email_key = ? AND topics ->> ? = 0)",
    args: [senderId, emailKey, `$."${topicId}"`],
  };
}
