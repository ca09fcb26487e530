import { AppError, invalid } from "../../core/errors.ts";
import {
  type Broadcast,
  changeBroadcast,
  holdDue,
  releaseHeld,
  replaceBody,
  timeOfChange,
} from "../../store/audience/broadcasts.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { retryOnConflict } from "../../store/engine/retry-on-conflict.ts";
import { KEY_REVOKED } from "../../store/messages/approvals.ts";
import { findKeyById } from "../../store/projects/keys.ts";
import { HELD_FOR, HOLD_MS } from "../../store/messages/held-recipients.ts";
import type { SendingKey } from "../accept/accept.ts";
import type { Sending } from "../accept/sending.ts";
import { type BroadcastCheck, checkReady } from "./check.ts";
import { type Acting, readyToSend } from "./ready.ts";
import { changedMeanwhile, existingBroadcast, invalidState, octetsOf, type WholeBroadcast } from "./save.ts";

type Record = (broadcast: WholeBroadcast) => readonly Statement[];

/**
 * Sends a draft now, or at its time. From then on its content, and the filter of its segment, stay as they are.
 * @param record returns statements for the same write
 * @throws AppError 404; 409 `invalid_state` unless it is a draft; 403 for a bounded key or an unverified domain; 422 for what it lacks
 */
export async function sendBroadcast(
  deps: Sending,
  acting: Acting,
  { id, allowMissing }: { id: string; allowMissing: boolean },
  record: Record,
): Promise<WholeBroadcast> {
  const { project, by, now } = acting;
  refuseBounded(by);
  const draft = await existingBroadcast(deps.db, project.id, id);
  if (draft.broadcast.status !== "draft")
    throw invalidState("Only a draft can be sent. This broadcast was sent already.");
  const ready = await readyToSend(deps, acting, draft);
  const { error, missing } = await checkReady(deps, acting, ready);
  if (error !== null) throw error;
  if (!allowMissing) refuseMissing(missing);
  const { broadcast, body, variables, segment } = ready;
  const isLater = broadcast.scheduledAt !== null && broadcast.scheduledAt > now;
  const changes: Partial<Broadcast> = {
    status: isLater ? "scheduled" : "sending",
    subject: broadcast.subject,
    keyId: by.keyId,
    variables,
    filter: segment?.filter ?? null,
    octets: octetsOf(body),
    nextAt: isLater ? broadcast.scheduledAt : now,
    ...(isLater ? {} : { startedAt: now }),
    updatedAt: now,
  };
  const sent = { broadcast: { ...broadcast, ...changes }, body };
  await deps.db
    .write([
      ...changeBroadcast(draft.broadcast, changes),
      replaceBody(draft.broadcast, body),
      ...record(sent),
    ])
    .catch(changedMeanwhile);
  return sent;
}

/** Throws 422 if contacts lack values that the content shows. */
function refuseMissing(missing: BroadcastCheck["missing"]): void {
  if (missing.length === 0) return;
  const lacking = missing.map(({ variable, contacts }) => `${contacts} have no ${variable}`).join(", ");
  throw invalid(
    "allowMissing",
    `must be true, because contacts lack values that the content shows: ${lacking}. Or give it a value for them, such as {{ contact.firstName | default: "there" }}.`,
  );
}

/** A key with bounds must not reach people by a broadcast that its sends could not. */
function refuseBounded({ bounds }: SendingKey): void {
  if (!bounds.approval && bounds.allowRecipients === null) return;
  throw new AppError("permission_error", "A key whose sends have bounds cannot send a broadcast.");
}

/** The steps of a broadcast that was sent: the statuses that allow each, and the status that it leads to. */
const STEPS = {
  pause: { from: ["sending"], to: "paused", refusal: "Only a broadcast that is being sent can be paused." },
  resume: { from: ["paused"], to: "sending", refusal: "Only a paused broadcast can be resumed." },
  cancel: {
    from: ["scheduled", "sending", "paused"],
    to: "canceled",
    refusal: "Only a broadcast that is scheduled, being sent or paused can be canceled.",
  },
} as const;
type Step = keyof typeof STEPS;

/**
 * Pauses, resumes or cancels a broadcast. Messages that wait are held while it is paused, and `rejected` with the reason `canceled` at
 * their turn once it is canceled. Those that a worker has in progress still leave.
 * @throws AppError 404; 409 `invalid_state` if its status does not allow it; 403 if a bounded key resumes it
 */
export async function stepBroadcast(
  { db }: { db: Db },
  acting: Acting,
  { id, step }: { id: string; step: Step },
  record: Record,
): Promise<WholeBroadcast> {
  if (step === "resume") refuseBounded(acting.by);
  const once = () => stepOnce(db, acting, { id, step }, record);
  const stepped = await retryOnConflict(once, (error) => isBroken(error, "changed_since_read"));
  if (stepped === null) throw invalidState("The broadcast keeps changing. Read it again.");
  return stepped;
}

/**
 * Returns the changes of a broadcast that is resumed. Another key may do it after the first was revoked, and then answers for the
 * messages that follow. A restore pauses broadcasts before their time, which then wait for it again.
 */
function resumed({ startedAt, scheduledAt }: Broadcast, { by, now }: Acting): Partial<Broadcast> {
  const answering = { keyId: by.keyId, problem: null };
  return startedAt === null && scheduledAt !== null && scheduledAt > now
    ? { ...answering, status: "scheduled", nextAt: scheduledAt }
    : { ...answering, startedAt: startedAt ?? now, nextAt: now };
}

async function stepOnce(
  db: Db,
  acting: Acting,
  { id, step }: { id: string; step: Step },
  record: Record,
): Promise<WholeBroadcast> {
  const { project, now } = acting;
  const { broadcast, body } = await existingBroadcast(db, project.id, id);
  const { from, to, refusal } = STEPS[step];
  if (!(from as readonly string[]).includes(broadcast.status)) throw invalidState(refusal);
  const changes: Partial<Broadcast> = {
    status: to,
    ...(step === "cancel" ? { endedAt: now } : {}),
    ...(step === "resume" ? resumed(broadcast, acting) : {}),
    updatedAt: timeOfChange(broadcast, now),
  };
  const changed = { broadcast: { ...broadcast, ...changes }, body };
  const waiting =
    step === "pause"
      ? holdDue(broadcast, HELD_FOR.paused, { now, dueAt: now + HOLD_MS })
      : releaseHeld(broadcast, HELD_FOR.paused, now);
  await db.write([...changeBroadcast(broadcast, changes), waiting, ...record(changed)]);
  return changed;
}

/**
 * Pauses a broadcast if the key that answers for its messages was revoked, also while they are made. No further contact may get it.
 * Returns whether it was.
 */
export async function pauseIfRevoked(db: Db, broadcast: Broadcast, now: number): Promise<boolean> {
  const { keyId } = broadcast;
  const found = keyId === null ? null : await findKeyById(db, keyId);
  if (found === null || found.key.revokedAt === null) return false;
  const message = "The key that sent it was revoked. If you resume it, your key sends the rest.";
  const problem = { code: KEY_REVOKED, message };
  const updatedAt = timeOfChange(broadcast, now);
  await db.write(changeBroadcast(broadcast, { status: "paused", problem, updatedAt }));
  return true;
}
