import type { Clock } from "../../core/clock.ts";
import type { EventType, MessageEvent } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { Job } from "../../queue/port.ts";
import type { Db, Guard, Statement } from "../../store/engine/client.ts";
import { insertEvents } from "../../store/events.ts";
import { listenersIn, noteFanOuts, type WebhooksOf } from "../../store/fan-outs.ts";
import { insertDeliveries, type NewDelivery, subscriptions } from "../../store/webhook-deliveries.ts";

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
 * Deliveries that a write makes itself, some ten milliseconds; more are left to `makeDeliveries`. A hundred mails to fifty
 * recipients each make ten thousand for each webhook, and everybody would wait for that.
 */
export const MAX_DELIVERIES_IN_WRITE = 500;

/** What happened to messages of a project, as events of now. */
export function eventsOf(clock: Clock, senderId: string, happenings: readonly Happening[]): MessageEvent[] {
  const now = clock.now();
  return happenings.map(({ messageId, type, email, data = {} }) => ({
    id: newId("evt", now),
    senderId,
    messageId,
    type,
    email,
    data,
    createdAt: now,
  }));
}

/**
 * The one door for events: stores them and, for every enabled webhook of the project that wants them, a delivery
 * that is due at once. With a guard, all of it only takes effect where the guard holds.
 */
export async function announce(
  deps: { db: Db; clock: Clock },
  senderId: string,
  happenings: readonly Happening[],
  guard?: Guard,
): Promise<Announcement> {
  if (happenings.length === 0) return { statements: [], pushes: [] };
  const webhooks = new Map([[senderId, await subscriptions(deps.db, senderId)]]);
  return announceEvents(deps.clock, eventsOf(deps.clock, senderId, happenings), webhooks, guard);
}

/**
 * The same for all events of one write, of whichever projects.
 * @param webhooks the projects' enabled webhooks, from a caller that has just read them
 */
export function announceEvents(
  clock: Clock,
  events: readonly MessageEvent[],
  webhooks: WebhooksOf,
  guard?: Guard,
): Announcement {
  if (events.length === 0) return { statements: [], pushes: [] };
  const stored = [...Map.groupBy(events, ({ messageId }) => messageId).values()].map((own) =>
    insertEvents(own, guard),
  );
  const listeners = listenersIn(webhooks);
  const count = events.reduce((sum, event) => sum + listeners(event).length, 0);
  if (count > MAX_DELIVERIES_IN_WRITE) {
    const heard = events.filter((event) => listeners(event).length > 0);
    return { statements: [...stored, ...noteFanOuts(heard, webhooks, guard)], pushes: [] };
  }
  const now = clock.now();
  const deliveries = events.flatMap((event) =>
    listeners(event).map(({ webhookId }) => ({ id: newId("dlv", now), webhookId, event })),
  );
  return {
    statements: [...stored, ...insertDeliveries(deliveries, now, guard)],
    pushes: pushesOf(deliveries),
  };
}

/** The jobs that push deliveries. */
export function pushesOf(deliveries: readonly NewDelivery[]): Job[] {
  return deliveries.map(({ id, webhookId }) => ({ key: id, lane: webhookId }));
}
