import type { Db } from "../engine/client.ts";
import { type Thread, THREADS } from "./threads.ts";

/** The changes that a client may make to a thread. A field that is left out stays as it is. */
export interface ThreadChanges {
  read?: boolean | undefined;
  archived?: boolean | undefined;
}

/**
 * Marks a thread of the project as read or unread, archives it or brings it back.
 * @returns the thread afterwards; null if the project has none with that id
 */
export function updateThread(
  db: Db,
  senderId: string,
  id: string,
  { read, archived }: ThreadChanges,
): Promise<Thread | null> {
  const [unread, put] = [
    read === undefined ? null : Number(!read),
    archived === undefined ? null : Number(archived),
  ];
  const set =
    "SET unread = COALESCE(?, unread), archived = COALESCE(?, archived) WHERE id = ? AND sender_id = ?";
  return THREADS.update(db, set, [unread, put, id, senderId]);
}
