import { isCatchAll } from "../../core/addresses.ts";
import type { Db } from "../engine/client.ts";
import { envelopeRecipients } from "../messages/message-content.ts";
import type { Message } from "../messages/messages.ts";
import { inboxAddresses } from "../threads/inboxes.ts";

/**
 * Returns, by message, the addresses of ours that received messages went to: the inbox's, or those that a catch-all was written
 * to. Messages without an inbox are left out.
 */
export async function receivedFor(
  db: Db,
  senderId: string,
  messages: readonly Pick<Message, "id" | "inboxId">[],
): Promise<Map<string, readonly string[]>> {
  const inboxIds = messages.flatMap(({ inboxId }) => (inboxId === null ? [] : [inboxId]));
  const addresses = await inboxAddresses(db, senderId, [...new Set(inboxIds)]);
  const addressOf = ({ inboxId }: Pick<Message, "inboxId">) => addresses.get(inboxId ?? "");
  const inCatchAll = messages.filter((message) => isCatchAll(addressOf(message) ?? ""));
  const written =
    inCatchAll.length === 0
      ? new Map<string, string[]>()
      : await envelopeRecipients(
          db,
          senderId,
          inCatchAll.map(({ id }) => id),
        );
  const found = new Map<string, readonly string[]>();
  for (const message of messages) {
    const address = addressOf(message);
    if (address !== undefined) found.set(message.id, written.get(message.id) ?? [address]);
  }
  return found;
}
