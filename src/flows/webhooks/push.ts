import type { Key } from "../../core/crypto/key-ring.ts";
import { unseal } from "../../core/crypto/secretbox.ts";
import { SIGNATURE_HEADER, signResendWebhook, signWebhook } from "../../core/crypto/webhook-signature.ts";
import type { Clock } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import type { PostOutcome, PostRequest } from "../../net/post.ts";
import type { Job } from "../../queue/port.ts";
import type { Statement, Store } from "../../store/engine/client.ts";
import { settleDelivery } from "../../store/webhooks/delivery-results.ts";
import {
  claimDelivery,
  claimedDelivery,
  delayFirstAttempt,
  type PushTarget,
  pushTarget,
  type WebhookDelivery,
} from "../../store/webhooks/webhook-deliveries.ts";
import { deliveryBody, deliveryPayload } from "./delivery-body.ts";
import type { JobReport } from "./push-lanes.ts";
import {
  type AttemptPolicy,
  isSuccess,
  OUR_FAULT,
  recordAttempt,
  type RecordDeps,
} from "./record-attempt.ts";
import { retryWrite } from "../../store/engine/retry-write.ts";
import type { PayloadDeps } from "./payload.ts";
import type { SharedPayload } from "./shared-payloads.ts";

export interface PushPolicy extends AttemptPolicy {
  timeoutMs: number;
  /** Allows http URLs and private addresses, for development. */
  allowPrivate: boolean;
}

/** The result of an attempt: a 2xx, another answer, or none. */
export type PushOutcome = "succeeded" | "refused" | "failed";

/** Counts attempts. Times are seconds. */
export interface PushMeter {
  /** Counts a delivery that is claimed for the first time. */
  claimed(waitedSeconds: number): void;
  tried(seconds: number, outcome: PushOutcome): void;
}

export interface PushDeps extends PayloadDeps, RecordDeps, Store {
  boxKey: Key;
  post: (request: PostRequest) => Promise<PostOutcome>;
  policy: PushPolicy;
  meter?: PushMeter;
  /** The endpoints' time, if a test has set `clock` forward. They refuse what was signed minutes before or after it. */
  endpointClock?: Clock;
}

/** User-Agent of pushes. */
const USER_AGENT = "Postrider-Webhooks/1";
/** HTTP status of an endpoint that gets more requests than it takes (RFC 6585 §4). */
const TOO_MANY_REQUESTS = 429;

/** A delivery, and the time of its claim, which the log shows and the body has. */
type Claimed = WebhookDelivery & { claimedAt: number };

/**
 * Makes one attempt at one webhook delivery: claim, sign, post, record. Returns the endpoint's answer for its lane.
 */
export async function push(deps: PushDeps, job: Job): Promise<JobReport | null> {
  const claimedAt = deps.clock.now();
  const claimed = (await deps.db.write(claim(deps, job.key, claimedAt))).at(-1)?.rows[0];
  if (claimed === undefined) return null;
  const delivery = { ...claimedDelivery(claimed), claimedAt };
  if (delivery.attempts === 1 && !delivery.tried)
    deps.meter?.claimed((deps.clock.now() - delivery.createdAt) / 1000);
  const payload = await readPayload(deps, delivery);
  try {
    return await pushClaimed(deps, delivery, payload);
  } finally {
    if (payload !== UNREADABLE) payload?.release();
  }
}

async function pushClaimed(
  deps: PushDeps,
  delivery: Claimed,
  payload: SharedPayload | typeof UNREADABLE | null,
): Promise<JobReport | null> {
  // URL and right are of one row, so no push uses an old URL with a new right. Read last, because the payload may take
  // long: a webhook that was disabled in the meantime must get nothing more.
  const target = await pushTarget(deps.db, delivery.senderId, delivery.webhookId);
  if (target === null || !target.enabled || payload === null) {
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
    return null;
  }
  if (payload !== UNREADABLE && payload.turn !== null) await payload.turn();
  const startedAt = deps.clock.elapsed();
  const outcome =
    payload === UNREADABLE
      ? OUR_FAULT
      : await attempt(deps, delivery, target, payload.octets(target.content));
  const ms = deps.clock.elapsed() - startedAt;
  countAttempt(deps, delivery, outcome, ms);
  await retryWrite(deps.clock, () => recordAttempt(deps, delivery, target, outcome));
  return reportOf(outcome, ms);
}

