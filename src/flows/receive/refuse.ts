import { standingInboxGuard } from "../../store/inboxes.ts";
import { insertMessage } from "../../store/messages.ts";
import { hint } from "../hint.ts";
import { announceEvents, eventsOf, type Happening } from "../notify/announce.ts";
import { type InboundMail, inboundContent, inboundMessage } from "./inbound-message.ts";
import { type ArrivalPlace, keepWritten, type TakeDeps, webhooksOf } from "./take.ts";

/**
 * Records a refused mail with its header, without its bodies and bytes: once in each project that it was for. Gives the
 * ids of its records. Where an inbox has been deleted meanwhile nothing is written, and `isMessageBarred` knows the error.
 */
export async function recordRefusal(
  deps: TakeDeps,
  places: readonly ArrivalPlace[],
  mail: InboundMail,
): Promise<string[]> {
  const projects = Map.groupBy(places, ({ inbox }) => inbox.senderId);
  const recorded = await Promise.all([...projects.values()].map((own) => refusalOf(deps, own, mail)));
  const events = recorded.flatMap((record) => record.events);
  const announced = announceEvents(deps.clock, events, webhooksOf(places));
  await deps.db.write([...recorded.flatMap(({ statements }) => statements), ...announced.statements]);
  hint(deps.queue, "push", announced.pushes);
  return recorded.map(({ messageId }) => messageId);
}

async function refusalOf(deps: TakeDeps, own: readonly ArrivalPlace[], mail: InboundMail) {
  const [first] = own;
  if (first === undefined) throw new Error("a project without an inbox");
  const { inbox } = first;
  const at = deps.clock.now();
  const addresses = own.flatMap((place) => place.addresses);
  const message = inboundMessage(mail, { inbox, addresses, status: "inbound_rejected", threadId: null, at });
  const { verdict: auth } = mail.inspection.authentication;
  const { header } = mail.inspection.contents;
  if (header === null) throw new Error("a mail that is refused has its header written");
  const body = await keepWritten(deps, inbox.senderId, header);
  const content = inboundContent(mail, { body, raw: null }, addresses);
  const { from, to, subject } = message;
  const happening: Happening = {
    messageId: message.id,
    type: "inbound_rejected",
    email: null,
    data: { inbound_rejected: { reason: "dmarc", inboxId: inbox.id, from, to, subject, auth } },
  };
  return {
    messageId: message.id,
    statements: insertMessage(message, content, [], inbox.id === null ? null : standingInboxGuard(inbox.id)),
    events: eventsOf(deps.clock, inbox.senderId, [happening]),
  };
}
