import type { Clock } from "../../core/clock.ts";
import { DAY_MS } from "../../core/time-units.ts";
import { type ArrivalFacts, arrivalFacts } from "../../store/arrivals.ts";
import type { Db } from "../../store/engine/client.ts";
import type { InboxRef } from "../../store/sending.ts";
import type { ReadMail } from "./inspect.ts";

/**
 * Time within which the same bytes are the same mail: a sender that did not see our 250 brings it again (RFC 1047), the
 * first times within minutes, after an outage of its own hours later.
 */
export const DUPLICATE_WINDOW_MS = DAY_MS;
/** Mails of one Message-ID that a mail is compared with, newest first. */
export const MAX_COMPARED = 5;

/** Asks all there is to know of a mail for an inbox; null where that is gone. */
export function factsOf(
  { db, clock }: { db: Db; clock: Clock },
  inbox: InboxRef,
  mail: ReadMail,
): Promise<ArrivalFacts | null> {
  return arrivalFacts(db, inbox, {
    rfcMessageId: mail.messageId,
    related: relatedOf(mail),
    since: clock.now() - DUPLICATE_WINDOW_MS,
    limit: MAX_COMPARED,
  });
}

/**
 * The mails by which a mail's thread is found, the nearest parent last. Its own id comes last in rank: it may be a copy of a mail
 * that is here, or one that an answer has overtaken.
 */
export function relatedOf(mail: ReadMail): string[] {
  const references = referencesOf(mail);
  return mail.messageId === null ? references : [mail.messageId, ...references];
}

/** The mails that a mail names, the one that it answers last. */
export function referencesOf({ references, inReplyTo }: ReadMail): string[] {
  return inReplyTo === null ? references : [...references, inReplyTo];
}