/** Returns whether the endpoint can take more pushes. A refusal such as 404 does not say, so it returns null. */
function reportOf(outcome: PostOutcome, ms: number): JobReport | null {
  if (outcome === OUR_FAULT) return null;
  if (isSuccess(outcome)) return { well: true, ms };
  const { status } = outcome.kind === "answered" ? outcome : { status: null };
  const isOverloaded = status === null || status === TOO_MANY_REQUESTS || status >= 500;
  return isOverloaded ? { well: false, ms } : null;
}

/**
 * Returns the statements of the claim, which is the last. If the first attempt has a delay, the delivery waits until
 * then.
 */
function claim({ instanceId, policy }: PushDeps, id: string, now: number): Statement[] {
  const [firstDelaySeconds = 0] = policy.delaysSeconds;
  const claiming = claimDelivery(id, instanceId, now);
  return firstDelaySeconds === 0 ? [claiming] : [delayFirstAttempt(id, firstDelaySeconds * 1000), claiming];
}

/** Returned for a payload that cannot be read now. */
const UNREADABLE = "unreadable";

/** Reads the payload. If the object store that has a body is out of reach, the push is tried again like any other. */
async function readPayload(
  deps: PushDeps,
  delivery: WebhookDelivery,
): Promise<SharedPayload | typeof UNREADABLE | null> {
  try {
    return await deliveryPayload(deps, delivery);
  } catch (error) {
    log("webhook").error("a push failed", { deliveryId: delivery.id, error: String(error) });
    return UNREADABLE;
  }
}

/** Counts an attempt and logs it. The log leaves out the URL, because it may hold a secret of its owner. */
function countAttempt(
  { meter }: PushDeps,
  delivery: WebhookDelivery,
  outcome: PostOutcome,
  ms: number,
): void {
  const { id: deliveryId, messageId } = delivery;
  const name = outcome.kind === "failed" ? "failed" : isSuccess(outcome) ? "succeeded" : "refused";
  meter?.tried(ms / 1000, name);
  log("webhook").debug("tried", { deliveryId, messageId, outcome: name, ms });
}

/** Signs and posts. A failure on our side is logged, and is tried again like any other. */
async function attempt(
  deps: PushDeps,
  delivery: Claimed,
  target: PushTarget,
  data: Uint8Array,
): Promise<PostOutcome> {
  const now = delivery.claimedAt;
  const sealed = [target.secret];
  if (target.previousSecret !== null && (target.previousSecretUntil ?? 0) > now)
    sealed.push(target.previousSecret);
  try {
    const secrets = sealed.map((secret) => unseal(deps.boxKey, secret));
    return await deps.post(
      requestOf(deps, delivery, data, { url: target.url, secrets, now: deps.endpointClock?.now() ?? now }),
    );
  } catch (error) {
    log("webhook").error("a push failed", { deliveryId: delivery.id, error: String(error) });
    return OUR_FAULT;
  }
}

/** Returns the signed request. `t` is the second of this attempt, as `createdAt` in the body is. */
function requestOf(
  deps: PushDeps,
  delivery: WebhookDelivery,
  data: Uint8Array,
  { url, secrets, now }: { url: string; secrets: readonly string[]; now: number },
): PostRequest {
  const unixSeconds = Math.floor(now / 1000);
  const { body, signature } = (delivery.dialect === "resend" ? resendRequest : ownRequest)(
    ...([delivery, data, secrets, unixSeconds] as const),
  );
  return {
    url,
    headers: { "Content-Type": "application/json", "User-Agent": USER_AGENT, ...signature },
    body,
    timeoutMs: deps.policy.timeoutMs,
    allowPrivate: deps.policy.allowPrivate,
  };
}

interface SignedBody {
  body: Uint8Array[];
  /** Headers. */
  signature: Record<string, string>;
}

function ownRequest(
  delivery: WebhookDelivery,
  data: Uint8Array,
  secrets: readonly string[],
  unixSeconds: number,
): SignedBody {
  const body = deliveryBody(delivery, data, unixSeconds * 1000);
  return { body, signature: { [SIGNATURE_HEADER]: signWebhook(secrets, unixSeconds, body) } };
}

/** Resend's payload is the whole body. The id and the time of the attempt are in headers. */
function resendRequest(
  delivery: WebhookDelivery,
  payload: Uint8Array,
  secrets: readonly string[],
  unixSeconds: number,
): SignedBody {
  const body = deliveryBody(delivery, payload, unixSeconds * 1000);
  return { body, signature: signResendWebhook(secrets, delivery.id, unixSeconds, body) };
}
