import type { Clock } from "../../core/time/clock.ts";
import { AppError, notFound } from "../../core/errors.ts";
import type { Queue } from "../../queue/port.ts";
import type { Db, Guard, Statement } from "../../store/engine/client.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import { rollUpMessage } from "../../store/messages/outbox.ts";
import { listRecipients } from "../../store/messages/recipients.ts";
import {
  cancelRecipients,
  moveSchedule,
  scheduledMessageGuard,
} from "../../store/messages/scheduled-sends.ts";
import { hint } from "../../queue/hint.ts";
import { announce } from "../webhooks/announce.ts";

export interface ScheduleDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
}

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
  deps: ScheduleDeps,
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
  const write = deps.db.write([
    // If another request was first, nothing is written, and no idempotent answer either.
    requireGuard("message_not_scheduled", guard),
    ...announced.statements,
    cancelRecipients(senderId, id, reason, deps.clock.now()),
    ...record,
    rollUpMessage(id, null),
  ]);
  await write.catch((error: unknown) => {
    throw isBroken(error, "message_not_scheduled") ? notScheduled() : error;
  });
  hint(deps.queue, "push", announced.pushes);
}

/**
 * Moves a scheduled message to another time. `scheduledAt` in milliseconds. If it is in the past, the message is sent
 * at once.
 * @returns the time that holds now, in milliseconds
 * @throws AppError 404 for no such message, 409 `invalid_state` once it is no longer `accepted`
 */
export async function rescheduleSend(
  deps: ScheduleDeps,
  senderId: string,
  id: string,
  scheduledAt: number,
): Promise<number> {
  await requireScheduled(deps, senderId, id);
  const at = Math.max(scheduledAt, deps.clock.now());
  const [, moved] = await deps.db.write(moveSchedule(senderId, id, at));
  if (moved?.changes === 0) throw notScheduled();
  return at;
}

async function requireScheduled(deps: ScheduleDeps, senderId: string, id: string): Promise<void> {
  const message = await getMessage(deps.db, senderId, id);
  if (message === null) throw notFound("message");
  if (message.status !== "accepted") throw notScheduled();
}

function notScheduled(): AppError {
  return new AppError(
    "conflict",
    "Only a scheduled message can be changed. This one is under way, has ended or was canceled.",
    {
      code: "invalid_state",
    },
  );
}
