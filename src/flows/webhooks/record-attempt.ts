import { type RetrySchedule, retryDelayMs } from "../../core/time/retry-schedule.ts";
import { log } from "../../log.ts";
import type { PostOutcome } from "../../net/post.ts";
import type { Statement, Store } from "../../store/engine/client.ts";
import { type DeliveryResult, settleDelivery } from "../../store/webhooks/delivery-results.ts";
import type { PushTarget, WebhookDelivery } from "../../store/webhooks/webhook-deliveries.ts";
import {
  disableWebhook,
  type DisablingCondition,
  noteWebhookFailure,
  noteWebhookSuccess,
} from "../../store/webhooks/webhooks.ts";

/** Rules for what follows an attempt. */
export interface AttemptPolicy {
  /** Delays before each attempt, the first included. After the last attempt the delivery fails. */
  delaysSeconds: readonly number[];
  /** Time after which a webhook is disabled if all its deliveries fail. */
  disableAfterMs: number;
}

export interface RecordDeps extends Store {
  instanceId: string;
  policy: AttemptPolicy;
  /** Numbers in [0, 1), for jitter. */
  random: () => number;
}

/** HTTP status of an endpoint that is gone for good (RFC 9110 §15.5.11). */
const GONE = 410;

/** The outcome of an attempt that failed on our side. */
export const OUR_FAULT: PostOutcome = { kind: "failed", reason: "internal error" };

export function isSuccess(outcome: PostOutcome): boolean {
  return outcome.kind === "answered" && outcome.status >= 200 && outcome.status <= 299;
}

interface Ended {
  delivery: WebhookDelivery;
  target: PushTarget;
  outcome: PostOutcome;
  now: number;
}

/** Records an attempt: the delivery with its next due time, and the health of its webhook. */
export async function recordAttempt(
  deps: RecordDeps,
  delivery: WebhookDelivery,
  target: PushTarget,
  outcome: PostOutcome,
): Promise<void> {
  const ended: Ended = { delivery, target, outcome, now: deps.clock.now() };
  const result: DeliveryResult = {
    ...nextStep(deps, ended),
    httpStatus: outcome.kind === "answered" ? outcome.status : null,
    response: outcome.kind === "answered" ? textOf(outcome.body) : null,
    error: outcome.kind === "failed" ? outcome.reason : null,
  };
  const settled = settleDelivery(delivery, deps.instanceId, result);
  const disabled = reasonToDisable(deps, ended);
  const health = disabled === null ? recordHealth(ended) : [disabling(ended, disabled)];
  const written = await deps.db.write([settled, ...health]);
  // The owner sees it in the webhook. The operator sees it only in this log line.
  if (disabled !== null && written[1]?.changes === 1)
    log("webhook").warn("webhook disabled", { webhookId: delivery.webhookId, reason: disabled.reason });
}

/** Returns the text of an answer. If it was cut within a character, the rest of that one is dropped. */
function textOf(body: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(body, { stream: true }).replaceAll("\0", "");
}

function nextStep(
  deps: RecordDeps,
  { delivery, outcome, now }: Ended,
): Pick<DeliveryResult, "status" | "dueAt"> {
  if (isSuccess(outcome)) return { status: "succeeded", dueAt: null };
  const { delaysSeconds } = deps.policy;
  const gone = outcome.kind === "answered" && outcome.status === GONE;
  if (gone || delivery.attempts >= delaysSeconds.length) return { status: "failed", dueAt: null };
  // The first delay is before attempt 1, so after attempt n the next delay has index n.
  const schedule: RetrySchedule = { delaysSeconds: delaysSeconds.slice(1), jitter: 0.2, onlyLonger: true };
  const delay = retryDelayMs(schedule, delivery.attempts, deps.random());
  const asked = outcome.kind === "answered" ? (outcome.retryAfterSeconds ?? 0) * 1000 : 0;
  return { status: "pending", dueAt: now + Math.max(delay, asked) };
}

/** The reason to disable a webhook, and the condition that must still hold then. */
interface Disabling {
  where: DisablingCondition;
  reason: string;
}

/**
 * Returns the reason to disable a webhook: its endpoint said 410, or has only failed for days. Returns null for any
 * other.
 */
function reasonToDisable(deps: RecordDeps, { target, outcome, now }: Ended): Disabling | null {
  const { failingSince, updatedAt } = target;
  if (isSuccess(outcome) || outcome === OUR_FAULT) return null;
  if (outcome.kind === "answered" && outcome.status === GONE)
    return { where: { updatedAt }, reason: "the endpoint answered 410 Gone" };
  const since = now - deps.policy.disableAfterMs;
  if (failingSince === null || failingSince > since) return null;
  return { where: { failingSince: since }, reason: "the endpoint has only failed for too long" };
}

function disabling({ delivery, now }: Ended, { where, reason }: Disabling): Statement {
  return disableWebhook(delivery.senderId, delivery.webhookId, where, reason, now);
}

/**
 * Records the first of several failures, and their end, even if they started after this attempt. A failure on our side
 * tells nothing about the endpoint.
 */
function recordHealth({ delivery, target, outcome, now }: Ended): Statement[] {
  const { senderId, webhookId } = delivery;
  const { url, failingSince } = target;
  if (isSuccess(outcome)) return [noteWebhookSuccess(senderId, webhookId, url)];
  if (outcome === OUR_FAULT) return [];
  return failingSince === null ? [noteWebhookFailure(senderId, webhookId, url, now)] : [];
}
