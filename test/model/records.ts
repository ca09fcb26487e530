import type { Chance } from "../support/chance.ts";
import { agree, isText, itemsOf, membersOf, shownTime, textOf } from "./agree.ts";
import { ask } from "./request.ts";
import { type Message, type Project, type Recipient, statusOf, type World } from "./state.ts";

/** The event of a recipient's state, by the name in the record. */
const EVENT_OF: Readonly<Record<string, string>> = {
  delivered: "delivery",
  bounced: "bounce",
  complained: "complaint",
};

export function eventOf(status: string): string {
  return EVENT_OF[status] ?? status;
}

/** The listed fields of a message. */
export function summaryView(message: Message): object {
  const { id, from, to, direction, createdAt } = message;
  return {
    id,
    from,
    to,
    subject: subjectOf(message),
    direction,
    status: statusOf(message),
    createdAt: shownTime(createdAt),
  };
}

/** A template's subject is known once it is rendered. The text shown until then is left open. */
function subjectOf({ template, subject }: Message): unknown {
  return template === null ? subject : (shown: unknown) => typeof shown === "string";
}

/** Reads the full record and compares it: contents, recipients, and every event in order. */
export async function readRecord(
  world: World,
  chance: Chance,
  project: Project,
  message: Message,
): Promise<void> {
  const path = `/v1/emails/${message.id}`;
  const asked = { account: project.account, project, method: "GET", path, scope: "emails:read" };
  const record = membersOf((await ask(world, chance, asked, { status: 200 })).body);
  const where = `the record of ${message.id}`;
  agree(record, { ...summaryView(message), senderId: project.id, messageId: isText }, where);
  message.rfcId ??= textOf(record.messageId);
  agree(record.messageId, message.rfcId, `${where}: its Message-ID`);
  agree(record.threadId ?? null, message.thread?.id ?? null, `${where}: its thread`);
  if (message.direction === "inbound") {
    agree(
      record,
      {
        text: (text: unknown) => textOf(text).trimEnd() === message.text,
        events: message.events.map((type) => ({ type })),
      },
      where,
    );
    return;
  }
  compareRecipients(message, record);
}

function compareRecipients(message: Message, record: Readonly<Record<string, unknown>>): void {
  const where = `the record of ${message.id}`;
  const { cc, bcc, tags, templateId, template, html, text, recipients } = message;
  const body = template === null ? { html, text } : {};
  agree(record, { cc, bcc, tags, templateId, ...body }, where);
  const shown = itemsOf(record.recipients);
  agree(
    [...shown],
    recipients.map(({ email, kind, status, attempts }) => ({ email, kind, status, attempts })),
    `${where}: its recipients`,
  );
  for (const [at, recipient] of recipients.entries())
    if (recipient.reason !== null)
      agree(membersOf(shown[at]).reason, recipient.reason, `${where}: why ${recipient.email} was refused`);
  for (const recipient of recipients) compareEvents(recipient, itemsOf(record.events).map(membersOf), where);
}

function compareEvents(
  recipient: Recipient,
  events: readonly Readonly<Record<string, unknown>>[],
  where: string,
): void {
  const own = events.filter(({ email }) => email === recipient.email);
  const sending = own.filter(({ type }) => type === "sending").length;
  agree(sending, recipient.attempts, `${where}: how often ${recipient.email} was sent to`);
  agree(
    own.filter(({ type }) => type !== "sending").map(({ type, createdAt }) => ({ type, createdAt })),
    recipient.events.map(({ type, at }) => ({ type, createdAt: shownTime(at) })),
    `${where}: the events of ${recipient.email}`,
  );
}
