import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import type { Job, Queue } from "../../queue/port.ts";
import type { ArrivalFacts } from "../../store/arrivals.ts";
import type { Db, Statement } from "../../store/client.ts";
import { countReceived } from "../../store/inboxes.ts";
import { insertMessage } from "../../store/messages.ts";
import { rememberReferences, stepThread } from "../../store/threads.ts";
import { hint } from "../hint.ts";
import { announce, type Happening } from "../notify/announce.ts";
import { participantsOf } from "../threading.ts";
import { referencesOf } from "./facts.ts";
import {
  type InboundMail,
  type InboundTargetInbox,
  inboundAttachments,
  inboundContent,
  inboundMessage,
} from "./inbound-message.ts";
import { withTrace } from "./trace.ts";

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

/** An inbox that a mail goes to, and what the database says of both. */
export interface ArrivalPlace extends InboundTargetInbox {
  facts: ArrivalFacts;
}

/**
 * Takes a mail into custody: one message in each inbox, its thread, its event and its webhook deliveries, all in one
 * write. When this resolves the bytes are on disk.
 * @param record further statements for that write, told what it stores
 */
export async function takeMail(
  deps: TakeDeps,
  places: readonly ArrivalPlace[],
  mail: InboundMail,
  record: (arrivals: readonly Arrival[]) => readonly Statement[] = () => [],
): Promise<Arrival[]> {
  const kept = withTrace(mail.trace, mail.raw);
  const arrivals: Arrival[] = [];
  const statements: Statement[] = [];
  const pushes: Job[] = [];
  for (const place of places) {
    // Bodies and bytes are kept once, at the first message: a mail to a hundred inboxes is not a hundred mails on disk.
    const contentOf = arrivals[0]?.messageId ?? null;
    const stored = await arrive(deps, place, mail, kept, contentOf);
    arrivals.push(stored.arrival);
    statements.push(...stored.statements);
    pushes.push(...stored.pushes);
  }
  await deps.db.write([...statements, ...record(arrivals)]);
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
  { inbox, addresses, facts }: ArrivalPlace,
  mail: InboundMail,
  kept: Uint8Array,
  contentOf: string | null,
): Promise<StoredArrival> {
  const now = deps.clock.now();
  const { mail: read } = mail.inspection;
  const { id: inboxId, senderId } = inbox;
  const references = referencesOf(read);
  const threadId = facts.threadId ?? newId("thr", now);
  const message = inboundMessage(mail, { inbox, status: "delivered", threadId, at: now });
  const happening: Happening = { messageId: message.id, type: "inbound_received", email: null };
  const announced = await announce(deps, senderId, [happening], undefined, facts.webhooks);
  const attachments = inboundAttachments(read, now);
  return {
    arrival: { messageId: message.id, threadId },
    statements: [
      ...insertMessage(message, inboundContent(mail, addresses), attachments, kept, contentOf),
      stepThread({
        threadId,
        inboxId,
        senderId,
        messageId: message.id,
        subject: message.subject,
        preview: read.preview,
        participants: participantsOf(message, inbox.address),
        hasAttachments: attachments.length > 0,
        inbound: true,
        at: now,
      }),
      ...(references.length === 0 ? [] : [rememberReferences({ senderId, inboxId, threadId }, references)]),
      ...(mail.testMode ? [] : [countReceived(senderId, inboxId)]),
      ...announced.statements,
    ],
    pushes: announced.pushes,
  };
}
