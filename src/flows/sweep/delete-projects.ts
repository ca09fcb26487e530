import { actingAs, NOBODY } from "../../core/actor.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { goneAt } from "../../store/contents/contents.ts";
import {
  anyMessages,
  deleteProject,
  deleteRows,
  endedProject,
} from "../../store/erasures/deleted-projects.ts";
import { deleteDeliveriesOf } from "../../store/messages/retention.ts";
import { type DeletionDeps, deleteMessagesIf } from "./delete-messages.ts";
import { MESSAGES_PER_WRITE } from "./delete-now.ts";

/** Writes of a turn. */
export const WRITES_PER_TURN = 40;
/** Rows of other tables deleted in one write. */
export const ROWS_PER_WRITE = 200;

/** Makes the chore that deletes the rows of projects that were ended, some writes per turn. */
export function deleteProjects(deps: DeletionDeps): () => Promise<void> {
  return async () => {
    const id = await endedProject(deps.db);
    // The audit trail has the deletion of the project itself, not each row that goes with it.
    if (id !== null) await actingAs(NOBODY, () => turn(deps, id));
  };
}

async function turn(deps: DeletionDeps, senderId: string): Promise<void> {
  for (let write = 0; write < WRITES_PER_TURN; write++) {
    const going = await anyMessages(deps.db, senderId, MESSAGES_PER_WRITE);
    if (going.length > 0)
      await deleteMessagesIf(deps, going, {
        first: [deleteDeliveriesOf(going.map(({ id }) => id))],
        guard: { sql: "TRUE", args: [] },
        remembers: false,
        leftAt: goneAt(deps.clock.now()),
      });
    else if (!(await deleteRows(deps.db, senderId, ROWS_PER_WRITE))) return deleteProject(deps.db, senderId);
    await yieldToEventLoop();
  }
}
