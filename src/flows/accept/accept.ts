import { AppError } from "../../core/errors.ts";
import type { MessageEvent } from "../../core/messages/events.ts";
import type { KeyBounds } from "../../core/key-bounds.ts";
import { onboardingDomain } from "../../core/own-names.ts";
import { overQuota } from "../../core/quotas.ts";
import { type ReadItem, type Addressee, addresseesOf } from "../../core/messages/send-item.ts";
import type { CheckedSend } from "../../core/messages/send-rules.ts";
import type { Job } from "../../queue/port.ts";
import type { Statement } from "../../store/engine/client.ts";
import { holderOf, overQuotaIn } from "../../store/projects/holdings.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { insertMessage, type Message } from "../../store/messages/messages.ts";
import { insertRecipients, type NewRecipient } from "../../store/messages/recipients.ts";
import type { Broadcast } from "../../store/audience/broadcasts.ts";
import type { Project } from "../../store/projects/projects.ts";
import { type SendQuestion, sendFacts } from "../../store/messages/sending.ts";
import { type Subscription, subscriptions } from "../../store/webhooks/webhook-deliveries.ts";
import { hint, transmitJob } from "../../queue/hint.ts";
import { announceEvents, eventsOf, type EventDraft } from "../webhooks/announce.ts";
import { retryOnConflict } from "../../store/engine/retry-on-conflict.ts";
import { contentGone, contentOfItem, type KeptContent, type SendContent } from "./content.ts";
import { type Conversation, joinThread } from "./join-thread.ts";
import {
  approvalNotice,
  type From,
  fromOf,
  newContentOf,
  newMessage,
  type OutboundMessage,
  toRecipient,
} from "./new-message.ts";
import { applyPolicy } from "./policy.ts";
import { renderedItem } from "./rendered-item.ts";
import { isClipped } from "./leaving-html.ts";
import { type SendWarning, sendWarnings } from "./send-warnings.ts";
import { commitWithinVolume, type Counted, refuseOverVolume, storedLimitOf } from "./volume.ts";
import type { Sending } from "./sending.ts";

/** The body of a 202. */
export interface Accepted {
  id: string;
  status: "queued" | "accepted";
  /** ISO 8601; only if it is in the future. */
  scheduledAt?: string;
}

export interface SendingKey {
  /** Null: the command line, which needs no key. */
  keyId: string | null;
  bounds: KeyBounds;
}

/** A message that policy let through, with the statements of its commit and the hints after it. */
export interface PreparedSend extends Counted {
  accepted: Accepted;
  warnings: readonly SendWarning[];
  transmits: Job[];
  events: readonly MessageEvent[];
  /** The project's enabled webhooks. */
  webhooks: readonly Subscription[];
}

/** A route that mail leaves through, whatever the mode of delivery. */
export interface WayOut {
  routeId: string;
  kind: "mx" | "relay";
}

/** How a send differs from one that is posted. */
export interface SendOptions extends Conversation {
  /** If left out, the content of the item. */
  content?: SendContent;
  /** True if it never leaves this machine: then it may be from any address and counts in no quota. */
  captured?: boolean;
  /** True for the service's own mail, which test mode does not limit to the owner. */
  toAnyone?: boolean;
  /** The broadcast that the message is part of. It has its content and its routes, and begins no thread, because a million would hide the others. */
  broadcast?: Pick<Broadcast, "id" | "routeIds">;
  /** The route of a captured message that is released. If left out, the message goes the usual way. */
  released?: WayOut;
  /** The domain in whose name a forward leaves, in place of that of its From. A forward joins no thread. */
  viaDomain?: string;
}

