import { AppError, existing } from "../../core/errors.ts";
import { EVENT_TYPES, type EventType } from "../../core/messages/events.ts";
import { authenticatedSender } from "../../core/messages/sender.ts";
import { newId } from "../../core/ids.ts";
import type { Statement } from "../../store/engine/client.ts";
import {
  enabledGuard,
  insertOwnDelivery,
  replayDelivery,
  replayGuard,
} from "../../store/webhooks/delivery-log.ts";
import { noteChange } from "../../store/engine/audit-triggers.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import { getWebhook } from "../../store/webhooks/webhooks.ts";
import { hint } from "../../queue/hint.ts";
import { laneOf } from "./push-lanes.ts";
import type { Outbox } from "../outbox.ts";

/** A peer's answer, in a sample. */
const ACCEPTED = { mx: "mx.example.com", tls: "TLSv1.3", smtpCode: 250, response: "250 2.0.0 OK" };
const REFUSED = {
  smtpCode: 550,
  enhancedCode: "5.7.1",
  diagnostic: "550 5.7.1 Message refused by policy",
  mx: "mx.example.com",
};
/** An incoming message, in a sample. Its ids are made up, so no stored message can be read by them. */
const ARRIVED = {
  inboxId: `inb_${"0".repeat(26)}`,
  from: { email: "ada@example.com", name: "Ada" },
  to: [{ email: "support@example.com" }],
  subject: "Sample",
};
const VERDICTS = {
  spf: { result: "pass", domain: "example.com" },
  dkim: [{ result: "pass", domain: "example.com", selector: "s1" }],
  dmarc: { result: "pass", policy: "reject", domain: "example.com" },
  arc: { result: "none" },
};

/** Sample details that an event of each type has in its data. A type that is left out has none. */
const SAMPLE_DETAILS: Partial<Readonly<Record<EventType, (now: number) => Record<string, unknown>>>> = {
  sending: () => ({ attempt: 1 }),
  sent: () => ACCEPTED,
  delivery: () => ACCEPTED,
  bounce: () => ({
    type: "hard",
    category: "recipient",
    reason: "recipient",
    smtpCode: 550,
    enhancedCode: "5.1.1",
    diagnostic: "550 5.1.1 No such user",
    mx: "mx.example.com",
  }),
  complaint: () => ({ feedbackType: "abuse" }),
  delivery_delayed: (now) => ({
    attempt: 1,
    nextAttemptAt: new Date(now + SAMPLE_DELAY_MS).toISOString(),
    category: "policy",
    smtpCode: 451,
    enhancedCode: "4.7.1",
    diagnostic: "451 4.7.1 Greylisted",
    mx: "mx.example.com",
  }),
  rejected: () => ({ reason: "suppressed" }),
  rendering_failure: () => ({ reason: "the template is gone" }),
  failed: () => ({ reason: "policy", category: "policy", ...REFUSED }),
  open: () => ({ ip: "192.0.2.1", userAgent: "Sample/1.0", first: true, machine: false }),
  click: () => ({ url: "https://example.com/", ip: "192.0.2.1", userAgent: "Sample/1.0", machine: false }),
  unsubscribed: () => ({ how: "one_click" }),
  inbound_received: () => ({
    ...ARRIVED,
    threadId: `thr_${"0".repeat(26)}`,
    text: "Hello",
    html: null,
    truncated: false,
    attachments: [],
    auth: VERDICTS,
    spam: null,
    sender: { address: "ada@example.com", ...authenticatedSender(false) },
  }),
  inbound_rejected: () => ({
    reason: "dmarc",
    ...ARRIVED,
    auth: { ...VERDICTS, dkim: [], dmarc: { ...VERDICTS.dmarc, result: "fail" } },
  }),
};
/** Time until the next attempt, in a sample. */
const SAMPLE_DELAY_MS = 60_000;
/** Types of events that concern no recipient of a sent message. */
const INBOUND: ReadonlySet<EventType> = new Set<EventType>(["inbound_received", "inbound_rejected"]);

