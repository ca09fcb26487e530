import { foldCase } from "../matching/folding.ts";
import type { Db } from "../engine/client.ts";
import type { Thread } from "./threads.ts";

/** A thread with the names that its messages give to its participants, by address. Participants without a name are left out. */
export type NamedThread<One extends Thread = Thread> = One & { participantNames: Record<string, string> };

/** Maximum number of messages of a thread that are read for names, besides its first one: the newest. */
const MESSAGES_READ = 5;

/**
 * Adds participants' names to threads of the project. The newest message that names an address decides. Names are read from messages
 * instead of being stored with the thread, so that no write and no erasure has to keep them.
 */
export async function withNames<One extends Thread>(
  db: Db,
  senderId: string,
  threads: readonly One[],
): Promise<NamedThread<One>[]> {
  const ids = JSON.stringify(threads.map(({ id }) => id));
  const rows = threads.length === 0 ? [] : await db.all<NameRow>(NAMES, [senderId, ids]);
  const named = new Map<string, Map<string, string>>(threads.map(({ id }) => [id, new Map()]));
  for (const { threadId, email, name } of rows) named.get(threadId)?.set(foldCase(email), name);
  return threads.map((thread) => ({ ...thread, participantNames: namesOf(thread, named.get(thread.id)) }));
}

interface NameRow {
  threadId: string;
  email: string;
  name: string;
}

/** A message names its sender and its first recipient. Those of further recipients are not worth reading a list of thousands. */
const NAMES = `WITH named AS (
    SELECT t.value AS threadId, m.id, m.from_email, m.from_name, m.to_list ->> '$[0].email' AS to_email,
      m.to_list ->> '$[0].name' AS to_name
    FROM json_each(?2) t JOIN messages m ON +m.sender_id = ?1 AND m.id IN (
      SELECT min(id) FROM messages WHERE thread_id = t.value
      UNION ALL SELECT id FROM (SELECT id FROM messages WHERE thread_id = t.value ORDER BY id DESC LIMIT ${MESSAGES_READ})))
  SELECT threadId, id, from_email AS email, from_name AS name FROM named WHERE from_name <> ''
  UNION ALL SELECT threadId, id, to_email, to_name FROM named WHERE to_name <> '' ORDER BY id`;

function namesOf({ participants }: Thread, names: ReadonlyMap<string, string> = new Map()) {
  return Object.fromEntries(
    participants.flatMap((email) => {
      const name = names.get(foldCase(email));
      return name === undefined ? [] : [[email, name]];
    }),
  );
}
