import {
  ADDRESS_EXPECTED,
  ANY_LOCAL_PART,
  catchAllOf,
  isCatchAll,
  type Mailbox,
  splitAddress,
} from "../../core/addresses.ts";
import { invalid, notFound, existing } from "../../core/errors.ts";
import { isId, newId } from "../../core/ids.ts";
import { compose, type OutgoingAttachment } from "../../mail/composing/compose.ts";
import { messageIdsIn } from "../../mail/reading/header-block.ts";
import type { Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { getInbox } from "../../store/threads/inboxes.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { type InboxRef, ownInbox } from "../../store/messages/sending.ts";
import { getThread } from "../../store/threads/threads.ts";
import { simulatorDomain } from "../../core/own-names.ts";
import { tooManyReads } from "../../store/contents/large-reads.ts";
import { inboxAddressOf } from "../accept/threading.ts";
import { arrivalFactsOf } from "./arrival-facts.ts";
import type { Inspect } from "../mime/reading-tasks.ts";
import { retryOnConflict } from "../../store/engine/retry-on-conflict.ts";
import { type Arrival, storeInbound } from "./store-inbound.ts";
import { traceFields } from "./trace-fields.ts";
import type { Receiving } from "./storage-limits.ts";

/** A simulated incoming message, as a client describes it. */
export interface SimulatedMail {
  inboxId?: string | undefined;
  /** Address of the inbox, if `inboxId` is not given. */
  to?: Mailbox | undefined;
  from?: Mailbox | undefined;
  subject?: string | undefined;
  text?: string | undefined;
  html?: string | undefined;
  attachments: readonly OutgoingAttachment[];
  /** A Message-ID, or the id of one of our messages or threads. */
  inReplyTo?: string | undefined;
}

export interface SimulateDeps extends Receiving {
  /** Our name in the trace fields. */
  hostname: string;
  serviceDomain: string;
  inspect: Inspect;
  /** If left out, there is no limit. */
  limits?: { maxMessageBytes: number };
}

/** Returns the sender if none is given. A reply to it goes to the simulator, so it does not leave the service. */
function defaultFrom(serviceDomain: string): Mailbox {
  return { email: `delivered@${simulatorDomain(serviceDomain)}`, name: "Simulated Sender" };
}

/**
 * Composes the message and stores it as a received one, marked as test mode.
 * @param record returns further statements for the write, such as an idempotent answer
 * @throws AppError 404 if there is no such inbox; 422 if inReplyTo is unknown or the message is too large
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
  const to = addressedTo(inbox.address, mail.to);
  const answered = mail.inReplyTo === undefined ? null : await messageIdOf(deps, senderId, mail.inReplyTo);
  const raw = simulatedBytes(mail, from, to, answered, now);
  // The limit of the SMTP listener.
  if (raw.length > (deps.limits?.maxMessageBytes ?? Number.POSITIVE_INFINITY))
    throw invalid("attachments", "The message is larger than this server takes.", "message_too_large");
  const envelope = {
    mailFrom: from.email,
    rcptTo: [to.email],
    ip: "127.0.0.1",
    helo: "simulator",
    tls: null,
  };
  const inspection = await deps.inspect({ kind: "mail", raw, session: null });
  if (inspection === null) throw tooManyReads();
  const { header } = inspection.authentication;
  const trace = traceFields({ ...envelope, smtpUtf8: false }, header, deps.hostname, now);
  const arriving = { envelope, trace, raw, inspection, spam: null, rules: new Map(), testMode: true };
  const taken = await retryOnConflict(async () => {
    const facts = existing("inbox", await arrivalFactsOf(deps, inbox, inspection.mail));
    return storeInbound(deps, [{ inbox, addresses: [to.email], facts }], arriving, (made) =>
      made.flatMap(record),
    );
  }).catch((error: unknown) => {
    throw isBroken(error, "inbox_deleted") ? notFound("inbox") : error;
  });
  if (taken === null) throw tooManyReads();
  const [arrival] = taken;
  if (arrival === undefined) throw new Error("a simulated message has one inbox");
  return arrival;
}

/** Local part of the address that is written to in a catch-all, if none is given. */
const ANYBODY = "anybody";

/** Returns the given address if the inbox takes its mail, else the inbox's own. */
function addressedTo(inboxAddress: string, given: Mailbox | undefined): Mailbox {
  const reached = given === undefined ? null : inboxAddressOf(given.email);
  const own = isCatchAll(inboxAddress) ? reached !== null && catchAllOf(reached) : reached;
  if (given !== undefined && own === inboxAddress) return given;
  return { email: isCatchAll(inboxAddress) ? inboxAddress.replace(ANY_LOCAL_PART, ANYBODY) : inboxAddress };
}

function simulatedBytes(
  mail: SimulatedMail,
  from: Mailbox,
  to: Mailbox,
  answered: string | null,
  now: number,
): Buffer {
  const domain = splitAddress(from.email)?.domain;
  if (domain === undefined) throw invalid("from.email", ADDRESS_EXPECTED, "invalid_email");
  const references: [string, string][] =
    answered === null
      ? []
      : [
          ["In-Reply-To", answered],
          ["References", answered],
        ];
  return compose({
    from,
    to: [to],
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
    return existing("inbox", await getInbox(deps.db, senderId, mail.inboxId));
  }
  if (mail.to === undefined)
    throw invalid("inboxId", "Required, unless to names the inbox.", "missing_field");
  return existing("inbox", await ownInbox(deps.db, senderId, inboxAddressOf(mail.to.email)));
}

/** Returns the Message-ID that the text holds, or that of the message or of the thread's last message it names. */
async function messageIdOf(deps: SimulateDeps, senderId: string, text: string): Promise<string> {
  const [named] = messageIdsIn(text);
  if (named !== undefined) return named;
  const thread = isId("thr", text) ? await getThread(deps.db, senderId, text) : null;
  const message = await getMessage(deps.db, senderId, thread?.lastMessageId ?? text);
  if (message?.rfcMessageId == null)
    throw invalid("inReplyTo", "Neither a Message-ID nor one of this project's messages.");
  return message.rfcMessageId;
}