/**
 * Sends a sample of an event to a webhook, flagged as test mode. It uses the same push as other events.
 * @param type the type asked for; null for the first one that the webhook names
 * @param record statements for the same write, given the delivery's id and type
 * @throws AppError 409 if the webhook is disabled, 404 if it has just been deleted
 */
export async function sendSample(
  deps: Outbox,
  webhook: { senderId: string; id: string; enabled: boolean; eventTypes: readonly string[] },
  type: EventType | null,
  record: (sample: { id: string; type: EventType }) => readonly Statement[],
): Promise<void> {
  requireEnabled(webhook.enabled);
  const now = deps.clock.now();
  const wanted = type ?? firstType(webhook.eventTypes);
  const sample = { id: newId("dlv", now), type: wanted, data: sampleData(webhook.senderId, wanted, now) };
  const write = deps.db.write([
    requireGuard("webhook_disabled", enabledGuard(webhook.senderId, webhook.id)),
    insertOwnDelivery(webhook.senderId, webhook.id, sample, now),
    ...record(sample),
  ]);
  await write.catch(async (error: unknown) => {
    if (isBroken(error, "webhook_disabled")) await requireStillEnabled(deps, webhook);
    throw error;
  });
  hint(deps.queue, "push", [{ key: sample.id, lane: laneOf(webhook.senderId, webhook.id) }]);
}

/** Returns the first type that the webhook names. If it is subscribed to all, returns the type of a delivery. */
function firstType([first]: readonly string[]): EventType {
  return EVENT_TYPES.find((known) => known === first) ?? "delivery";
}

function sampleData(senderId: string, type: EventType, now: number): Record<string, unknown> {
  const details = SAMPLE_DETAILS[type]?.(now);
  return {
    messageId: newId("msg", now),
    senderId,
    ...(INBOUND.has(type) ? {} : { email: "recipient@example.com" }),
    occurredAt: new Date(now).toISOString(),
    tags: [],
    testMode: true,
    ...(details === undefined ? {} : { [type]: details }),
  };
}

const REPLAYED = { status: ["json_quote(row.status)", JSON.stringify("pending")] } as const;

/**
 * Pushes a delivery of the log once more, under its own id.
 * @throws AppError 409 if an attempt is in progress or the webhook is disabled, 404 if it has just been deleted
 */
export async function replay(
  deps: Outbox,
  webhook: { senderId: string; id: string; enabled: boolean },
  id: string,
  record: readonly Statement[],
): Promise<void> {
  requireEnabled(webhook.enabled);
  const { senderId } = webhook;
  const write = deps.db.write([
    requireGuard("delivery_not_replayable", replayGuard(senderId, webhook.id, id)),
    noteChange({ table: "webhook_deliveries", verb: "replay", senderId, id, changes: REPLAYED }),
    replayDelivery(senderId, webhook.id, id, deps.clock.now()),
    ...record,
  ]);
  await write.catch(async (error: unknown) => {
    if (!isBroken(error, "delivery_not_replayable")) throw error;
    await requireStillEnabled(deps, webhook);
    throw new AppError("conflict", "An attempt at this delivery is in progress.", { code: "invalid_state" });
  });
  hint(deps.queue, "push", [{ key: id, lane: laneOf(senderId, webhook.id) }]);
}

/** Throws the refusal of a webhook that has changed since it was read. */
async function requireStillEnabled(
  { db }: Outbox,
  { senderId, id }: { senderId: string; id: string },
): Promise<void> {
  const webhook = existing("webhook", await getWebhook(db, senderId, id));
  requireEnabled(webhook.enabled);
}

function requireEnabled(enabled: boolean): void {
  if (!enabled) throw new AppError("conflict", "The webhook is disabled.", { code: "invalid_state" });
}
