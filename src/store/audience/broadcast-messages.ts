import { idCeiling } from "../../core/ids.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import type { Db } from "../engine/client.ts";
import { type Place, pageOrder } from "../engine/place.ts";
import { firstWanted, ownedRows, type Scanned, scanInSteps } from "../matching/steps.ts";
import { type Condition, containsTextOrDomain } from "../matching/substring.ts";

/** A message of a broadcast. Times in milliseconds. */
export interface BroadcastMessage {
  id: string;
  email: string;
  /** Null: no contact has the address any more. */
  contactId: string | null;
  status: RecipientStatus;
  reason: string | null;
  /** Null: it has not bounced. */
  bounceType: "hard" | "soft" | null;
  /** Opens and clicks by people. */
  opens: number;
  clicks: number;
  lastEventAt: number | null;
}

const OF_TYPE = (type: string) => `FROM events v WHERE v.message_id = rows.id AND v.type = '${type}'`;

/** SQL of what may have become of a message. Several may hold. */
const OUTCOMES = {
  sent: "status IN ('sent', 'delivered', 'delivery_delayed', 'bounced', 'complained')",
  delivered: "status IN ('delivered', 'complained')",
  bounced: "status = 'bounced'",
  complained: "status = 'complained'",
  failed: "status IN ('failed', 'rejected', 'rendering_failure')",
  opened: "opens > 0",
  clicked: "clicks > 0",
  unsubscribed: `EXISTS (SELECT 1 ${OF_TYPE("unsubscribed")})`,
} as const;
export type BroadcastOutcome = keyof typeof OUTCOMES;
export const BROADCAST_OUTCOMES = Object.keys(OUTCOMES) as BroadcastOutcome[];

/** A filter of a list of messages. All that is given must hold. */
export interface BroadcastMessageFilter {
  outcome?: BroadcastOutcome | undefined;
  /** Reasons of the status. */
  reasons?: readonly string[] | undefined;
  bounceType?: BroadcastMessage["bounceType"] | undefined;
  /** A part of the address. */
  email?: string | undefined;
}

const ROWS = `(SELECT b.broadcast_id, b.message_id AS id, r.sender_id, r.email, r.status, r.reason, r.last_event_at AS lastEventAt,
    COALESCE(e.opens, 0) AS opens, COALESCE(e.clicks, 0) AS clicks
  FROM broadcast_messages b JOIN recipients r ON r.message_id = b.message_id
    LEFT JOIN engagement e ON e.message_id = r.message_id AND e.ord = r.ord) rows`;
const BOUNCE_TYPE = `CASE status WHEN 'bounced' THEN (SELECT v.data ->> '$.bounce.type' ${OF_TYPE("bounce")} LIMIT 1) END`;
const COLUMNS = `id, email, status, reason, opens, clicks, lastEventAt, ${BOUNCE_TYPE} AS bounceType,
  (SELECT c.id FROM contacts c WHERE c.sender_id = rows.sender_id AND c.email_key = lower(rows.email)) AS contactId`;

/** Returns at most `take` messages of a broadcast of the project that pass the filter, newest first, at a place. */
export async function listBroadcastMessages(
  db: Db,
  { senderId, broadcastId }: { senderId: string; broadcastId: string },
  { outcome, reasons, bounceType, email }: BroadcastMessageFilter,
  place: Place,
  take: number,
): Promise<Scanned<BroadcastMessage>> {
  const where: Condition[] = [];
  if (outcome !== undefined) where.push({ sql: OUTCOMES[outcome], args: [] });
  if (reasons !== undefined)
    where.push({ sql: "reason IN (SELECT value FROM json_each(?))", args: [JSON.stringify(reasons)] });
  if (bounceType !== undefined) where.push({ sql: `${BOUNCE_TYPE} = ?`, args: [bounceType] });
  const text = email === undefined ? undefined : containsTextOrDomain(["email"], ["email"], email);
  const owner = { sql: "sender_id = ? AND broadcast_id = ?", args: [senderId, broadcastId] };
  const order = pageOrder(place, idCeiling("msg"));
  const list = ownedRows<BroadcastMessage>(db, { from: ROWS, columns: COLUMNS, owner, where, text, order });
  const find = where.length === 0 && text === undefined ? firstWanted : scanInSteps;
  const { rows, stoppedAt } = await find(list, order.from, take);
  return { rows: order.newestFirst(rows), stoppedAt };
}

/** How often a recipient clicked a link. */
export interface ClickedLink {
  id: string;
  url: string;
  clicks: number;
}

/** Returns the links that people clicked in messages of the project, and how often each, by message id. */
export function clickedLinks(db: Db, senderId: string, ids: readonly string[]): Promise<ClickedLink[]> {
  return db.all(
    `SELECT v.message_id AS id, v.data ->> '$.click.url' AS url, COUNT(*) AS clicks
      FROM json_each(?) j CROSS JOIN events v ON v.message_id = j.value
      WHERE v.sender_id = ? AND v.type = 'click' AND v.data ->> '$.click.machine' = 0 GROUP BY v.message_id, url`,
    [JSON.stringify(ids), senderId],
  );
}
