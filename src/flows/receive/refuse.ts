import type { AuthVerdict } from "../../mail/authenticate.ts";
import { headerOnly } from "../../mail/reading/parse.ts";
import { insertMessage } from "../../store/messages.ts";
import { keepBody } from "../contents/keep.ts";
import { hint } from "../hint.ts";
import { announceEvents, eventsOf, type Happening } from "../notify/announce.ts";
import { type InboundMail, inboundContent, inboundMessage } from "./inbound-message.ts";
import { fieldsByName } from "./shown-headers.ts";
import { type ArrivalPlace, type TakeDeps, webhooksOf } from "./take.ts";

/**
 * Whether the author's domain wants this mail refused (RFC 9989 §5.4). An ARC chain overrides nothing: that takes trust
 * in a sealer (RFC 8617 §7.2.1), and nobody is trusted here. What could not be found out is no failure.
 */
export function refusedByPolicy({ dmarc }: AuthVerdict): boolean {
  return dmarc.result === "fail" && dmarc.policy === "reject";
}

/**
 * Records a refused mail with its header, without its bodies and bytes: once in each project that it was for. Gives the
 * ids of its records.
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
  const { fields } = headerOnly(mail.raw);
  const body = await keepBody(deps, inbox.senderId, {
    html: null,
    text: null,
    headers: fieldsByName(fields),
  });
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
    statements: insertMessage(message, content, []),
    events: eventsOf(deps.clock, inbox.senderId, [happening]),
  };
}
