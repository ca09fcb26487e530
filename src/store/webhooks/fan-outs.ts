import { type MessageEvent, subscribes } from "../../core/messages/events.ts";
import { resendName } from "../../core/messages/resend-events.ts";
import { ALWAYS, type Db, type Guard, type Statement } from "../engine/client.ts";
import type { NewDelivery, Subscription, EventRef } from "./webhook-deliveries.ts";

/** The enabled webhooks of projects, by the project's id. */
export type WebhooksOf = ReadonlyMap<string, readonly Subscription[]>;

/** Returns a function that finds the webhooks for an event, and remembers them by project and name of event. */
export function listenersIn(webhooks: WebhooksOf): (event: MessageEvent) => readonly Subscription[] {
  const known = new Map<string, readonly Subscription[]>();
  return (event) => {
    const { senderId, type } = event;
    const name = resendName(event);
    const key = `${senderId} ${type} ${name}`;
    let listeners = known.get(key);
    if (listeners === undefined) {
      listeners = (webhooks.get(senderId) ?? []).filter(({ eventTypes }) =>
        subscribes(eventTypes, { type, resendName: name }),
      );
      known.set(key, listeners);
    }
    return listeners;
  };
}

/** Events of one note, or as many as there are webhooks if there are more: each slice of the deliveries reads both. */
const EVENTS_PER_NOTE = 500;

/**
 * Returns the statements that note events, so that their deliveries are made later. Each event must have a webhook
 * that wants it. With a guard, they take effect only if it holds.
 */
export function noteFanOuts(
  events: readonly MessageEvent[],
  webhooks: WebhooksOf,
  guard?: Guard,
): Statement[] {
  return [...Map.groupBy(events, ({ senderId }) => senderId)].flatMap(([senderId, own]) => {
    const names = new Map(own.map((event) => [`${event.type} ${resendName(event)}`, namesOf(event)]));
    const listeners = (webhooks.get(senderId) ?? []).filter(({ eventTypes }) =>
      [...names.values()].some((name) => subscribes(eventTypes, name)),
    );
    const perNote = Math.max(EVENTS_PER_NOTE, listeners.length);
    const list = JSON.stringify(listeners);
    return Array.from({ length: Math.ceil(own.length / perNote) }, (_, at) =>
      note(senderId, own.slice(at * perNote, (at + 1) * perNote), list, guard),
    );
  });
}

function namesOf(event: MessageEvent) {
  return { type: event.type, resendName: resendName(event) };
}

function note(
  senderId: string,
  events: readonly MessageEvent[],
  webhooks: string,
  guard: Guard = ALWAYS,
): Statement {
  const messageIds = events.map(({ messageId }) => messageId).sort();
  const list = JSON.stringify(
    events.map((event) => ({ id: event.id, messageId: event.messageId, ...namesOf(event) })),
  );
  return {
    sql: `INSERT INTO fan_outs (sender_id, id, first_message, last_message, webhooks, events)
      SELECT ?, ?, ?, ?, ?, ? WHERE ${guard.sql}`,
    args: [
      senderId,
      events[0]?.id ?? "",
      messageIds[0] ?? "",
      messageIds.at(-1) ?? "",
      webhooks,
      list,
      ...guard.args,
    ],
  };
}

/** Deliveries that will be made later: one of each event for each of the webhooks that want it. */
export interface FanOut {
  senderId: string;
  id: string;
  webhooks: readonly Subscription[];
  events: readonly EventRef[];
  /** Pairs of event and webhook that are done, event by event. */
  done: number;
}

interface Row {
  sender_id: string;
  id: string;
  webhooks: string;
  events: string;
  done: number;
}

/** Returns the oldest fan-out of the first project after an id, for workers; null if there is none. */
export async function nextFanOut(db: Db, afterProject: string): Promise<FanOut | null> {
  const row = await db.first<Row>(
    `SELECT sender_id, id, webhooks, events, done FROM fan_outs
      WHERE sender_id > ? ORDER BY sender_id, id LIMIT 1`,
    [afterProject],
  );
  if (row === null) return null;
  const { sender_id: senderId, id, done } = row;
  const events: Omit<EventRef, "senderId">[] = JSON.parse(row.events);
  return {
    senderId,
    id,
    webhooks: JSON.parse(row.webhooks),
    events: events.map((event) => ({ ...event, senderId })),
    done,
  };
}

/** The condition that no fan-out will make a delivery for a message `m`. */
export const FANNED_OUT = `NOT EXISTS (SELECT 1 FROM fan_outs f
  WHERE f.sender_id = m.sender_id AND f.first_message <= m.id AND f.last_message >= m.id)`;

/** Holds while no other process has continued the fan-out. */
export function untouchedGuard({ senderId, id, done }: FanOut): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM fan_outs WHERE sender_id = ? AND id = ? AND done = ?)",
    args: [senderId, id, done],
  };
}

/**
 * Returns the statement that notes how far a fan-out has come, or deletes it at its end. It changes nothing if another
 * process has continued it.
 */
export function advanceFanOut({ senderId, id, done, events, webhooks }: FanOut, to: number): Statement {
  const where = "WHERE sender_id = ? AND id = ? AND done = ?";
  return to < events.length * webhooks.length
    ? { sql: `UPDATE fan_outs SET done = ? ${where}`, args: [to, senderId, id, done] }
    : { sql: `DELETE FROM fan_outs ${where}`, args: [senderId, id, done] };
}

/** Returns the next deliveries of a fan-out, at most `limit`, and how far it has come with them. */
export function nextDeliveries(
  { events, webhooks, done }: FanOut,
  limit: number,
  newDeliveryId: () => string,
): { deliveries: NewDelivery[]; to: number } {
  const deliveries: NewDelivery[] = [];
  let to = done;
  for (; deliveries.length < limit; to++) {
    const event = events[Math.floor(to / webhooks.length)];
    const webhook = webhooks[to % webhooks.length];
    if (event === undefined || webhook === undefined) break;
    if (subscribes(webhook.eventTypes, event))
      deliveries.push({ id: newDeliveryId(), webhookId: webhook.webhookId, event });
  }
  return { deliveries, to };
}
