import { contactOf } from "./contacts.ts";
import type { Item, Mailbox } from "./items.ts";
import {
  isSuppressed,
  type Message,
  type Project,
  type Recipient,
  type RecipientStatus,
  type Thread,
} from "./state.ts";

const BASIC_TIER = 2000;

/** The UTC day of a time. */
function dayOf(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

/** Recipients that the project may still write to that day. Only its own quota is ever reached here. */
export function roomOf(project: Project, now: number): number {
  const limit = project.dailyQuota ?? BASIC_TIER * 1000;
  return Math.max(0, limit - (project.usage.get(dayOf(now)) ?? 0));
}

export function take(project: Project, recipients: number, now: number): void {
  project.usage.set(dayOf(now), (project.usage.get(dayOf(now)) ?? 0) + recipients);
}

export function recipientsIn({ to = [], cc = [], bcc = [] }: Item): number {
  return to.length + cc.length + bcc.length;
}

const addressesOf = (list: readonly Mailbox[] = []): string[] => list.map(({ email }) => email);

/** The message that a valid item becomes when it is accepted. Its id and thread come from the answer. */
export function messageOf(project: Project, item: Item, now: number): Message {
  const planned = item.scheduledAt === undefined ? now : Date.parse(item.scheduledAt);
  const later = planned > now;
  const template = project.templates.find(
    ({ id, slug }) => id === item.templateId || slug === item.templateId,
  );
  const message: Message = {
    id: "",
    direction: "outbound",
    from: item.from?.email ?? "",
    to: addressesOf(item.to),
    cc: addressesOf(item.cc),
    bcc: addressesOf(item.bcc),
    subject: item.subject ?? "",
    html: item.html ?? null,
    text: item.text ?? null,
    tags: item.tags ?? [],
    templateId: item.templateId ?? null,
    unsubscribeLink: item.unsubscribeLink === true,
    scheduledAt: later ? planned : null,
    recipients: [],
    thread: null,
    inboxId: null,
    rfcId: null,
    template: template ?? null,
    createdAt: now,
    events: [],
  };
  message.recipients = (["to", "cc", "bcc"] as const).flatMap((kind) =>
    addressesOf(item[kind]).map((email) => recipientOf(project, message, email, kind, now)),
  );
  return message;
}

function recipientOf(
  project: Project,
  message: Message,
  email: string,
  kind: Recipient["kind"],
  now: number,
): Recipient {
  const { scheduledAt } = message;
  const refusal = refusalOf(project, message, email, now);
  const status: RecipientStatus =
    refusal !== null ? "rejected" : scheduledAt === null ? "queued" : "accepted";
  const types = status === "accepted" ? ["accepted"] : ["accepted", status];
  const dueAt = scheduledAt ?? now;
  return {
    email,
    kind,
    status,
    reason: refusal,
    attempts: 0,
    firstAttemptAt: null,
    due: refusal === null ? { from: dueAt, to: dueAt } : null,
    events: types.map((type) => ({ type, at: now })),
  };
}

/** Why an address gets no mail, or null if it does. */
export function refusalOf(project: Project, message: Message, email: string, now: number): string | null {
  if (isSuppressed(project, email, now)) return "suppressed";
  return message.unsubscribeLink && contactOf(project, email)?.subscribed === false ? "unsubscribed" : null;
}

/** Adds a message to the thread it is shown in. */
export function join(project: Project, message: Message, thread: Thread): void {
  thread.messages.push(message);
  thread.lastMessageAt = message.createdAt;
  message.thread = thread;
  message.inboxId = thread.inbox.id;
  if (!project.threads.includes(thread)) project.threads.push(thread);
}
