import { agree, differ } from "./agree.ts";
import { projectsOf, type Webhook, type World } from "./state.ts";
import { pendingDelivery } from "./webhooks.ts";

interface EventRow {
  id: string;
  sender_id: string;
  message_id: string;
  type: string;
}

interface DeliveryRow {
  id: string;
  webhook_id: string;
  sender_id: string;
  event_id: string;
  type: string;
}

interface Wanted {
  webhook: Webhook;
  event: EventRow;
}

const NEW_EVENTS = "SELECT id, sender_id, message_id, type FROM events WHERE id > ? ORDER BY id";
const NEW_DELIVERIES = `SELECT id, webhook_id, sender_id, event_id, type FROM webhook_deliveries
  WHERE id > ? AND event_id IS NOT NULL ORDER BY id`;

/** Every event since the last check has one delivery for each webhook that wanted it then, and none for another. */
export async function checkDeliveries(world: World): Promise<void> {
  const { seen, stage } = world;
  const events = await stage.db.all<EventRow>(NEW_EVENTS, [seen.event]);
  const rows = await stage.db.all<DeliveryRow>(NEW_DELIVERIES, [seen.delivery]);
  seen.event = events.at(-1)?.id ?? seen.event;
  seen.delivery = rows.at(-1)?.id ?? seen.delivery;
  const wanted = new Map<string, Wanted>(events.flatMap((event) => wantedOf(world, event)));
  if (rows.length !== wanted.size) differ(`${rows.length} new deliveries, the model says ${wanted.size}`);
  for (const row of rows) {
    const name = `${row.webhook_id} ${row.event_id}`;
    const found =
      wanted.get(name) ?? differ(`the delivery ${row.id} is of an event that its webhook did not want`);
    wanted.delete(name);
    const { webhook, event } = found;
    agree({ ...row }, { sender_id: event.sender_id, type: event.type }, `the delivery ${row.id}`);
    webhook.deliveries.push(pendingDelivery(row.id, row.type, event.message_id, stage.clock.now()));
  }
  const [left] = wanted.keys();
  if (left !== undefined) differ(`a webhook does not get an event: ${left}`);
}

/** The webhooks that want an event now, by webhook and event. */
function wantedOf(world: World, event: EventRow): [string, Wanted][] {
  return projectsOf(world)
    .filter(({ id }) => id === event.sender_id)
    .flatMap(({ webhooks }) => webhooks)
    .filter(
      ({ enabled, eventTypes }) => enabled && (eventTypes.includes("*") || eventTypes.includes(event.type)),
    )
    .map((webhook) => [`${webhook.id} ${event.id}`, { webhook, event }]);
}
