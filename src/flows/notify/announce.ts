import type { Clock } from "../../core/clock.ts";
import type { EventType, MessageEvent } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { Job } from "../../queue/port.ts";
import type { Db, Guard, Statement } from "../../store/engine/client.ts";
import { insertEvents } from "../../store/events.ts";
import {
  fanOut,
  insertDeliveries,
  type Subscription,
  subscriptions,
} from "../../store/webhook-deliveries.ts";

/** What happened, before it has an id and a time. */
export interface Happening {
  messageId: string;
  type: EventType;
  email: string | null;
  data?: Record<string, unknown>;
}

/** Statements for the write that makes it true, and the pushes to hint at once that write is committed. */
export interface Announcement {
  statements: Statement[];
  pushes: Job[];
}

/**
 * The one door for events: stores them and, for every enabled webhook of the project that wants them, a delivery
 * that is due at once. With a guard, all of it only takes effect where the guard holds.
 * @param known the project's enabled webhooks, from a caller that has just read them
 */
export async function announce(
  deps: { db: Db; clock: Clock },
  senderId: string,
  happenings: readonly Happening[],
  guard?: Guard,
  known?: readonly Subscription[],
): Promise<Announcement> {
  if (happenings.length === 0) return { statements: [], pushes: [] };
  const now = deps.clock.now();
  const events = happenings.map(
    (happening): MessageEvent => ({
      id: newId("evt", now),
      senderId,
      messageId: happening.messageId,
      type: happening.type,
      email: happening.email,
      data: happening.data ?? {},
      createdAt: now,
    }),
  );
  const webhooks = known ?? (await subscriptions(deps.db, senderId));
  const deliveries = fanOut(events, webhooks, () => newId("dlv", now));
  const statements = [insertEvents(events, guard), ...insertDeliveries(deliveries, now, guard)];
  return { statements, pushes: deliveries.map(({ id, webhookId }) => ({ key: id, lane: webhookId })) };
}
