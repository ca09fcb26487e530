import { MAX_TOPICS } from "../../core/audience/topics.ts";
import { newId } from "../../core/ids.ts";
import { insertTopic, type Topic, type TopicChanges } from "../../store/audience/topics.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { tooManyRecords } from "../quotas.ts";

/**
 * Adds a topic. Contacts that have not chosen get it, unless `defaultSubscribed` is false.
 * @param record returns statements for the same write
 * @throws AppError 403 if there are too many
 */
export async function createTopic(
  db: Db,
  senderId: string,
  { name, description = "", defaultSubscribed = true, visible = true }: TopicChanges & { name: string },
  now: number,
  record: (topic: Topic) => readonly Statement[],
): Promise<Topic> {
  const fields = {
    name: name.toWellFormed(),
    description: description.toWellFormed(),
    defaultSubscribed,
    visible,
  };
  const topic = { id: newId("top", now), senderId, ...fields, createdAt: now, updatedAt: now };
  await db
    .write([...insertTopic(topic), ...record(topic)])
    .catch(tooManyRecords(`A project has at most ${MAX_TOPICS} topics.`, "topics"));
  return topic;
}