/** Prepares a send for its commit. Large content is written ahead. Throws the AppError that refuses it. */
export async function prepareSend(
  deps: Sending,
  project: Project,
  by: SendingKey,
  asked: CheckedSend,
  {
    content: given,
    captured: isCaptured = false,
    toAnyone = false,
    released,
    broadcast,
    viaDomain,
    ...conversation
  }: SendOptions = {},
): Promise<PreparedSend> {
  const senderId = project.id;
  const now = deps.clock.now();
  const from = fromOf(asked.item, viaDomain);
  const addressees = addresseesOf(asked.item);
  const facts = await sendFacts(deps.db, project, questionOf(asked.item, from, addressees), now);
  const { verified } = facts;
  const { bounds } = by;
  const fromDomain = from.domain;
  // Mail servers must not get mail in a domain's name that has not allowed it. A relay decides about that itself.
  const captured = isCaptured || (released?.kind !== "mx" && isForeign(deps, fromDomain, verified));
  const variables = await applyPolicy(deps, project, {
    send: asked,
    fromDomain,
    verified,
    captured,
    toAnyone,
    addressees,
    bounds,
  });
  const rendered = bounds.approval ? await renderedItem(deps, senderId, asked.item) : null;
  const send = rendered === null ? asked : { ...asked, item: rendered };
  const content = given ?? contentOfItem(send.item);
  const ownRoutes = broadcast !== undefined && broadcast.routeIds.length > 0 ? broadcast.id : null;
  const routedBy = released?.routeId ?? ownRoutes ?? facts.routedBy;
  const recipients = addressees.map((addressee, ord) =>
    toRecipient(addressee, ord, facts, { send, needsApproval: bounds.approval, routedBy, now }),
  );
  const counted = captured && released === undefined ? 0 : recipients.length;
  if (content.mayWriteAhead()) await refuseOverVolume(deps, project, counted);
  const kept = await keepContents(deps, project, content, { captured, now });
  const message = newMessage(project, send, from, {
    recipients,
    kept,
    captured,
    keyId: by.keyId,
    viaDomain,
    now,
    ...(broadcast === undefined ? {} : { templateId: broadcast.id }),
  });
  const thread = await joinThread(
    deps.db,
    message,
    { item: send.item, content },
    broadcast === undefined && viaDomain === undefined ? facts.inbox : null,
    conversation,
  );
  const drafts = recipients.flatMap((recipient) => arrivals(message, recipient));
  // Writing large content takes long, so webhooks are read after it. One that was created during the write gets the
  // events.
  const webhooks = content.mayWriteAhead() ? await subscriptions(deps.db, senderId) : facts.webhooks;
  return {
    accepted: answer(message, bounds.approval),
    warnings: sendWarnings(send.item, variables, isClipped(deps, project, send.item)),
    recipients: counted,
    captured,
    statements: [
      ...insertMessage(
        message,
        newContentOf(send.item, kept, rendered !== null),
        kept.attachments,
        thread.guard,
      ),
      insertRecipients(senderId, message.id, recipients, now),
      ...thread.statements,
      ...approvalNotice(message.id, senderId, recipients, now),
    ],
    transmits: recipients
      .filter(({ status }) => status === "queued")
      .map((recipient) => transmitJob(message.id, recipient.ord, { senderId, ...recipient })),
    events: eventsOf(deps.clock, senderId, drafts),
    webhooks,
  };
}

/** Returns true if the message is captured for its From domain, which the project could not send from. */
function isForeign(deps: Sending, fromDomain: string, verified: boolean): boolean {
  return deps.capturesAnyFrom && !verified && fromDomain !== onboardingDomain(deps.serviceDomain);
}

/** Keeps bodies and attachments. Throws 403 `quota_exceeded` if what is written ahead goes over the stored octets. */
async function keepContents(
  deps: Sending,
  project: Project,
  content: SendContent,
  { captured, now }: { captured: boolean; now: number },
): Promise<KeptContent> {
  const storedLimit = captured ? null : storedLimitOf(deps.volume, project);
  const keeping = { db: deps.db, clock: deps.clock, storedLimit };
  try {
    return await content.keep(keeping, holderOf(project.id, captured), now);
  } catch (error) {
    throw overQuotaIn(error) === null ? error : overQuota("storedOctets", storedLimit);
  }
}

