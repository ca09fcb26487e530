import type { Clock } from "../../core/clock.ts";
import { type RetrySchedule, retryDelayMs } from "../../core/retry.ts";
import { unseal } from "../../core/secretbox.ts";
import { SIGNATURE_HEADER, signWebhook } from "../../core/signature.ts";
import { log } from "../../log.ts";
import type { PostOutcome, PostRequest } from "../../net/post.ts";
import type { Job } from "../../queue/port.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import type { ContentDeps } from "../../store/contents/content-read.ts";
import {
  claimDelivery,
  claimedDelivery,
  delayFirstAttempt,
  type DeliveryResult,
  type PushTarget,
  pushTarget,
  settleDelivery,
  type WebhookDelivery,
} from "../../store/webhook-deliveries.ts";
import {
  disableWebhook,
  type DisablingCondition,
  noteWebhookFailure,
  noteWebhookSuccess,
} from "../../store/webhooks.ts";
import { untilWritten } from "../until-written.ts";
import { payloadData } from "./payload.ts";

export interface PushPolicy {
  /** Delays before each attempt, the first included; after the last, given up. */
  delaysSeconds: readonly number[];
  timeoutMs: number;
  /** Time of failures only after which a webhook is disabled. */
  disableAfterMs: number;
  /** Lets URLs be http and addresses private; for development. */
  allowPrivate: boolean;
}

/** What came of a try: a 2xx, another answer, none. */
export type PushOutcome = "succeeded" | "refused" | "failed";

/** Is told of tries, for counters. Times are seconds. */
export interface PushMeter {
  /** A delivery is taken up for the first time. */
  claimed(waitedSeconds: number): void;
  tried(seconds: number, outcome: PushOutcome): void;
}

export interface PushDeps extends ContentDeps {
  db: Db;
  clock: Clock;
  instanceId: string;
  boxKey: Uint8Array;
  post: (request: PostRequest) => Promise<PostOutcome>;
  policy: PushPolicy;
  /** Numbers in [0, 1), for jitter. */
  random: () => number;
  meter?: PushMeter;
}

/** How a push names itself to endpoints. */
const USER_AGENT = "Postrider-Webhooks/1";
/** HTTP status by which an endpoint says that it is gone for good (RFC 9110 §15.5.11). */
const GONE = 410;

/** One attempt at one webhook delivery: claim, sign now, post, record. */
export async function push(deps: PushDeps, job: Job): Promise<void> {
  const claimed = (await deps.db.write(claim(deps, job.key))).at(-1)?.rows[0];
  if (claimed === undefined) return;
  const delivery = claimedDelivery(claimed);
  if (delivery.attempts === 1 && !delivery.tried)
    deps.meter?.claimed((deps.clock.now() - delivery.createdAt) / 1000);
  const data = await readData(deps, delivery);
  // Last, for the data may be long in coming: a webhook that is switched off by then is to hear nothing more.
  const target = await pushTarget(deps.db, delivery.senderId, delivery.webhookId);
  if (target === null || !target.enabled || data === null) {
    const error = target?.enabled ? "the message is gone" : "the webhook is disabled";
    await deps.db.write([
      settleDelivery(delivery, deps.instanceId, {
        status: "failed",
        dueAt: null,
        httpStatus: null,
        response: null,
        error,
      }),
    ]);
    return;
  }
  const startedAt = deps.clock.now();
  const outcome = data === UNREADABLE ? OUR_FAULT : await attempt(deps, delivery, target, data);
  tellTry(deps, delivery, outcome, deps.clock.now() - startedAt);
  await untilWritten(deps.clock, () => record(deps, delivery, target, outcome));
}

/** Takes the delivery, last of the statements; one whose first attempt has a delay before it waits until then. */
function claim({ clock, instanceId, policy }: PushDeps, id: string): Statement[] {
  const [firstDelaySeconds = 0] = policy.delaysSeconds;
  const claiming = claimDelivery(id, instanceId, clock.now());
  return firstDelaySeconds === 0 ? [claiming] : [delayFirstAttempt(id, firstDelaySeconds * 1000), claiming];
}

/** What stands for the data of a push while it cannot be read. */
const UNREADABLE = "unreadable";
const OUR_FAULT: PostOutcome = { kind: "failed", reason: "internal error" };

/** The payload's data. Where the object store that has a body is out of reach, the push is tried again like any other. */
async function readData(
  deps: PushDeps,
  delivery: WebhookDelivery,
): Promise<Record<string, unknown> | typeof UNREADABLE | null> {
  try {
    return await payloadData(deps, delivery);
  } catch (error) {
    log("webhook").error("a push failed", { deliveryId: delivery.id, error: String(error) });
    return UNREADABLE;
  }
}

