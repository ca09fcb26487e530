import { log } from "../../log.ts";
import { refusalOf as senderRefusal } from "../../core/messages/listed-sender.ts";
import type { SenderFacts } from "../../core/messages/sender.ts";
import { NO_RULING, type Ruling } from "../../core/rules/ruling.ts";
import { type Reply, reply } from "../../smtp/session/reply.ts";
import { isBroken } from "../../store/engine/guards.ts";
import type { ArrivalFacts } from "../../store/messages/arrivals.ts";
import { rulingFor } from "./rules-of-arrival.ts";
import { factsFor, findDuplicate } from "./arrival-facts.ts";
import type { InboundMail, InboundTargetInbox } from "./inbound-message.ts";
import { senderOf } from "./sender-of.ts";
import { recordRefusal, type RefusalReason } from "./record-refusal.ts";
import { DMARC_REFUSED, NO_MAILBOX, RECIPIENT_GONE } from "./replies.ts";
import { isUnknown, type RouteDeps, routeAfterSync } from "./route.ts";
import type { Receiving } from "./storage-limits.ts";
import { type ArrivalTarget, storeInbound } from "./store-inbound.ts";

/** Stores an inspected message, or refuses it by its author's policy. If an inbox is gone, does neither. */
export async function checkAndStore(
  deps: Receiving & RouteDeps,
  targets: readonly InboundTargetInbox[],
  mail: InboundMail,
  { answer, asNew }: { answer: "take" | "refuse"; asNew: boolean },
): Promise<Reply> {
  const asked = targets.map(async (target) => ({
    ...target,
    facts: await factsFor(deps, target.inbox, mail.inspection.mail, asNew),
  }));
  const places = (await Promise.all(asked)).filter(isReceiving);
  if (places.length === 0) return (await areAllUnknown(deps, targets)) ? NO_MAILBOX : RECIPIENT_GONE;
  if (places.length < targets.length) return RECIPIENT_GONE;
  const { verdict } = mail.inspection.authentication;
  const { ip } = mail.envelope;
  // One reply answers for all recipients.
  if (answer === "refuse") {
    const messages = await recordRefusal(deps, places, mail, { reason: "dmarc" });
    log("smtp").info("a message was refused by DMARC", { messages, ip, domain: verdict.dmarc.domain });
    return DMARC_REFUSED;
  }
  const known = await Promise.all(
    places.map(async (place) => ({
      ...place,
      sender: await senderOf(deps.db, place, mail),
    })),
  );
  const ruled = known.map(withRuling(mail));
  const ids = await storeUnlessDuplicate(
    deps,
    ruled.filter(({ refused }) => refused === null),
    mail,
  ).catch((error: unknown) => {
    if (isBroken(error, "inbox_deleted")) return null;
    throw error;
  });
  if (ids === null) return RECIPIENT_GONE;
  const refusal = await recordRefused(deps, ruled, mail);
  if (ids.length === 0 && refusal !== null) return refusal;
  const { unread } = mail.inspection.mail;
  log("smtp").info("a message was received", { messages: ids, bytes: mail.raw.length, unread });
  return reply(250, "2.0.0", `OK ${ids[0] ?? "received"}`);
}

/** Returns true if no address has an inbox now. An inbox may have been deleted and created again since RCPT. */
async function areAllUnknown(
  deps: Receiving & RouteDeps,
  targets: readonly InboundTargetInbox[],
): Promise<boolean> {
  const addresses = targets.flatMap((target) => target.addresses);
  const found = await Promise.all(addresses.map((address) => routeAfterSync(deps, address)));
  return found.every(isUnknown);
}

function isReceiving(place: InboundTargetInbox & { facts: ArrivalFacts | null }): place is ArrivalTarget {
  return place.facts?.receiving === true;
}

/** Stores the message in the inboxes that do not have it yet. Returns its ids, also those of duplicates. */
async function storeUnlessDuplicate(
  deps: Receiving & RouteDeps,
  places: readonly ArrivalTarget[],
  mail: InboundMail,
): Promise<string[]> {
  const earlier: string[] = [];
  const missing: ArrivalTarget[] = [];
  const { raw } = mail.inspection.contents;
  for (const place of places) {
    const found = await findDuplicate(deps.db, place.inbox, place.facts, raw.key);
    if (found === null) missing.push(place);
    else earlier.push(found.messageId);
  }
  const arrivals = missing.length === 0 ? [] : await storeInbound(deps, missing, mail);
  return [...earlier, ...arrivals.map(({ messageId }) => messageId)];
}

/** A place of a message, what its rules say, and why it is not stored there; null if it is. */
type RuledTarget = ArrivalTarget & { ruling: Ruling; refused: Refused | null };

interface Refused {
  why: RefusalReason;
  /** Null: the message is accepted, and only its header is kept. */
  text: string | null;
}

/** Asks an inbox whose mail it takes, then its rules. */
function withRuling(mail: InboundMail) {
  return (place: ArrivalTarget & { sender: SenderFacts }): RuledTarget => {
    const reason = place.inbox.id === null ? null : senderRefusal(place.inbox.accept, place.sender);
    if (reason !== null)
      return { ...place, ruling: NO_RULING, refused: { why: { reason }, text: SENDER_REFUSED } };
    const ruling = rulingFor(mail, place);
    const { refusal, applied } = ruling;
    const rule = applied.at(-1);
    if (refusal === null || rule === undefined) return { ...place, ruling, refused: null };
    const isDropped = refusal.how === "drop";
    const why = { reason: isDropped ? "dropped" : "rule", rule } as const;
    return { ...place, ruling, refused: { why, text: isDropped ? null : refusal.text } };
  };
}

/** Answer to a sender whose mail an inbox does not take. */
const SENDER_REFUSED = "This mailbox does not take mail from this sender";

/**
 * Records the message for the inboxes that refuse it. Runs after it is stored elsewhere, so that a retry doubles no more than a record.
 * @returns the reply if no other inbox takes the message; null if none refuses it
 */
async function recordRefused(
  deps: Receiving,
  places: readonly RuledTarget[],
  mail: InboundMail,
): Promise<Reply | null> {
  let answer: Reply | null = null;
  for (const place of places) {
    if (place.refused === null) continue;
    const { why, text } = place.refused;
    const messages = await recordRefusal(deps, [place], mail, why);
    log("smtp").info("an inbox refused a message", { messages, ...why });
    if (text !== null) answer = reply(550, "5.7.1", text);
    else answer ??= reply(250, "2.0.0", `OK ${messages[0] ?? "received"}`);
  }
  return answer;
}
