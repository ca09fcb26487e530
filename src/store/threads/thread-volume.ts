import type { Db, Guard } from "../engine/client.ts";

/** Ids of a period: from `floor` up to, but not including, `ceiling`. */
export interface Span {
  floor: string;
  ceiling: string;
}

const SENT = `SELECT count(*) FROM messages
  WHERE thread_id = ? AND sender_id = ? AND id >= ? AND id < ? AND direction = 'outbound'`;

/** Returns how many messages the project has sent in a thread within a period. */
export async function countSent(db: Db, senderId: string, threadId: string, span: Span): Promise<number> {
  const args = [threadId, senderId, span.floor, span.ceiling];
  return (await db.first<{ n: number }>(`SELECT (${SENT}) AS n`, args))?.n ?? 0;
}

/** Holds while the project has sent fewer than `most` messages in a thread within a period. */
export function fewSentGuard(senderId: string, threadId: string, span: Span, most: number): Guard {
  return { sql: `(${SENT}) < ?`, args: [threadId, senderId, span.floor, span.ceiling, most] };
}