/** Counts a try, and logs it without the URL, which may hold a secret of its owner's. */
function tellTry({ meter }: PushDeps, delivery: WebhookDelivery, outcome: PostOutcome, ms: number): void {
  const { id: deliveryId, messageId } = delivery;
  const name = outcome.kind === "failed" ? "failed" : isSuccess(outcome) ? "succeeded" : "refused";
  meter?.tried(ms / 1000, name);
  log("webhook").debug("tried", { deliveryId, messageId, outcome: name, ms });
}

function isSuccess(outcome: PostOutcome): boolean {
  return outcome.kind === "answered" && outcome.status >= 200 && outcome.status <= 299;
}

/** Signs and posts. What fails on our side is a failed attempt like any other: it is logged and tried again. */
async function attempt(
  deps: PushDeps,
  delivery: WebhookDelivery,
  target: PushTarget,
  data: Record<string, unknown>,
): Promise<PostOutcome> {
  const now = deps.clock.now();
  const sealed = [target.secret];
  if (target.previousSecret !== null && (target.previousSecretUntil ?? 0) > now)
    sealed.push(target.previousSecret);
  try {
    const secrets = sealed.map((secret) => unseal(deps.boxKey, secret));
    return await deps.post(requestOf(deps, delivery, data, { url: target.url, secrets, now }));
  } catch (error) {
    log("webhook").error("a push failed", { deliveryId: delivery.id, error: String(error) });
    return OUR_FAULT;
  }
}

/** The signed request. `createdAt` and `t` are the second of this attempt, so a receiver's age check passes in a retry. */
function requestOf(
  deps: PushDeps,
  delivery: WebhookDelivery,
  data: Record<string, unknown>,
  { url, secrets, now }: { url: string; secrets: readonly string[]; now: number },
): PostRequest {
  const unixSeconds = Math.floor(now / 1000);
  const createdAt = new Date(unixSeconds * 1000).toISOString();
  const body = JSON.stringify({ id: delivery.id, type: delivery.type, createdAt, data });
  return {
    url,
    headers: {
      "Content-Type": "application/json",
      "User-Agent": USER_AGENT,
      [SIGNATURE_HEADER]: signWebhook(secrets, unixSeconds, body),
    },
    body,
    timeoutMs: deps.policy.timeoutMs,
    allowPrivate: deps.policy.allowPrivate,
  };
}

/** An attempt that has ended. */
interface Ended {
  delivery: WebhookDelivery;
  target: PushTarget;
  outcome: PostOutcome;
  now: number;
}

async function record(
  deps: PushDeps,
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
  const why = whyToDisable(deps, ended);
  const health = why === null ? healthNote(ended) : [disabling(ended, why)];
  const written = await deps.db.write([settled, ...health]);
  // Whoever reads its webhook learns of it, and else the log alone tells.
  if (why !== null && written[1]?.changes === 1)
    log("webhook").warn("webhook disabled", { webhookId: delivery.webhookId, reason: why.reason });
}

/** The text of an answer that may have been cut within a character: what is left of that one is no part of it. */
function textOf(body: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(body, { stream: true }).replaceAll("\0", "");
}

function nextStep(
  deps: PushDeps,
  { delivery, outcome, now }: Ended,
): Pick<DeliveryResult, "status" | "dueAt"> {
  if (isSuccess(outcome)) return { status: "succeeded", dueAt: null };
  const { delaysSeconds } = deps.policy;
  const gone = outcome.kind === "answered" && outcome.status === GONE;
  if (gone || delivery.attempts >= delaysSeconds.length) return { status: "failed", dueAt: null };
  // The delay before attempt n+1 is the n+1st of the list: after the failed attempt n, that is index n.
  const schedule: RetrySchedule = { delaysSeconds: delaysSeconds.slice(1), jitter: 0.2, onlyLonger: true };
  const delay = retryDelayMs(schedule, delivery.attempts, deps.random());
  const asked = outcome.kind === "answered" ? (outcome.retryAfterSeconds ?? 0) * 1000 : 0;
  return { status: "pending", dueAt: now + Math.max(delay, asked) };
}

/** Why a webhook is switched off, with what must still hold of it then. */
interface Disabling {
  where: DisablingCondition;
  reason: string;
}

/** An endpoint that says 410, or has only failed for days, is switched off with the reason beside it; null for any other. */
function whyToDisable(deps: PushDeps, { target, outcome, now }: Ended): Disabling | null {
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
 * The first failure of a row of them is noted, and its end: of one, too, that has begun since the attempt did. What fails on
 * our side says nothing of the endpoint.
 */
function healthNote({ delivery, target, outcome, now }: Ended): Statement[] {
  const { senderId, webhookId } = delivery;
  const { url, failingSince } = target;
  if (isSuccess(outcome)) return [noteWebhookSuccess(senderId, webhookId, url)];
  if (outcome === OUR_FAULT) return [];
  return failingSince === null ? [noteWebhookFailure(senderId, webhookId, url, now)] : [];
}
