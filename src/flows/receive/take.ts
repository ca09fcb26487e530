import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import type { MessageEvent } from "../../core/events.ts";
import type { Queue } from "../../queue/port.ts";
import { type ArrivalFacts, beginsThreadGuard, untakenGuard } from "../../store/arrivals.ts";
import type { Db, Guard, Statement } from "../../store/engine/client.ts";
import type { WebhooksOf } from "../../store/fan-outs.ts";
import { countReceived } from "../../store/inboxes.ts";
import { CHUNK_OCTETS, type HashedContent, ofProject } from "../../store/contents/content-bytes.ts";
import { insertMessage, type Message } from "../../store/messages.ts";
import type { InboxRef } from "../../store/sending.ts";
import { rememberReferences, stepThread } from "../../store/threads.ts";
import { subscriptions } from "../../store/webhook-deliveries.ts";
import { writeAhead } from "../contents/keep.ts";
import { hint } from "../hint.ts";
import { announceEvents, eventsOf, type Happening } from "../notify/announce.ts";
import { participantsOf } from "../threading.ts";
import { DUPLICATE_WINDOW_MS, MAX_COMPARED, referencesOf, relatedOf } from "./facts.ts";
import type { WrittenBody } from "./inspect.ts";
import { chunkPieces } from "./large-body.ts";
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
  /** Null in a role mailbox, which has no threads. */
  threadId: string | null;
}

/** An inbox that a mail goes to, and what the database says of both. */
export interface ArrivalPlace extends InboundTargetInbox {
  facts: ArrivalFacts;
}

/**
 * Takes a mail into custody: one message in each inbox, its thread, its event and its webhook deliveries, all in one
 * write; what is large goes ahead of it. When this resolves the bytes are on disk. Where one of the inboxes has taken it since
 * the places were asked about, or has begun the thread that it belongs to, as another process does, nothing is written, and
 * `isMessageBarred` knows the error.
 * @param record further statements for that write, told what it stores
 */
export async function takeMail(
  deps: TakeDeps,
  places: readonly ArrivalPlace[],
  mail: InboundMail,
  record: (arrivals: readonly Arrival[]) => readonly Statement[] = () => [],
): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  const statements: Statement[] = [];
  const events: MessageEvent[] = [];
  const named = new Map<string, Kept>();
  for (const place of places) {
    const { senderId } = place.inbox;
    // Bodies and bytes come with a project's first message; its others name them.
    const kept = named.get(senderId) ?? (await keep(deps, senderId, mail));
    named.set(senderId, withoutBytes(kept));
    const stored = arrive(deps, place, mail, kept);
    arrivals.push(stored.arrival);
    statements.push(...stored.statements);
    events.push(...stored.events);
  }
  const announced = announceEvents(deps.clock, events, await webhooksNow(deps, places, named));
  await deps.db.write([...statements, ...announced.statements, ...record(arrivals)]);
  hint(deps.queue, "push", announced.pushes);
  return arrivals;
}

/** The webhooks of the projects that a mail goes to. */
export function webhooksOf(places: readonly ArrivalPlace[]): WebhooksOf {
  return new Map(places.map(({ inbox, facts }) => [inbox.senderId, facts.webhooks]));
}

/** The same at the end of what was written ahead: that takes a while, and a webhook made meanwhile is to hear of the mail. */
async function webhooksNow(
  { db }: TakeDeps,
  places: readonly ArrivalPlace[],
  kept: ReadonlyMap<string, Kept>,
): Promise<WebhooksOf> {
  const isLarge = [...kept.values()].some(({ raw }) => raw.size > CHUNK_OCTETS);
  if (!isLarge) return webhooksOf(places);
  const lists = [...kept.keys()].map(async (id) => [id, await subscriptions(db, id)] as const);
  return new Map(await Promise.all(lists));
}

/** What is kept of a mail, once for all its messages of a project. */
interface Kept {
  body: HashedContent;
  raw: HashedContent;
}

