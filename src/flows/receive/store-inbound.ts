import { NO_RULING, type RuledForward, type Ruling } from "../../core/rules/ruling.ts";
import { addressKey } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import type { SenderFacts } from "../../core/messages/sender.ts";
import type { MessageEvent } from "../../core/messages/events.ts";
import { type ArrivalFacts, beginsThreadGuard, untakenGuard } from "../../store/messages/arrivals.ts";
import type { Guard, Statement } from "../../store/engine/client.ts";
import type { WebhooksOf } from "../../store/webhooks/fan-outs.ts";
import { countReceived } from "../../store/threads/inboxes.ts";
import {
  CHUNK_OCTETS,
  type HashedContent,
  ofProject,
  orderedByTime,
} from "../../store/contents/content-bytes.ts";
import { insertMessage, type Message } from "../../store/messages/messages.ts";
import type { InboxRef } from "../../store/messages/sending.ts";
import { rememberReferences, stepThread } from "../../store/threads/threads.ts";
import { erasedForm } from "../../store/projects/erased-addresses.ts";
import { askForEffect, type RuleEffect } from "../../store/rules/rule-effects.ts";
import { subscriptions } from "../../store/webhooks/webhook-deliveries.ts";
import { type PrepareDeps, writeAhead } from "../../store/messages/prepare-content.ts";
import { announceEvents, eventsOf, type EventDraft, writeAnnounced } from "../webhooks/announce.ts";
import { ownAddresses, participantsOf } from "../accept/threading.ts";
import {
  DUPLICATE_WINDOW_MS,
  MAX_COMPARED,
  referencedMessageIds,
  relatedMessageIds,
} from "./arrival-facts.ts";
import { fileThread } from "./file-thread.ts";
import type { HashedBody } from "../mime/inspect.ts";
import { chunkPieces } from "../mime/body-encoder.ts";
import { storedLimit, withinStoredLimits, type Receiving } from "./storage-limits.ts";
import {
  type InboundMail,
  type InboundTargetInbox,
  inboundAttachments,
  inboundContent,
  inboundMessage,
} from "./inbound-message.ts";

/** A message that was stored in one inbox. */
export interface Arrival {
  messageId: string;
  /** Null for a role mailbox, which has no threads. */
  threadId: string | null;
}

/** An inbox that a message goes to, and what the database knows about both. */
export interface ArrivalTarget extends InboundTargetInbox {
  facts: ArrivalFacts;
  /** If left out, no rule matches. */
  ruling?: Ruling | undefined;
  /** Left out: nothing proves the sender. */
  sender?: SenderFacts;
}

/**
 * Stores a message in each inbox with its thread, event and webhook deliveries, in one write. Large contents are written
 * before it. When this resolves, the bytes are on disk.
 * @param record returns further statements for the write
 * @throws ConstraintError with the guard `message_conflict`, if an inbox received the message or a part of its thread
 * after the facts were read; an error that `overQuotaIn` knows, if a project has no room. Then nothing is written.
 */
export async function storeInbound(
  deps: Receiving,
  places: readonly ArrivalTarget[],
  mail: InboundMail,
  record: (arrivals: readonly Arrival[]) => readonly Statement[] = () => [],
): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  const statements: Statement[] = [];
  const events: MessageEvent[] = [];
  const named = new Map<string, StoredContents>();
  for (const place of places) {
    const { senderId } = place.inbox;
    // The first message of a project brings the contents; the others refer to them.
    const kept = named.get(senderId) ?? (await storeContents(deps, senderId, mail));
    named.set(senderId, withoutBytes(kept));
    const stored = arrivalIn(deps, place, mail, kept);
    arrivals.push(stored.arrival);
    statements.push(...stored.statements, ...(await ruleEffects(deps, places, place, mail, stored.arrival)));
    events.push(...stored.events);
  }
  const announced = announceEvents(deps.clock, events, await currentWebhooks(deps, places, named));
  const within = await withinStoredLimits(deps, named.keys());
  await writeAnnounced(deps, announced, { before: statements, after: [...record(arrivals), ...within] });
  return arrivals;
}

/** Returns the statements that ask for the reply and the forwards of rules, which are sent after the commit. */
async function ruleEffects(
  { db, clock }: Receiving,
  places: readonly ArrivalTarget[],
  place: ArrivalTarget,
  { inspection, envelope }: InboundMail,
  { messageId }: Arrival,
): Promise<Statement[]> {
  const { senderId } = place.inbox;
  const { reply } = place.ruling ?? NO_RULING;
  const createdAt = clock.now();
  const common = { messageId, senderId, emailId: null, createdAt };
  const effects: RuleEffect[] = forwardsOf(places, place).map(({ ruleId, reason }, at) => ({
    ...common,
    ord: at + 1,
    ruleId,
    templateId: null,
    author: null,
    reason,
    dueAt: reason === null ? createdAt : null,
  }));
  if (reply !== null && reply.reason === null) {
    const email = inspection.mail.from?.email ?? envelope.mailFrom;
    const author = await erasedForm(db, senderId, addressKey(email));
    effects.push({ ...common, ...reply, ord: 0, author, dueAt: createdAt });
  }
  return effects.map(askForEffect);
}

/** Returns the forwards of a message from one of its inboxes. An address gets it from the first one of the project alone. */
function forwardsOf(places: readonly ArrivalTarget[], place: ArrivalTarget): RuledForward[] {
  const { forwards } = place.ruling ?? NO_RULING;
  const taken = places
    .slice(0, places.indexOf(place))
    .filter(({ inbox }) => inbox.senderId === place.inbox.senderId)
    .flatMap(({ ruling }) => ruling?.forwards ?? [])
    .flatMap(({ to, reason }) => (reason === null ? [addressKey(to)] : []));
  return forwards.map((forward) =>
    forward.reason === null && taken.includes(addressKey(forward.to))
      ? { ...forward, reason: "already_forwarded" }
      : forward,
  );
}

