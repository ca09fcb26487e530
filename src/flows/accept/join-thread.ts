import type { ReadItem } from "../../core/messages/send-item.ts";
import { sharedMessageId } from "../../core/messages/message-id.ts";
import { messageIdsIn } from "../../mail/reading/header-block.ts";
import { newPreview } from "../../mail/text/reply-text.ts";
import { newId } from "../../core/ids.ts";
import { beginsThreadGuard } from "../../store/messages/arrivals.ts";
import type { Db, Guard, Statement } from "../../store/engine/client.ts";
import type { Message } from "../../store/messages/messages.ts";
import {
  findThread,
  MAX_REMEMBERED_REFERENCES,
  rememberReferences,
  stepThread,
  type ThreadPlace,
} from "../../store/threads/threads.ts";
import type { SendContent } from "./content.ts";
import { ownAddresses, participantsOf, type ThreadEntry, type ThreadInbox } from "./threading.ts";

/** Threads of the sends in one commit, by inbox and the Message-IDs that they name. */
export type NamedThreads = Map<string, string>;

/** The part of a send's conversation that the database does not know. */
export interface Conversation {
  /** The thread of the From inbox. If left out, the references lead to it. */
  into?: ThreadEntry;
  /** Threads of earlier sends in the same commit. This send's is added. */
  named?: NamedThreads;
}

/** The statements and the guard that a send adds to its commit for its thread. */
export interface Joined {
  statements: Statement[];
  /** The condition that must still hold then. If not, the commit fails with the guard `message_conflict`. */
  guard: Guard | null;
}

/** Returns the Message-IDs that the send names in In-Reply-To and References, the nearest parent last. */
export function referencesOf(item: ReadItem): string[] {
  const fields = Object.entries(item.headers ?? {})
    .filter(([name]) => /^(?:in-reply-to|references)$/i.test(name))
    .sort(([name]) => (/^references$/i.test(name) ? -1 : 1));
  return fields.flatMap(([, value]) => messageIdsIn(value)).map(sharedMessageId);
}

/**
 * If From is an inbox of the project, joins the thread that the send answers, or starts one. The message gets both ids,
 * and the statements update the thread.
 */
export async function joinThread(
  db: Db,
  message: Message,
  { item, content }: { item: ReadItem; content: Pick<SendContent, "texts"> },
  fromInbox: ThreadInbox | null,
  { into, named = new Map() }: Conversation,
): Promise<Joined> {
  // A conversation stays in its inbox, also if another one has got the address that it is answered from.
  const inbox = into?.inbox ?? fromInbox;
  if (inbox === null) return { statements: [], guard: into?.guard ?? null };
  const { senderId } = message;
  const inboxId = inbox.id;
  const references = referencesOf(item);
  const known = into?.threadId ?? (await threadOf(db, { senderId, inboxId }, references, named));
  const threadId = known ?? newId("thr", message.createdAt);
  message.inboxId = inboxId;
  message.threadId = threadId;
  for (const id of references.slice(-MAX_REMEMBERED_REFERENCES))
    if (!named.has(keyOf(inboxId, id))) named.set(keyOf(inboxId, id), threadId);
  const step = stepThread({
    threadId,
    inboxId,
    senderId,
    messageId: message.id,
    subject: message.subject,
    preview: newPreview(await content.texts()),
    participants: participantsOf(message, ownAddresses(inbox.address, [message.from.email])),
    hasAttachments: (item.attachments?.length ?? 0) > 0,
    inbound: false,
    at: message.createdAt,
  });
  return {
    statements: [step, ...rememberReferences({ senderId, inboxId, threadId }, references)],
    guard:
      into?.guard ?? (known === null ? beginsThreadGuard({ senderId, inboxId, related: references }) : null),
  };
}

/** Returns the thread of the nearest parent that the inbox or an earlier send of the commit knows, else null. */
async function threadOf(
  db: Db,
  { senderId, inboxId }: Omit<ThreadPlace, "threadId">,
  references: readonly string[],
  named: NamedThreads,
): Promise<string | null> {
  const nearest = references.findLastIndex((id) => named.has(keyOf(inboxId, id)));
  const found = await findThread(db, senderId, inboxId, references.slice(Math.max(0, nearest)));
  return found ?? named.get(keyOf(inboxId, references[nearest] ?? "")) ?? null;
}

function keyOf(inboxId: string, messageId: string): string {
  return `${inboxId} ${messageId}`;
}
