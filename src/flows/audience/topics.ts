import { invalid, existing } from "../../core/errors.ts";
import { MAX_TOPICS } from "../../core/audience/topics.ts";
import { newId } from "../../core/ids.ts";
import {
  getTopic,
  insertTopic,
  type Topic,
  type TopicChanges,
  updateTopic,
} from "../../store/audience/topics.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { tooManyRecords } from "../quotas.ts";

/**
 * Adds a topic. Contacts that have not chosen get it, unless `defaultSubscribed` is false or people join it only by a link.
 * @param record returns statements for the same write
 * @throws AppError 403 if there are too many; 422 for `defaultSubscribed` of a topic that people join by a link
 */
export async function createTopic(
  db: Db,
  senderId: string,
  {
    name,
    description = "",
    doubleOptIn = false,
    defaultSubscribed = !doubleOptIn,
    visible = true,
  }: TopicChanges & { name: string },
  now: number,
  record: (topic: Topic) => readonly Statement[],
): Promise<Topic> {
  const fields = {
    name: name.toWellFormed(),
    description: description.toWellFormed(),
    defaultSubscribed,
    visible,
    doubleOptIn,
  };
  requireChoice(fields);
  const topic = { id: newId("top", now), senderId, ...fields, createdAt: now, updatedAt: now };
  await db
    .write([...insertTopic(topic), ...record(topic)])
    .catch(tooManyRecords(`A project has at most ${MAX_TOPICS} topics.`, "topics"));
  return topic;
}

/** Changes the given fields of a topic. @throws AppError 404; 422 as above */
export async function changeTopic(
  db: Db,
  { senderId, id }: { senderId: string; id: string },
  changes: TopicChanges,
  now: number,
): Promise<Topic> {
  requireChoice({ ...existing("topic", await getTopic(db, senderId, id)), ...changes });
  return existing("topic", await updateTopic(db, senderId, id, changes, now));
}

function requireChoice({
  defaultSubscribed,
  doubleOptIn,
}: Pick<Topic, "defaultSubscribed" | "doubleOptIn">): void {
  if (doubleOptIn && defaultSubscribed)
    throw invalid("defaultSubscribed", "must be false if people join the topic only by a mailed link.");
}
