import { type Mailbox, normalizeAddress } from "../../core/addresses.ts";
import { AppError } from "../../core/errors.ts";
import type { MessageEvent } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { SendAddress, SendItem } from "../../core/send-item.ts";
import { type Addressee, addresseesOf, type CheckedSend } from "../../core/send-rules.ts";
import { type RecipientStatus, rollUp } from "../../core/states.ts";
import { wellFormed } from "../../core/well-formed.ts";
import type { Job, Queue } from "../../queue/port.ts";
import type { Statement } from "../../store/engine/client.ts";
import { isInboxGone } from "../../store/inboxes.ts";
import type { NewAttachment } from "../../store/attachments.ts";
import { insertMessage, isMessageBarred, type Message } from "../../store/messages.ts";
import { insertRecipients, type NewRecipient } from "../../store/recipients.ts";
import type { Sender } from "../../store/senders.ts";
import { type SendFacts, type SendQuestion, sendFacts } from "../../store/sending.ts";
import { type Subscription, subscriptions } from "../../store/webhook-deliveries.ts";
import type { KeepDeps } from "../contents/keep.ts";
import { hint, transmitJob } from "../hint.ts";
import { announceEvents, eventsOf, type Happening } from "../notify/announce.ts";
import { lookingAnew } from "../look-anew.ts";
import { inboxAddressOf } from "../threading.ts";
import { contentGone, contentSize, keepAttachments, keepBodyOf, mayWriteAhead } from "./content.ts";
import { type Conversation, joinThread, referencesOf } from "./join-thread.ts";
import { applyPolicy } from "./policy.ts";
import { commitWithinVolume, type Counted, refuseOverVolume, type VolumeDeps } from "./volume.ts";

export interface AcceptDeps extends VolumeDeps, KeepDeps {
  queue: Queue;
  serviceDomain: string;
}

/** The 202's body. */
export interface Accepted {
  id: string;
  status: RecipientStatus;
  /** ISO 8601; present while it lies ahead. */
  scheduledAt?: string;
}

/** A message that policy let through: what its commit writes, and what to hint afterwards. */
export interface PreparedSend extends Counted {
  accepted: Accepted;
  transmits: Job[];
  events: readonly MessageEvent[];
  /** The project's enabled webhooks. */
  webhooks: readonly Subscription[];
}

/**
 * Everything about one send but the commit; what is large of it is written ahead. Throws the AppError that refuses it.
 */
export async function prepareSend(
  deps: AcceptDeps,
  project: Sender,
  send: CheckedSend,
  conversation: Conversation = {},
): Promise<PreparedSend> {
  const senderId = project.id;
  const now = deps.clock.now();
  const from = fromOf(send.item);
  const addressees = addresseesOf(send.item);
  const facts = await sendFacts(deps.db, project, questionOf(send.item, from, addressees), now);
  const { verified } = facts;
  await applyPolicy(deps, project, { send, fromDomain: from.domain, verified, addressees });
  const recipients = addressees.map((addressee, ord) =>
    toRecipient(addressee, ord, facts, send.scheduledAt, now),
  );
  if (mayWriteAhead(send.item)) await refuseOverVolume(deps, project, recipients.length);
  const body = await keepBodyOf(deps, senderId, send.item);
  const attachments = await keepAttachments(deps, senderId, send.item, now);
  const message = newMessage(project, send, from, recipients, attachments, now);
  const inbox = facts.inboxId === null ? null : { id: facts.inboxId, address: from.inboxAddress };
  const thread = await joinThread(deps.db, message, send.item, inbox, conversation);
  const happenings = recipients.flatMap((recipient) => arrivals(message.id, recipient));
  // What is large is long in writing: a webhook that is made meanwhile hears of it.
  const webhooks = mayWriteAhead(send.item) ? await subscriptions(deps.db, senderId) : facts.webhooks;
  const { headers = {}, data } = send.item;
  const content = { body, headers: wellFormed(headers), data: data === undefined ? null : wellFormed(data) };
  return {
    accepted: answer(message),
    recipients: recipients.length,
    statements: [
      ...insertMessage(message, content, attachments, thread.guard),
      insertRecipients(senderId, message.id, recipients, now),
      ...thread.statements,
    ],
    transmits: recipients
      .filter(({ status }) => status === "queued")
      .map(({ ord, domain }) => transmitJob(message.id, ord, domain)),
    events: eventsOf(deps.clock, senderId, happenings),
    webhooks,
  };
}

/**
 * Commits prepared sends of one project together, as far as its volume of the day goes, then hints the queues.
 * Where others have changed where one belongs, nothing is written, and `sending` knows the error.
 * @param record statements for the same write (an idempotent answer), told which sends are refused
 * @returns the refusals by their sends; all others are accepted
 */
