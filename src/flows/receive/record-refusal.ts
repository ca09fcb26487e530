import type { SenderRefusal } from "../../core/messages/listed-sender.ts";
import type { AppliedRule } from "../../core/rules/ruling.ts";
import { standingInboxGuard } from "../../store/threads/inboxes.ts";
import { insertMessage } from "../../store/messages/messages.ts";
import { announceEvents, eventsOf, type EventDraft, writeAnnounced } from "../webhooks/announce.ts";
import { type InboundMail, inboundContent, inboundMessage } from "./inbound-message.ts";
import { storedLimit, withinStoredLimits, type Receiving } from "./storage-limits.ts";
import { type ArrivalTarget, storeBody, webhooksOf } from "./store-inbound.ts";

/** Why a message was not stored, as its event says it. */
export type RefusalReason =
  | { reason: "dmarc" | SenderRefusal }
  | { reason: "rule" | "dropped"; rule: AppliedRule };

/**
 * Records a refused message once in each project, with its header and without its body.
 * @returns the ids of the records
 * @throws ConstraintError with the guard `message_conflict`, if an inbox was deleted in the meantime; nothing is written
 */
export async function recordRefusal(
  deps: Receiving,
  places: readonly ArrivalTarget[],
  mail: InboundMail,
  why: RefusalReason,
): Promise<string[]> {
  const projects = Map.groupBy(places, ({ inbox }) => inbox.senderId);
  const recorded = await Promise.all([...projects.values()].map((own) => refusalOf(deps, own, mail, why)));
  const events = recorded.flatMap((record) => record.events);
  const announced = announceEvents(deps.clock, events, webhooksOf(places));
  const within = await withinStoredLimits(deps, projects.keys());
  const before = recorded.flatMap(({ statements }) => statements);
  await writeAnnounced(deps, announced, { before, after: within });
  return recorded.map(({ messageId }) => messageId);
}

async function refusalOf(
  deps: Receiving,
  own: readonly ArrivalTarget[],
  mail: InboundMail,
  why: RefusalReason,
) {
  const [first] = own;
  if (first === undefined) throw new Error("a project without an inbox");
  const { inbox } = first;
  const at = deps.clock.now();
  const addresses = own.flatMap((place) => place.addresses);
  const message = inboundMessage(mail, {
    inbox,
    addresses,
    status: "inbound_rejected",
    threadId: null,
    sender: first.sender,
    at,
  });
  const { verdict: auth } = mail.inspection.authentication;
  const { header } = mail.inspection.contents;
  if (header === null) throw new Error("the header of a refused message is missing");
  const { db, clock } = deps;
  const limit = await storedLimit(deps, inbox.senderId);
  const body = await storeBody({ db, clock, storedLimit: limit }, inbox.senderId, header);
  const content = inboundContent(mail, { body, raw: null }, addresses, {
    rules: "rule" in why ? [why.rule] : [],
    sender: first.sender,
  });
  const { from, to, subject } = message;
  const draft: EventDraft = {
    messageId: message.id,
    type: "inbound_rejected",
    email: null,
    data: { inbound_rejected: { ...why, inboxId: inbox.id, from, to, subject, auth } },
  };
  return {
    messageId: message.id,
    statements: insertMessage(message, content, [], inbox.id === null ? null : standingInboxGuard(inbox.id)),
    events: eventsOf(deps.clock, inbox.senderId, [draft]),
  };
}
