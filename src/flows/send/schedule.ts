import type { Clock } from "../../core/clock.ts";
import { AppError, notFound } from "../../core/errors.ts";
import type { Queue } from "../../queue/port.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { getMessage } from "../../store/messages.ts";
import { allOrNothing, isGuardBroken, rollUpMessage } from "../../store/outbox.ts";
import { listRecipients } from "../../store/recipients.ts";
import { cancelRecipients, moveSchedule, scheduledMessageGuard } from "../../store/schedule.ts";
import { hint } from "../hint.ts";
import { announce } from "../notify/announce.ts";

export interface ScheduleDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
}

/** Why a canceled recipient is `failed`. */
const CANCELED = "canceled";

/**
 * Cancels a scheduled message whose time has not come: its recipients end as `failed`.
 * @param record statements for the same write
 * @throws AppError 404 for no such message, 409 `invalid_state` once it is no longer `accepted`
 */
export async function cancelSend(
  deps: ScheduleDeps,
  senderId: string,
  id: string,
  record: readonly Statement[],
): Promise<void> {
  await requireScheduled(deps, senderId, id);
  const guard = scheduledMessageGuard(senderId, id);
  const waiting = (await listRecipients(deps.db, senderId, id)).filter(({ status }) => status === "accepted");
  const announced = await announce(
    deps,
    senderId,
    waiting.map(({ email }) => ({
      messageId: id,
      type: "failed",
      email,
      data: { failed: { reason: CANCELED } },
    })),
    guard,
  );
  const write = deps.db.write([
    // Where another was first nothing is written, the idempotent answer least of all.
    allOrNothing(guard),
    ...announced.statements,
    cancelRecipients(senderId, id, CANCELED, deps.clock.now()),
    ...record,
    rollUpMessage(id, null),
  ]);
  await write.catch((error: unknown) => {
    throw isGuardBroken(error) ? notScheduled() : error;
  });
  hint(deps.queue, "push", announced.pushes);
}

/**
 * Moves a scheduled message to another time. `scheduledAt` in milliseconds; one that is past sends at the next turn.
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
  const [moved] = await deps.db.write(moveSchedule(senderId, id, at));
  if (moved?.changes === 0) throw notScheduled();
  return at;
}

async function requireScheduled(deps: ScheduleDeps, senderId: string, id: string): Promise<void> {
  const message = await getMessage(deps.db, senderId, id);
  if (message === null) throw notFound("message");
  if (message.status !== "accepted") throw notScheduled();
}

function notScheduled(): AppError {
  return new AppError("conflict", "Only a scheduled message whose time has not come can be changed.", {
    code: "invalid_state",
  });
}
