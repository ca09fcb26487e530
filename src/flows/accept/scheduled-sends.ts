import { AppError, existing } from "../../core/errors.ts";
import type { KeyBounds } from "../../core/key-bounds.ts";
import { noteChange } from "../../store/engine/audit-triggers.ts";
import type { Guard, Statement } from "../../store/engine/client.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import { rollUpMessage } from "../../store/messages/outbox.ts";
import { listRecipients } from "../../store/messages/recipients.ts";
import {
  cancelRecipients,
  moveSchedule,
  scheduledMessageGuard,
} from "../../store/messages/scheduled-sends.ts";
import { waitsForApproval } from "../../store/messages/approvals.ts";
import { requireAllowed } from "./policy.ts";
import { announce, writeAnnounced } from "../webhooks/announce.ts";
import type { Outbox } from "../outbox.ts";

/** The reason of a canceled recipient, which is `failed`. */
const CANCELED = "canceled";

/** Why a message is canceled, and what must hold for it. */
export interface Cancellation {
  reason: string;
  guard: Guard;
}

/**
 * Cancels a message that waits for its time or for an approval. Its recipients end as `failed`.
 * @param record statements for the same write
 * @throws AppError 404 for no such message, 409 `invalid_state` once it is no longer `accepted`
 */
export async function cancelSend(
  deps: Outbox,
  senderId: string,
  id: string,
  record: readonly Statement[],
  { reason, guard }: Cancellation = { reason: CANCELED, guard: scheduledMessageGuard(senderId, id) },
): Promise<void> {
  await requireScheduled(deps, senderId, id);
  const waiting = (await listRecipients(deps.db, senderId, id)).filter(({ status }) => status === "accepted");
  const announced = await announce(
    deps,
    senderId,
    waiting.map(({ email }) => ({
      messageId: id,
      type: "failed",
      email,
      data: { failed: { reason } },
    })),
    guard,
  );
  const write = writeAnnounced(deps, announced, {
    // If another request was first, nothing is written, and no idempotent answer either.
    before: [requireGuard("message_not_scheduled", guard)],
    after: [
      canceled(senderId, id),
      cancelRecipients(senderId, id, reason, deps.clock.now()),
      ...record,
      rollUpMessage(id, null),
    ],
  });
  await write.catch((error: unknown) => {
    throw isBroken(error, "message_not_scheduled") ? notScheduled() : error;
  });
}

function canceled(senderId: string, id: string): Statement {
  const changes = { status: ["json_quote(row.status)", JSON.stringify("failed")] } as const;
  return noteChange({ table: "messages", verb: "cancel", senderId, id, changes });
}

/**
 * Moves a scheduled message to another time. `scheduledAt` in milliseconds. If it is in the past, the message is sent
 * at once.
 * @returns the time that holds now, in milliseconds
 * @param bounds those of the key that moves it. What was approved includes the time, so a key with `approval` moves nothing
 * @throws AppError 403 for a bounded key, 404 for no such message, 409 `invalid_state` once it is no longer `accepted` or while
 *   it waits for an approval
 */
export async function rescheduleSend(
  deps: Outbox,
  senderId: string,
  id: string,
  scheduledAt: number,
  bounds: KeyBounds,
): Promise<number> {
  if (bounds.approval)
    throw new AppError(
      "permission_error",
      "A key whose sends need an approval cannot move a message: cancel it and send it again.",
    );
  await requireScheduled(deps, senderId, id);
  const recipients = await listRecipients(deps.db, senderId, id);
  requireAllowed(bounds, recipients);
  if (recipients.some(({ status, reason }) => status === "accepted" && waitsForApproval(reason)))
    throw waiting();
  const at = Math.max(scheduledAt, deps.clock.now());
  const [, moved] = await deps.db.write(moveSchedule(senderId, id, at));
  if (moved?.changes === 0) throw notScheduled();
  return at;
}

async function requireScheduled(deps: Outbox, senderId: string, id: string): Promise<void> {
  const message = existing("message", await getMessage(deps.db, senderId, id));
  if (message.status !== "accepted") throw notScheduled();
}

function waiting(): AppError {
  return new AppError(
    "conflict",
    "This message waits for an approval. Approve it first, or cancel it and send it again.",
    {
      code: "invalid_state",
    },
  );
}

function notScheduled(): AppError {
  return new AppError(
    "conflict",
    "Only a scheduled message can be changed. This one is being sent, has ended or was canceled.",
    {
      code: "invalid_state",
    },
  );
}
