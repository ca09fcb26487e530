import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import type { Job, Queue } from "../../queue/port.ts";
import type { Db, Statement } from "../../store/client.ts";
import { countReceived } from "../../store/inboxes.ts";
import { insertMessage } from "../../store/messages.ts";
import { findThread, rememberReferences, stepThread } from "../../store/threads.ts";
import { hint } from "../hint.ts";
import { announce } from "../notify/announce.ts";
import { participantsOf } from "../threading.ts";
import {
  type InboundMail,
  type InboundTargetInbox,
  inboundAttachments,
  inboundContent,
  inboundMessage,
} from "./inbound-message.ts";

export interface TakeDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
}

/** A mail that has arrived in one inbox. */
export interface Arrival {
  messageId: string;
  threadId: string;
}

/**
 * Takes a mail into custody: one message in each inbox, its thread, its event and its webhook deliveries, all in one
 * write. When this resolves the bytes are on disk.
 */
export async function takeMail(
  deps: TakeDeps,
  targets: readonly InboundTargetInbox[],
  mail: InboundMail,
): Promise<Arrival[]> {
  const kept = Buffer.concat([Buffer.from(mail.trace, "utf8"), mail.raw]);
  const arrivals: Arrival[] = [];
  const statements: Statement[] = [];
  const pushes: Job[] = [];
  for (const target of targets) {
    // Bodies and bytes are kept once, at the first message: a mail to a hundred inboxes is not a hundred mails on disk.
    const contentOf = arrivals[0]?.messageId ?? null;
    const stored = await arrive(deps, target, mail, kept, contentOf);
    arrivals.push(stored.arrival);
    statements.push(...stored.statements);
    pushes.push(...stored.pushes);
  }
  await deps.db.write(statements);
  hint(deps.queue, "push", pushes);
  return arrivals;
}

interface StoredArrival {
  arrival: Arrival;
  statements: Statement[];
  pushes: Job[];
}

/**
 * @param kept the bytes with our trace fields
 * @param contentOf the message of the same mail that keeps its content; null for that one itself
 */
async function arrive(
  deps: TakeDeps,
  { inbox, addresses }: InboundTargetInbox,
  mail: InboundMail,
  kept: Uint8Array,
  contentOf: string | null,
): Promise<StoredArrival> {
  const now = deps.clock.now();
  const { mail: read } = mail.inspection;
  const references = read.inReplyTo === null ? read.references : [...read.references, read.inReplyTo];
  // Its own id comes last in rank: it may be a copy of a mail that is here, or one that an answer has overtaken.
  const related = read.messageId === null ? references : [read.messageId, ...references];
  const threadId = (await findThread(deps.db, inbox.senderId, inbox.id, related)) ?? newId("thr", now);
  const message = inboundMessage(mail, { inbox, status: "delivered", threadId, at: now });
  const announced = await announce(deps, inbox.senderId, [
    { messageId: message.id, type: "inbound_received", email: null },
  ]);
  const attachments = inboundAttachments(read, now);
  return {
    arrival: { messageId: message.id, threadId },
    statements: [
      ...insertMessage(message, inboundContent(mail, addresses), attachments, kept, contentOf),
      stepThread({
        threadId,
        inboxId: inbox.id,
        senderId: inbox.senderId,
        messageId: message.id,
        subject: message.subject,
        preview: read.preview,
        participants: participantsOf(message, inbox.address),
        hasAttachments: attachments.length > 0,
        inbound: true,
        at: now,
      }),
      ...(references.length === 0
        ? []
        : [rememberReferences({ senderId: inbox.senderId, inboxId: inbox.id, threadId }, references)]),
      ...(mail.testMode ? [] : [countReceived(inbox.senderId, inbox.id)]),
      ...announced.statements,
    ],
    pushes: announced.pushes,
  };
}
