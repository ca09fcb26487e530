import { AppError, existing } from "../../core/errors.ts";
import type { KeyBounds } from "../../core/key-bounds.ts";
import { approveRecipients, awaitingGuard, waitsForApproval } from "../../store/messages/approvals.ts";
import type { Statement } from "../../store/engine/client.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { rollUpMessage } from "../../store/messages/outbox.ts";
import { listRecipients, type Recipient } from "../../store/messages/recipients.ts";
import { hint, transmitJob } from "../../queue/hint.ts";
import { announce, writeAnnounced } from "../webhooks/announce.ts";
import { requireAllowed } from "./policy.ts";
import { cancelSend } from "./scheduled-sends.ts";
import type { Outbox } from "../outbox.ts";

/** The key that decides about a send. */
export interface Approver {
  keyId: string;
  /** It decides only about what it could send itself. Two keys with `approval` must not approve each other. */
  bounds: KeyBounds;
}

/** The status of an approved message: `accepted` if it waits for its time. */
export type ApprovedStatus = "queued" | "accepted";

/** The reason of a rejected send if the approver gives none. */
const REJECTED = "approval_rejected";

/**
 * Lets a message that waits for an approval go, at its time or now.
 * @param record statements for the same write
 * @throws AppError 404 for no such message, 403 for the key that made it, 409 `invalid_state` if it does not wait
 */
export async function approveSend(
  deps: Outbox,
  senderId: string,
  id: string,
  approver: Approver,
  record: (status: ApprovedStatus) => readonly Statement[],
): Promise<ApprovedStatus> {
  const { waiting, scheduledAt } = await requireAwaiting(deps, senderId, id, approver);
  const now = deps.clock.now();
  const later = scheduledAt !== null && scheduledAt > now ? scheduledAt : null;
  const status = later === null ? "queued" : "accepted";
  const guard = awaitingGuard(senderId, id, approver.keyId);
  const going = later === null ? waiting : [];
  const drafts = going.map(({ email }) => ({ messageId: id, type: "queued" as const, email }));
  const announced = await announce(deps, senderId, drafts, guard);
  const write = writeAnnounced(deps, announced, {
    before: [requireGuard("message_not_scheduled", guard)],
    after: [
      ...approveRecipients(id, approver.keyId === "" ? null : approver.keyId, later, now),
      ...record(status),
      rollUpMessage(id, null),
    ],
  });
  await write.catch((error: unknown) => {
    throw isBroken(error, "message_not_scheduled") ? notAwaiting() : error;
  });
  const jobs = going.map((recipient) => transmitJob(id, recipient.ord, recipient));
  hint(deps.queue, "transmit", jobs);
  return status;
}

/**
 * Refuses a message that waits for an approval. Its recipients end as `failed` with the reason.
 * @throws AppError as `approveSend`
 */
export async function rejectSend(
  deps: Outbox,
  senderId: string,
  id: string,
  approver: Approver,
  { reason = REJECTED, record }: { reason?: string | undefined; record: readonly Statement[] },
): Promise<void> {
  await requireAwaiting(deps, senderId, id, approver);
  const guard = awaitingGuard(senderId, id, approver.keyId);
  await cancelSend(deps, senderId, id, record, { reason, guard });
}

async function requireAwaiting(
  { db }: Outbox,
  senderId: string,
  id: string,
  { keyId, bounds }: Approver,
): Promise<{ waiting: Recipient[]; scheduledAt: number | null }> {
  const message = existing("message", await getMessage(db, senderId, id));
  const recipients = await listRecipients(db, senderId, id);
  const waiting = recipients.filter(({ reason }) => waitsForApproval(reason));
  if (waiting.length === 0) throw notAwaiting();
  if (message.keyId === keyId)
    throw new AppError("permission_error", "A key cannot approve or reject its own sends.");
  if (bounds.approval)
    throw new AppError("permission_error", "A key whose sends need an approval cannot decide about sends.");
  requireAllowed(bounds, recipients);
  return { waiting, scheduledAt: message.scheduledAt };
}

function notAwaiting(): AppError {
  return new AppError("conflict", "This message does not wait for an approval.", { code: "invalid_state" });
}
