import type { Clock } from "../../core/time/clock.ts";
import type { EventType, MessageEvent } from "../../core/messages/events.ts";
import { newId } from "../../core/ids.ts";
import { hint } from "../../queue/hint.ts";
import type { Job, Queue } from "../../queue/port.ts";
import type { Db, Guard, Statement, Written, Store } from "../../store/engine/client.ts";
import { insertEvents } from "../../store/events/events.ts";
import { listenersIn, noteFanOuts, type WebhooksOf } from "../../store/webhooks/fan-outs.ts";
import {
  insertDeliveries,
  type NewDelivery,
  subscriptions,
} from "../../store/webhooks/webhook-deliveries.ts";
import { laneOf } from "./push-lanes.ts";

/** An event before it has an id and a time. */
export interface EventDraft {
  messageId: string;
  type: EventType;
  email: string | null;
  data?: Record<string, unknown>;
}

/** Statements for the write that makes the events true, and the pushes to hint after that write is committed. */
export interface Announcement {
  statements: Statement[];
  pushes: Job[];
}

/**
 * Deliveries that one write makes itself, which takes about ten milliseconds. More are left to `makeDeliveries`: a
 * hundred messages to fifty recipients each make ten thousand deliveries per webhook, and all other writes would wait.
 */
export const MAX_DELIVERIES_IN_WRITE = 500;

/** Returns the drafts as events of a project that happen now. */
export function eventsOf(clock: Clock, senderId: string, drafts: readonly EventDraft[]): MessageEvent[] {
  const now = clock.now();
  return drafts.map(({ messageId, type, email, data = {} }) => ({
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
 * Announces events. All events go through here. Stores them and, for each enabled webhook of the project that is
 * subscribed to them, a delivery that is due at once. If a guard is given, all of it takes effect only if the guard
 * holds.
 */
export async function announce(
  deps: Store,
  senderId: string,
  drafts: readonly EventDraft[],
  guard?: Guard,
): Promise<Announcement> {
  if (drafts.length === 0) return { statements: [], pushes: [] };
  const webhooks = new Map([[senderId, await subscriptions(deps.db, senderId)]]);
  return announceEvents(deps.clock, eventsOf(deps.clock, senderId, drafts), webhooks, guard);
}

/**
 * Announces all events of one write, which may belong to several projects.
 * @param webhooks the projects' enabled webhooks, from a caller that has just read them
 */
export function announceEvents(
  clock: Clock,
  events: readonly MessageEvent[],
  webhooks: WebhooksOf,
  guard?: Guard,
): Announcement {
  if (events.length === 0) return { statements: [], pushes: [] };
  const stored =
    events.length === 1
      ? [insertEvents(events, guard)]
      : [...Map.groupBy(events, ({ messageId }) => messageId).values()].map((own) =>
          insertEvents(own, guard),
        );
  if ([...webhooks.values()].every((subscribed) => subscribed.length === 0))
    return { statements: stored, pushes: [] };
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

/**
 * Writes an announcement between other statements and hints its pushes once all of it is committed.
 * @returns what the statements of `before`, the announcement and `after` wrote, in this order
 */
export async function writeAnnounced(
  { db, queue }: { db: Db; queue: Queue },
  { statements, pushes }: Announcement,
  { before = [], after = [] }: { before?: readonly Statement[]; after?: readonly Statement[] },
): Promise<Written[]> {
  const written = await db.write([...before, ...statements, ...after]);
  hint(queue, "push", pushes);
  return written;
}

/** Returns the jobs that push deliveries. */
export function pushesOf(deliveries: readonly NewDelivery[]): Job[] {
  return deliveries.map(({ id, webhookId, event }) => ({ key: id, lane: laneOf(event.senderId, webhookId) }));
}
