import { type Mailbox, NO_ADDRESS, splitAddress } from "../../core/addresses.ts";
import { invalid, notFound } from "../../core/errors.ts";
import { isId, newId } from "../../core/ids.ts";
import { compose, type OutgoingAttachment } from "../../mail/composing/compose.ts";
import { messageIdsIn } from "../../mail/reading/header-block.ts";
import type { Statement } from "../../store/engine/client.ts";
import { getInbox, isInboxGone } from "../../store/inboxes.ts";
import { getMessage } from "../../store/messages.ts";
import { type InboxRef, ownInbox } from "../../store/sending.ts";
import { getThread } from "../../store/threads.ts";
import { simulatorDomain } from "../own-names.ts";
import { tooMuchMail } from "../read/large-mails.ts";
import { inboxAddressOf, reachesInbox } from "../threading.ts";
import { factsOf } from "./facts.ts";
import type { Inspect } from "../readings.ts";
import { lookingAnew } from "../look-anew.ts";
import { type Arrival, type TakeDeps, takeMail } from "./take.ts";
import { traceFields } from "./trace.ts";

/** A mail as a client wants it to have arrived. */
export interface SimulatedMail {
  inboxId?: string | undefined;
  /** Address of the inbox, where it is not named by id. */
  to?: string | undefined;
  from?: Mailbox | undefined;
  subject?: string | undefined;
  text?: string | undefined;
  html?: string | undefined;
  attachments: readonly OutgoingAttachment[];
  /** A Message-ID, or the id of one of our messages or threads. */
  inReplyTo?: string | undefined;
}

export interface SimulateDeps extends TakeDeps {
  /** Our name in the trace fields. */
  hostname: string;
  serviceDomain: string;
  inspect: Inspect;
  /** Left out: none. */
  limits?: { maxMessageBytes: number };
}

/** Whom a mail is from that names nobody: an answer to it is delivered as simulated mail is, and goes nowhere. */
function defaultFrom(serviceDomain: string): Mailbox {
  return { email: `delivered@${simulatorDomain(serviceDomain)}`, name: "Simulated Sender" };
}

/**
 * Builds the mail as MIME and lets it in by the way of every mail after DATA, flagged as test mode.
 * @param record further statements for the write that stores it (an idempotent answer)
 * @throws AppError 404 for no such inbox, 422 for an inReplyTo that leads nowhere and for a mail too large
 */
export async function simulateInbound(
  deps: SimulateDeps,
  senderId: string,
  mail: SimulatedMail,
  record: (arrival: Arrival) => readonly Statement[],
): Promise<Arrival> {
  const inbox = await inboxOf(deps, senderId, mail);
  const now = deps.clock.now();
  const from = mail.from ?? defaultFrom(deps.serviceDomain);
  const to = mail.to !== undefined && reachesInbox(inbox.address, mail.to) ? mail.to : inbox.address;
  const answered = mail.inReplyTo === undefined ? null : await messageIdOf(deps, senderId, mail.inReplyTo);
  const raw = simulatedBytes(mail, from, to, answered, now);
  // What the listener would not take is not to be had this way either.
  if (raw.length > (deps.limits?.maxMessageBytes ?? Number.POSITIVE_INFINITY))
    throw invalid("attachments", "The message is larger than this server takes.", "message_too_large");
  const envelope = { mailFrom: from.email, rcptTo: [to], ip: "127.0.0.1", helo: "simulator", tls: null };
  const inspection = await deps.inspect({ kind: "mail", raw, session: null });
  if (inspection === null) throw tooMuchMail();
  const { header } = inspection.authentication;
  const trace = traceFields({ ...envelope, smtpUtf8: false }, header, deps.hostname, now);
  const arriving = { envelope, trace, raw, inspection, testMode: true };
  const taken = await lookingAnew(async () => {
    const facts = await factsOf(deps, inbox, inspection.mail);
    if (facts === null) throw notFound("inbox");
    return takeMail(deps, [{ inbox, addresses: [to], facts }], arriving, (made) => made.flatMap(record));
  }).catch((error: unknown) => {
    throw isInboxGone(error) ? notFound("inbox") : error;
  });
  if (taken === null) throw tooMuchMail();
  const [arrival] = taken;
  if (arrival === undefined) throw new Error("a simulated mail has one inbox");
  return arrival;
}

function simulatedBytes(
  mail: SimulatedMail,
  from: Mailbox,
  to: string,
  answered: string | null,
  now: number,
): Buffer {
  const domain = splitAddress(from.email)?.domain;
  if (domain === undefined) throw invalid("from.email", NO_ADDRESS, "invalid_email");
  const references: [string, string][] =
    answered === null
      ? []
      : [
          ["In-Reply-To", answered],
          ["References", answered],
        ];
  return compose({
    from,
    to: [{ email: to }],
    subject: mail.subject ?? "",
    text: mail.text ?? (mail.html === undefined ? "" : null),
    html: mail.html ?? null,
    attachments: mail.attachments,
    messageId: `<${newId("msg", now)}@${domain}>`,
    date: now,
    extraHeaders: references,
  }).raw;
}

async function inboxOf(deps: SimulateDeps, senderId: string, mail: SimulatedMail): Promise<InboxRef> {
  if (mail.inboxId !== undefined) {
    const inbox = await getInbox(deps.db, senderId, mail.inboxId);
    if (inbox === null) throw notFound("inbox");
    return inbox;
  }
  if (mail.to === undefined)
    throw invalid("inboxId", "Required, unless to names the inbox.", "missing_field");
  const inbox = await ownInbox(deps.db, senderId, inboxAddressOf(mail.to));
  if (inbox === null) throw notFound("inbox");
  return inbox;
}

/** The Message-ID itself, or that of the message with the id, or of the thread's last one. */
async function messageIdOf(deps: SimulateDeps, senderId: string, text: string): Promise<string> {
  const [named] = messageIdsIn(text);
  if (named !== undefined) return named;
  const thread = isId("thr", text) ? await getThread(deps.db, senderId, text) : null;
  const message = await getMessage(deps.db, senderId, thread?.lastMessageId ?? text);
  if (message?.rfcMessageId == null)
    throw invalid("inReplyTo", "Neither a Message-ID nor one of this project's messages.");
  return message.rfcMessageId;
}
