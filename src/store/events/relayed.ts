import type { Db, Guard } from "../engine/client.ts";
import { reportGuard } from "../messages/outbox.ts";
import { type Recipient, RECIPIENTS } from "../messages/recipients.ts";

/** Maximum number of recipients that one id of a relay names. */
const MAX_NAMED = 1000;

/** Returns the recipients whose message a route's relay took under an id, newest message first. */
export function recipientsRelayed(db: Db, routeId: string, relayId: string): Promise<Recipient[]> {
  return RECIPIENTS.all(
    db,
    `WHERE (message_id, ord) IN (SELECT message_id, ord FROM attempts WHERE relay_id = ? AND route_id = ?)
      ORDER BY message_id DESC, ord LIMIT ?`,
    [relayId, routeId, MAX_NAMED],
  );
}

/** Maximum number of delays that are recorded of a recipient after its relay took the message. */
export const MAX_DELAYS = 20;

/** Holds while a relay still has the recipient's message, and this delay says something new. */
export function newDelayGuard(recipient: Recipient, diagnostic: string | null): Guard {
  const { sql, args } = reportGuard(recipient);
  const { messageId, email } = recipient;
  const delays = "FROM events WHERE message_id = ? AND type = 'delivery_delayed' AND email = ?";
  return {
    sql: `${sql} AND NOT EXISTS (SELECT 1 ${delays} AND data ->> '$.delivery_delayed.diagnostic' IS ?)
      AND (SELECT count(*) ${delays}) < ${MAX_DELAYS}`,
    args: [...args, messageId, email, diagnostic, messageId, email],
  };
}