/**
 * Commits prepared sends of one project together, up to its volume for the day, then hints the queues. If another
 * process has changed the thread or inbox of one, nothing is written, and `sending` retries.
 * @param record statements for the same write (an idempotent answer), given the refused sends
 * @returns the refusals by send; all other sends are accepted
 */
export async function commitSends(
  deps: Sending,
  project: Project,
  sends: readonly PreparedSend[],
  record: (refused: ReadonlyMap<PreparedSend, AppError>) => readonly Statement[],
): Promise<ReadonlyMap<PreparedSend, AppError>> {
  let accepted: readonly PreparedSend[] = [];
  let pushes: Job[] = [];
  const write = commitWithinVolume(deps, project, sends, (refused) => {
    accepted = sends.filter((send) => !refused.has(send));
    const events = accepted.flatMap((send) => send.events);
    // As read for the last send, which is nearest to the commit.
    const webhooks = new Map([[project.id, accepted.at(-1)?.webhooks ?? []]]);
    const announced = announceEvents(deps.clock, events, webhooks);
    pushes = announced.pushes;
    return [...announced.statements, ...record(refused)];
  });
  const refused = await write.catch(contentGone);
  hint(
    deps.queue,
    "transmit",
    accepted.flatMap((send) => send.transmits),
  );
  hint(deps.queue, "push", pushes);
  return refused;
}

/**
 * Prepares sends and commits them. If another process has just changed where they belong, starts over: it began the
 * same thread, or deleted the inbox.
 * @throws AppError 503 if that keeps happening; nothing was committed
 */
export async function sending<Sent>(prepareAndCommit: () => Promise<Sent>): Promise<Sent> {
  const sent = await retryOnConflict(
    prepareAndCommit,
    (error) => isBroken(error, "message_conflict") || isBroken(error, "inbox_deleted"),
  );
  if (sent !== null) return sent;
  throw new AppError("service_unavailable", "Too many sends at once. Try again.", { retryAfterSeconds: 1 });
}

/**
 * Commits one prepared send together with `extra`, then hints the queues.
 * @throws AppError 403 `daily_quota_exceeded`, `trust_tier_exceeded`, `quota_exceeded`; nothing is written then
 */
export async function commitSend(
  deps: Sending,
  project: Project,
  send: PreparedSend,
  extra: readonly Statement[] = [],
): Promise<void> {
  const refused = await commitSends(deps, project, [send], (over) => (over.has(send) ? [] : extra));
  const refusal = refused.get(send);
  if (refusal !== undefined) throw refusal;
}

function questionOf(item: ReadItem, from: From, addressees: readonly Addressee[]): SendQuestion {
  return {
    fromDomain: from.domain,
    inboxAddress: from.inboxAddress,
    keys: addressees.map(({ key }) => key),
    unsubscribeLink: item.unsubscribeLink === true,
    topicId: item.topicId ?? null,
  };
}

/** Returns the first events of a recipient: `accepted`, and its current state. */
function arrivals({ id: messageId, scheduledAt }: Message, recipient: NewRecipient): EventDraft[] {
  const { email, status, reason } = recipient;
  const data = scheduledAt === null ? {} : { accepted: { scheduledAt: new Date(scheduledAt).toISOString() } };
  const first: EventDraft = { messageId, type: "accepted", email, data };
  if (status === "queued") return [first, { messageId, type: "queued", email }];
  if (status === "rejected")
    return [first, { messageId, type: "rejected", email, data: { rejected: { reason } } }];
  return [first];
}

/** Returns the answer to a send. It does not say that all recipients are suppressed. The record shows that. */
function answer({ id, scheduledAt }: OutboundMessage, needsApproval: boolean): Accepted {
  if (scheduledAt !== null)
    return { id, status: "accepted", scheduledAt: new Date(scheduledAt).toISOString() };
  return { id, status: needsApproval ? "accepted" : "queued" };
}
