import { AppError, existing } from "../../core/errors.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Statement } from "../../store/engine/client.ts";
import { goneAt } from "../../store/contents/contents.ts";
import {
  atRestGuard,
  deleteDeliveriesOf,
  goingInThread,
  goingMessage,
  type GoingMessage,
} from "../../store/messages/retention.ts";
import { getThread } from "../../store/threads/threads.ts";
import { type DeletionDeps, deleteMessagesIf } from "./delete-messages.ts";

/** Messages of a thread that are deleted in one write. */
export const MESSAGES_PER_WRITE = 20;
/** Attempts at a write that meets a change of its messages, such as their indexing. */
const MAX_TRIES = 5;

/**
 * Deletes messages that have no recipient in progress, with their log of webhooks, whatever their age.
 * @param also further statements of the write; the thread forgets the Message-IDs of the messages then
 * @returns false if one has changed since it was read; nothing was deleted then
 */
export function deleteAtRest(
  deps: DeletionDeps,
  going: readonly GoingMessage[],
  also: readonly Statement[] = [],
): Promise<boolean> {
  const ids = going.map(({ id }) => id);
  return deleteMessagesIf(deps, going, {
    first: [deleteDeliveriesOf(ids), ...also],
    remembers: also.length === 0,
    guard: atRestGuard(ids),
    leftAt: goneAt(deps.clock.now()),
  });
}

/**
 * Deletes a message of the project.
 * @throws AppError 404, 409 `invalid_state` while a recipient is in progress, 503 if it kept changing
 */
export async function deleteMessage(deps: DeletionDeps, senderId: string, id: string): Promise<void> {
  existing("message", await goingMessage(deps.db, senderId, id));
  await deleteAllOf(deps, async () => {
    const message = await goingMessage(deps.db, senderId, id);
    return message === null ? [] : [message];
  });
}

/**
 * Deletes a thread of the project with all of its messages, in steps.
 * @throws AppError as `deleteMessage`; the messages of earlier steps are gone then
 */
export async function deleteThread(deps: DeletionDeps, senderId: string, id: string): Promise<void> {
  existing("thread", await getThread(deps.db, senderId, id));
  await deleteAllOf(deps, () => goingInThread(deps.db, senderId, id, MESSAGES_PER_WRITE));
}

async function deleteAllOf(deps: DeletionDeps, next: () => Promise<GoingMessage[]>): Promise<void> {
  let tries = 0;
  for (let going = await next(); going.length > 0; going = await next()) {
    if (going.some(({ isMoving }) => isMoving)) throw moving();
    tries = (await deleteAtRest(deps, going)) ? 0 : tries + 1;
    if (tries === MAX_TRIES) throw busy();
    await yieldToEventLoop();
  }
}

function moving(): AppError {
  return new AppError(
    "conflict",
    "A recipient of this message is still in progress. Cancel the send, or wait until every recipient is final.",
    { code: "invalid_state" },
  );
}

function busy(): AppError {
  return new AppError("service_unavailable", "This message is still being processed. Try again.", {
    retryAfterSeconds: 1,
  });
}