async function keep(
  deps: TakeDeps,
  senderId: string,
  { inspection: { contents }, raw }: InboundMail,
): Promise<Kept> {
  const whole = ofProject(senderId, contents.raw);
  return {
    body: await keepWritten(deps, senderId, contents),
    raw: whole.bytes === null ? await writeAhead(deps, whole, raw) : whole,
  };
}

/** Makes a body a content of the project's, ready for the write of its message. */
export async function keepWritten(
  deps: TakeDeps,
  senderId: string,
  { body, largeBody }: WrittenBody,
): Promise<HashedContent> {
  const own = ofProject(senderId, body);
  return largeBody === null ? own : writeAhead(deps, own, chunkPieces(largeBody, own.size));
}

function withoutBytes({ body, raw }: Kept): Kept {
  return { body: { ...body, bytes: null }, raw: { ...raw, bytes: null } };
}

interface StoredArrival {
  arrival: Arrival;
  statements: Statement[];
  events: MessageEvent[];
}

/**
 * Holds while what was looked up before is so: the mail begins a thread, or the inbox has not taken it. Mails of one conversation that
 * come over SMTP are taken one after another, so none is in another's commit; a simulated one may be, and sees those before it.
 */
function stillSo(message: Message, facts: ArrivalFacts, mail: InboundMail, kept: Kept): Guard | null {
  const guard = lookedUp(message, facts, mail, kept);
  return guard === null || mail.testMode ? guard : { ...guard, apart: true };
}

function lookedUp(
  message: Message,
  { threadId }: ArrivalFacts,
  mail: InboundMail,
  { raw }: Kept,
): Guard | null {
  const { inboxId, senderId, rfcMessageId, createdAt } = message;
  if (inboxId === null) return null;
  if (threadId === null)
    return beginsThreadGuard({ inboxId, senderId, related: relatedOf(mail.inspection.mail) });
  if (rfcMessageId === null) return null;
  const since = createdAt - DUPLICATE_WINDOW_MS;
  return untakenGuard({ inboxId, senderId, rfcMessageId, raw: raw.key, since, limit: MAX_COMPARED });
}

function arrive(
  deps: TakeDeps,
  { inbox, addresses, facts }: ArrivalPlace,
  mail: InboundMail,
  kept: Kept,
): StoredArrival {
  const now = deps.clock.now();
  const { mail: read } = mail.inspection;
  const { senderId } = inbox;
  const threadId = inbox.id === null ? null : (facts.threadId ?? newId("thr", now));
  const message = inboundMessage(mail, { inbox, addresses, status: "delivered", threadId, at: now });
  const happening: Happening = { messageId: message.id, type: "inbound_received", email: null };
  const attachments = inboundAttachments(read, now);
  return {
    arrival: { messageId: message.id, threadId },
    statements: [
      ...insertMessage(
        message,
        inboundContent(mail, kept, addresses),
        attachments,
        stillSo(message, facts, mail, kept),
      ),
      ...(inbox.id === null || threadId === null ? [] : moveInbox(inbox, threadId, message, mail)),
    ],
    events: eventsOf(deps.clock, senderId, [happening]),
  };
}

/** What a mail changes in its inbox: the thread, and the count of mail received. */
function moveInbox(inbox: InboxRef, threadId: string, message: Message, mail: InboundMail): Statement[] {
  const { id: inboxId, senderId } = inbox;
  const { mail: read } = mail.inspection;
  const references = referencesOf(read);
  return [
    stepThread({
      threadId,
      inboxId,
      senderId,
      messageId: message.id,
      subject: message.subject,
      preview: read.preview,
      participants: participantsOf(message, inbox.address),
      hasAttachments: read.attachments.length > 0,
      inbound: true,
      at: message.createdAt,
    }),
    ...rememberReferences({ senderId, inboxId, threadId }, references),
    ...(mail.testMode ? [] : [countReceived(senderId, inboxId)]),
  ];
}
