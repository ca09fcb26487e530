import { HELD_MS } from "../../store/messages/held-by-restore.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import type { ReplyCategory } from "../../mail/bounces/reply-phrases.ts";
import { readReply } from "../../mail/bounces/reply-reading.ts";
import type { Message } from "../../store/messages/messages.ts";
import type { Recipient } from "../../store/messages/recipients.ts";
import { RETRIES_EXHAUSTED } from "../deliver/verdict.ts";
import { providerLane } from "../lanes/providers.ts";
import type { Forward } from "../../store/rules/rule-effects.ts";
import { BY_CATEGORY, BY_PARTY, BY_REASON, BY_STATUS, type Cause, UNFORWARDED, WHAT } from "./causes.ts";
import { timeOf, type Wait } from "./waits.ts";

/** The outcome of one recipient, in plain words. */
export interface Explained extends Cause {
  email: string;
  status: RecipientStatus;
  what: string;
  /** When it is tried next, milliseconds. Left out if it is not, or is being tried now. */
  nextAttemptAt?: number;
}

/** The outcome of a message, in plain words. */
export interface Explanation {
  summary: string;
  recipients: Explained[];
}

/**
 * Explains what became of a message. It reads refusals by the same table as the delivery itself.
 * @param waits what the lanes of waiting recipients do
 * @param forwards of a received message by rules
 */
export function explain(
  message: Message,
  recipients: readonly Recipient[],
  now: number,
  waits: ReadonlyMap<Recipient, Wait> = new Map(),
  forwards: readonly Forward[] = [],
): Explanation {
  const explained = recipients.map((recipient) => {
    const wait = waits.get(recipient);
    return wait === undefined
      ? explainRecipient(message, recipient, now)
      : { email: recipient.email, status: recipient.status, what: WHAT[recipient.status], ...wait };
  });
  const forward = message.viaDomain === null ? "" : "A rule forwards a received message. ";
  const summary = forward + summaryOf(message, explained);
  return { summary: [summary, ...unforwarded(forwards)].join(" "), recipients: explained };
}

/** Returns sentences about the forwards that were not sent. They are not tried again. */
function unforwarded(forwards: readonly Forward[]): string[] {
  const missing = forwards.flatMap(({ to, reason }) =>
    reason === null
      ? []
      : [`It was not forwarded to ${to ?? "an address"}: ${UNFORWARDED[reason] ?? `\`${reason}\``}.`],
  );
  return missing.length === 0 ? [] : [...missing, "POST /v1/emails/{id}/forward sends it by hand."];
}

function explainRecipient(message: Message, recipient: Recipient, now: number): Explained {
  const { email, status } = recipient;
  const { scheduledAt } = message;
  if (scheduledAt !== null && scheduledAt > now && status === "accepted")
    return {
      email,
      status,
      what: "The message is scheduled.",
      who: "you",
      why: `It is due at ${new Date(scheduledAt).toISOString()}.`,
      next: "Nothing. Until then it can be rescheduled or canceled.",
    };
  const cause = causeOf(recipient, now);
  const dueAt = (recipient.dueAt ?? HELD_MS) < HELD_MS ? recipient.dueAt : null;
  if (status !== "delivery_delayed" || dueAt === null) return { email, status, what: WHAT[status], ...cause };
  const what = `${WHAT[status].replace(/ It is tried again\.$/, "")} It is tried again at ${timeOf(dueAt, now)}.`;
  return { email, status, what, ...cause, nextAttemptAt: dueAt };
}

function causeOf(recipient: Recipient, now: number): Cause {
  const { status, reason, diagnostic } = recipient;
  const own = reason === null ? undefined : BY_REASON[reason];
  const cause = own ?? BY_STATUS[status];
  if (cause !== undefined) return cause;
  const found = refusalCause(recipient);
  const why = [askedFor(recipient, now), found.why, diagnostic === null ? null : `The reply: ${diagnostic}`];
  return { ...found, why: why.filter((part) => part !== null).join(" ") };
}

/** Returns the cause of a refusal, by its subject and by who can change it. */
function refusalCause({ reason, smtpCode, enhancedCode, diagnostic }: Recipient): Cause {
  const read = readReply({ code: smtpCode, enhanced: enhancedCode, text: diagnostic ?? reason ?? "" });
  const category = reason !== null && isCategory(reason) ? reason : read.category;
  const usual = BY_CATEGORY[category];
  if (category !== read.category || diagnostic === null || read.who === usual.who) return usual;
  return { ...usual, ...BY_PARTY[category]?.[read.who], who: read.who };
}

/** Subjects of a deferral by which a provider asks us to try later. */
const ASKS_TO_WAIT: ReadonlySet<string> = new Set<ReplyCategory>(["rate", "reputation", "greylist"]);

/** Returns what the provider asked of us, in words: "Yahoo asked us to wait until 14:10 UTC." */
function askedFor({ status, reason, mx, domain, dueAt }: Recipient, now: number): string | null {
  if (reason === RETRIES_EXHAUSTED) return "All tries were put off until the time for tries was over.";
  if (status !== "delivery_delayed" || dueAt === null || dueAt >= HELD_MS || !ASKS_TO_WAIT.has(reason ?? ""))
    return null;
  const name = mx === null ? null : providerLane([mx])?.provider.title;
  return `${name ?? `The mail server of ${domain}`} asked us to wait until ${timeOf(dueAt, now)}.`;
}

function isCategory(reason: string): reason is ReplyCategory {
  return Object.hasOwn(BY_CATEGORY, reason);
}

function summaryOf({ direction, status }: Message, recipients: readonly Explained[]): string {
  if (direction === "inbound")
    return status === "inbound_rejected"
      ? "The message was refused, and only its header is kept. The event `inbound_rejected` has the reason."
      : "The message was received.";
  const [first] = recipients;
  if (first === undefined) return "The message has no recipients.";
  if (recipients.length === 1) return `${first.what} ${first.why}`;
  const counts = Map.groupBy(recipients, (one) => one.status);
  const parts = [...counts].map(([one, those]) => `${those.length} ${one}`);
  return `Of ${recipients.length} recipients: ${parts.join(", ")}.`;
}
