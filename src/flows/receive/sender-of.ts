import { addressKey } from "../../core/addresses.ts";
import { judged, patternsOf } from "../../core/messages/listed-sender.ts";
import { authenticatedSender, type SenderFacts, UNAUTHENTICATED } from "../../core/messages/sender.ts";
import type { ArrivalFacts } from "../../store/messages/arrivals.ts";
import type { Db } from "../../store/engine/client.ts";
import { isKnownAddress } from "../../store/threads/known-senders.ts";
import { listedAmong } from "../../store/threads/listed-senders.ts";
import type { InboundMail, InboundTargetInbox } from "./inbound-message.ts";

/**
 * Returns what a project knows about the sender of a message that arrives. Only the author that DMARC has proven counts, and only if
 * it is the one that the record shows: envelope, display name and Reply-To are the sender's words. Lists may block whom it names.
 */
export async function senderOf(
  db: Db,
  { inbox, facts: { threadId } }: InboundTargetInbox & { facts: Pick<ArrivalFacts, "threadId"> },
  { inspection, envelope: { mailFrom } }: Pick<InboundMail, "inspection" | "envelope">,
): Promise<SenderFacts> {
  const {
    mail,
    authentication: { author },
  } = inspection;
  const from = mail.from === null ? "" : addressKey(mail.from.email);
  const isProven = author !== null && addressKey(author) === from;
  const { senderId, id } = inbox;
  const facts = isProven
    ? authenticatedSender(await isKnownAddress(db, senderId, from, threadId))
    : UNAUTHENTICATED;
  if (id === null) return facts;
  const envelope = mailFrom === "" ? "" : addressKey(mailFrom);
  const named = [...new Set([...patternsOf(from), ...patternsOf(envelope)])];
  return judged({ facts, from, envelope }, await listedAmong(db, { id, senderId }, named));
}