/** Returns the webhooks of the projects that a message goes to. */
export function webhooksOf(places: readonly ArrivalTarget[]): WebhooksOf {
  return new Map(places.map(({ inbox, facts }) => [inbox.senderId, facts.webhooks]));
}

/** Reads the webhooks again if large contents were written, which takes long enough for a new webhook to appear. */
async function currentWebhooks(
  { db }: Receiving,
  places: readonly ArrivalTarget[],
  kept: ReadonlyMap<string, StoredContents>,
): Promise<WebhooksOf> {
  const isLarge = [...kept.values()].some(({ raw }) => raw.size > CHUNK_OCTETS);
  if (!isLarge) return webhooksOf(places);
  const lists = [...kept.keys()].map(async (id) => [id, await subscriptions(db, id)] as const);
  return new Map(await Promise.all(lists));
}

/** The contents of a message, shared by its copies in one project. */
interface StoredContents {
  body: HashedContent;
  raw: HashedContent;
}

async function storeContents(
  receiving: Receiving,
  senderId: string,
  { inspection: { contents }, raw }: InboundMail,
): Promise<StoredContents> {
  const { db, clock } = receiving;
  const deps = { db, clock, storedLimit: await storedLimit(receiving, senderId) };
  const now = clock.now();
  const whole = ofProject(senderId, contents.raw);
  return {
    body: orderedByTime(await storeBody(deps, senderId, contents), now),
    raw: whole.bytes === null ? await writeAhead(deps, whole, raw) : orderedByTime(whole, now),
  };
}

/** Prepares a body for the write of its message. A large one is written now. */
export async function storeBody(
  deps: PrepareDeps,
  senderId: string,
  { body, largeBody }: HashedBody,
): Promise<HashedContent> {
  const own = ofProject(senderId, body);
  return largeBody === null ? own : writeAhead(deps, own, chunkPieces(largeBody, own.size));
}

function withoutBytes({ body, raw }: StoredContents): StoredContents {
  return { body: { ...body, bytes: null }, raw: { ...raw, bytes: null } };
}

interface StoredArrival {
  arrival: Arrival;
  statements: Statement[];
  events: MessageEvent[];
}

/**
 * Returns the guard that the facts still hold: no thread exists for the message, or the inbox does not have it.
 * Related messages over SMTP are stored one after another, so their guards are independent of order within a commit.
 * Simulated messages are not, so theirs depends on it.
 */
function conflictGuard(
  message: Message,
  facts: ArrivalFacts,
  mail: InboundMail,
  kept: StoredContents,
): Guard | null {
  const guard = guardOf(message, facts, mail, kept);
  return guard === null || mail.testMode ? guard : { ...guard, orderIndependent: true };
}

function guardOf(
  message: Message,
  { threadId }: ArrivalFacts,
  mail: InboundMail,
  { raw }: StoredContents,
): Guard | null {
  const { inboxId, senderId, rfcMessageId, createdAt } = message;
  if (inboxId === null) return null;
  if (threadId === null)
    return beginsThreadGuard({ inboxId, senderId, related: relatedMessageIds(mail.inspection.mail) });
  if (rfcMessageId === null) return null;
  const since = createdAt - DUPLICATE_WINDOW_MS;
  return untakenGuard({ inboxId, senderId, rfcMessageId, raw: raw.key, since, limit: MAX_COMPARED });
}

function arrivalIn(
  deps: Receiving,
  { inbox, addresses, facts, sender, ruling = NO_RULING }: ArrivalTarget,
  mail: InboundMail,
  kept: StoredContents,
): StoredArrival {
  const now = deps.clock.now();
  const { mail: read } = mail.inspection;
  const { senderId } = inbox;
  const threadId = inbox.id === null ? null : (facts.threadId ?? newId("thr", now));
  const message = inboundMessage(mail, { inbox, addresses, status: "delivered", threadId, sender, at: now });
  const draft: EventDraft = { messageId: message.id, type: "inbound_received", email: null };
  const attachments = inboundAttachments(read, now);
  return {
    arrival: { messageId: message.id, threadId },
    statements: [
      ...insertMessage(
        message,
        inboundContent(mail, kept, addresses, { rules: ruling.applied, sender }),
        attachments,
        conflictGuard(message, facts, mail, kept),
      ),
      ...(inbox.id === null || threadId === null
        ? []
        : [
            ...inboxStatements({ inbox, addresses }, threadId, message, mail),
            ...fileThread({ senderId, threadId, isNew: facts.threadId === null, now }, ruling, mail.spam),
          ]),
    ],
    events: eventsOf(deps.clock, senderId, [draft]),
  };
}

/** Returns the statements that change the inbox: its thread, and its count of received messages. */
function inboxStatements(
  { inbox, addresses }: { inbox: InboxRef; addresses: readonly string[] },
  threadId: string,
  message: Message,
  mail: InboundMail,
): Statement[] {
  const { id: inboxId, senderId } = inbox;
  const { mail: read } = mail.inspection;
  const references = referencedMessageIds(read);
  return [
    stepThread({
      threadId,
      inboxId,
      senderId,
      messageId: message.id,
      subject: message.subject,
      preview: read.preview,
      participants: participantsOf(message, ownAddresses(inbox.address, addresses)),
      hasAttachments: read.attachments.length > 0,
      inbound: true,
      at: message.createdAt,
    }),
    ...rememberReferences({ senderId, inboxId, threadId }, references),
    ...(mail.testMode ? [] : [countReceived(senderId, inboxId)]),
  ];
}
