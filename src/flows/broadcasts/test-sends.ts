import type { ReadItem } from "../../core/messages/send-item.ts";
import type { Statement } from "../../store/engine/client.ts";
import { commitSends, type PreparedSend, prepareSend, sending } from "../accept/accept.ts";
import type { Sending } from "../accept/sending.ts";
import { shownContact, testItem } from "./check.ts";
import { type Acting, readyToSend, subjectsOf } from "./ready.ts";
import { existingBroadcast } from "./save.ts";

/** Maximum number of addresses of a test. */
export const MAX_TEST_ADDRESSES = 10;

/** A message of a test. */
export interface TestSend {
  id: string;
  to: string;
}

/**
 * Sends a broadcast to some addresses, as a contact would get it. If it tests two subjects, each address gets it with both.
 * @param contactId the contact whose values it has; null: the first of the segment
 * @param record returns statements for the same write
 * @throws AppError 404; 422 for what the broadcast lacks; and what refuses a send
 */
export async function testBroadcast(
  deps: Sending,
  acting: Acting,
  id: string,
  { to, contactId }: { to: readonly string[]; contactId: string | null },
  record: (sent: readonly TestSend[]) => readonly Statement[],
): Promise<TestSend[]> {
  const { project, by } = acting;
  const ready = await readyToSend(deps, acting, await existingBroadcast(deps.db, project.id, id));
  const contact = await shownContact(deps, ready, contactId);
  const items: { to: string; item: ReadItem }[] = [];
  for (const address of to)
    for (const one of subjectsOf(ready))
      items.push({ to: address, item: await testItem(deps, one, contact, address) });
  return sending(async () => {
    const prepared: PreparedSend[] = [];
    for (const { item } of items)
      prepared.push(await prepareSend(deps, project, by, { item, scheduledAt: null }));
    const sent = prepared.map(({ accepted }, at) => ({ id: accepted.id, to: items[at]?.to ?? "" }));
    await commitSends(deps, project, prepared, (refused) => {
      // All or none, so that a client who asks again sends none twice.
      for (const refusal of refused.values()) throw refusal;
      return record(sent);
    });
    return sent;
  });
}
