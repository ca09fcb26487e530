import { idCeiling } from "../../core/ids.ts";
import type { Db } from "../engine/client.ts";
import { type Place, pageOrder } from "../engine/place.ts";
import { type Message, MESSAGES } from "../messages/messages.ts";

/** Each list has an index with its messages alone, so that a page reads no others. */
const LISTS = {
  sent: "INDEXED BY messages_sent WHERE direction = 'outbound'",
  /** Messages that DMARC refused were not received. */
  received: "INDEXED BY messages_received WHERE direction = 'inbound' AND status = 'delivered'",
} as const;

/** Returns at most `take` of the project's sent or received messages, newest first, at a place. */
export async function listSentOrReceived(
  db: Db,
  senderId: string,
  list: keyof typeof LISTS,
  place: Place,
  take: number,
): Promise<Message[]> {
  const { range, order, from, newestFirst } = pageOrder(place, idCeiling("msg"));
  const page = `${LISTS[list]} AND sender_id = ? AND ${range} ${order} LIMIT ?`;
  return newestFirst(await MESSAGES.all(db, page, [senderId, from, take]));
}
