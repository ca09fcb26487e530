import { log } from "../../log.ts";
import type { Ruling } from "../../core/rules/ruling.ts";
import { type Reply, reply } from "../../smtp/session/reply.ts";
import { isBroken } from "../../store/engine/guards.ts";
import type { ArrivalFacts } from "../../store/messages/arrivals.ts";
import { rulingFor } from "./rules-of-arrival.ts";
import { factsFor, findDuplicate } from "./arrival-facts.ts";
import type { InboundMail, InboundTargetInbox } from "./inbound-message.ts";
import { senderOf } from "./sender-of.ts";
import { recordRefusal } from "./record-refusal.ts";
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
  const { inspection } = mail;
  const known = await Promise.all(
    places.map(async (place) => ({
      ...place,
      sender: await senderOf(deps.db, place.inbox.senderId, inspection, place.facts),
    })),
  );
  const ruled = known.map((place) => ({ ...place, ruling: rulingFor(mail, place) }));
  const ids = await storeUnlessDuplicate(
    deps,
    ruled.filter(({ ruling }) => ruling.refusal === null),
    mail,
  ).catch((error: unknown) => {
    if (isBroken(error, "inbox_deleted")) return null;
    throw error;
  });
  if (ids === null) return RECIPIENT_GONE;
  const refusal = await recordRuled(deps, ruled, mail);
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

/**
 * Records the message for the inboxes whose rules refuse it. Runs after it is stored elsewhere, so that a retry doubles no more than a record.
 * @returns the reply if no other inbox takes the message; null if no rule refuses it
 */
async function recordRuled(
  deps: Receiving,
  places: readonly (ArrivalTarget & { ruling: Ruling })[],
  mail: InboundMail,
): Promise<Reply | null> {
  let answer: Reply | null = null;
  for (const place of places) {
    const { refusal, applied } = place.ruling;
    const rule = applied.at(-1);
    if (refusal === null || rule === undefined) continue;
    const why = { reason: refusal.how === "drop" ? "dropped" : "rule", rule } as const;
    const messages = await recordRefusal(deps, [place], mail, why);
    log("smtp").info("a rule refused a message", { messages, rule: rule.id, how: refusal.how });
    if (refusal.how === "reject") answer = reply(550, "5.7.1", refusal.text);
    else answer ??= reply(250, "2.0.0", `OK ${messages[0] ?? "received"}`);
  }
  return answer;
}