export async function commitSends(
  deps: AcceptDeps,
  project: Sender,
  sends: readonly PreparedSend[],
  record: (refused: ReadonlyMap<PreparedSend, AppError>) => readonly Statement[],
): Promise<ReadonlyMap<PreparedSend, AppError>> {
  let accepted: readonly PreparedSend[] = [];
  let pushes: Job[] = [];
  const write = commitWithinVolume(deps, project, sends, (refused) => {
    accepted = sends.filter((send) => !refused.has(send));
    const events = accepted.flatMap((send) => send.events);
    // As the last of them found it: the nearest to the commit.
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
 * Does what prepares sends and commits them, anew where others have just changed where these belong: a thread was begun that one of them
 * begins, or the inbox deleted that one is from.
 * @throws AppError 503 where others keep doing so, and nothing was committed
 */
export async function sending<Sent>(prepareAndCommit: () => Promise<Sent>): Promise<Sent> {
  const sent = await lookingAnew(prepareAndCommit, (error) => isMessageBarred(error) || isInboxGone(error));
  if (sent !== null) return sent;
  throw new AppError("service_unavailable", "Too many sends at once. Try again.", { retryAfter: 1 });
}

/**
 * Commits one prepared send together with `extra`, then hints the queues.
 * @throws AppError 403 `daily_quota_exceeded`, `trust_tier_exceeded`; nothing is written then
 */
export async function commitSend(
  deps: AcceptDeps,
  project: Sender,
  send: PreparedSend,
  extra: readonly Statement[] = [],
): Promise<void> {
  const refused = await commitSends(deps, project, [send], (over) => (over.has(send) ? [] : extra));
  const refusal = refused.get(send);
  if (refusal !== undefined) throw refusal;
}

function questionOf(item: SendItem, from: From, addressees: readonly Addressee[]): SendQuestion {
  return {
    fromDomain: from.domain,
    inboxAddress: from.inboxAddress,
    keys: addressees.map(({ key }) => key),
    unsubscribeLink: item.unsubscribeLink === true,
  };
}

function toRecipient(
  { email, key, domain, kind }: Addressee,
  ord: number,
  facts: SendFacts,
  scheduledAt: number | null,
  now: number,
): NewRecipient {
  const recipient = { ord, email, domain, kind };
  const reason = refusalOf(key, facts);
  if (reason !== null) return { ...recipient, status: "rejected", reason, dueAt: null };
  const status = scheduledAt === null ? "queued" : "accepted";
  return { ...recipient, status, reason, dueAt: scheduledAt ?? now };
}

/** Why an address is not sent to: on the block list, or unsubscribed from mail with a link to do so; null: it is. */
function refusalOf(key: string, { suppressed, unsubscribed }: SendFacts): string | null {
  if (suppressed.has(key)) return "suppressed";
  return unsubscribed.has(key) ? "unsubscribed" : null;
}

/** The events with which a recipient enters: `accepted`, and where it stands now. */
function arrivals(messageId: string, recipient: NewRecipient): Happening[] {
  const { email, status, reason } = recipient;
  const first: Happening = { messageId, type: "accepted", email };
  if (status === "queued") return [first, { messageId, type: "queued", email }];
  if (status === "rejected")
    return [first, { messageId, type: "rejected", email, data: { rejected: { reason } } }];
  return [first];
}

function toMailbox(address: SendAddress): Mailbox {
  const email = normalizeAddress(address.email) ?? address.email;
  return address.name ? { email, name: address.name.toWellFormed() } : { email };
}

/** The header From, taken apart once. */
interface From {
  mailbox: Mailbox;
  domain: string;
  /** The address of the inbox it would be. */
  inboxAddress: string;
}

function fromOf({ from }: SendItem): From {
  const mailbox = toMailbox(from);
  const { email } = mailbox;
  return { mailbox, domain: email.slice(email.lastIndexOf("@") + 1), inboxAddress: inboxAddressOf(email) };
}

type OutboundMessage = Message & { status: RecipientStatus };

function newMessage(
  project: Sender,
  send: CheckedSend,
  from: From,
  recipients: readonly NewRecipient[],
  attachments: readonly NewAttachment[],
  now: number,
): OutboundMessage {
  const { item, scheduledAt } = send;
  const id = newId("msg", now);
  return {
    id,
    senderId: project.id,
    direction: "outbound",
    status: rollUp(recipients.map((recipient) => recipient.status)),
    from: from.mailbox,
    to: item.to.map(toMailbox),
    cc: (item.cc ?? []).map(toMailbox),
    bcc: (item.bcc ?? []).map(toMailbox),
    replyTo: (item.replyTo ?? []).map(toMailbox),
    subject: item.subject ?? "",
    tags: item.tags ?? [],
    rfcMessageId: `<${id}@${from.domain}>`,
    inReplyTo: referencesOf(item).at(-1) ?? null,
    threadId: null,
    inboxId: null,
    templateId: item.templateId ?? null,
    scheduledAt,
    sentAt: null,
    size: contentSize(item, attachments),
    testMode: false,
    trackOpens: item.tracking?.opens ?? project.trackOpens,
    trackClicks: item.tracking?.clicks ?? project.trackClicks,
    unsubscribeLink: item.unsubscribeLink ?? false,
    createdAt: now,
  };
}

function answer({ id, status, scheduledAt }: OutboundMessage): Accepted {
  return scheduledAt === null
    ? { id, status }
    : { id, status, scheduledAt: new Date(scheduledAt).toISOString() };
}
