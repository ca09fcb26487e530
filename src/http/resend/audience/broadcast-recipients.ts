import { Type } from "@sinclair/typebox";
import { invalid } from "../../../core/errors.ts";
import { SUPPRESSED_REASONS } from "../../../core/messages/resend-events.ts";
import { existingBroadcast } from "../../../flows/broadcasts/save.ts";
import {
  type BroadcastMessage,
  type BroadcastMessageFilter,
  clickedLinks,
  listBroadcastMessages,
} from "../../../store/audience/broadcast-messages.ts";
import type { Db } from "../../../store/engine/client.ts";
import type { Route } from "../../routing/route.ts";
import { OneOf } from "../../routing/schemas.ts";
import { AddressText } from "../form/given.ts";
import { ID_PAGE, listRoute, type Operations } from "../form/translate.ts";

/** Our filters by Resend's words for what a recipient did or got. */
const TYPES = {
  sent: { outcome: "sent" },
  delivered: { outcome: "delivered" },
  opened: { outcome: "opened" },
  clicked: { outcome: "clicked" },
  bounced: { outcome: "bounced" },
  complained: { outcome: "complained" },
  unsubscribed: { outcome: "unsubscribed" },
  suppressed: { outcome: "failed", reasons: [...SUPPRESSED_REASONS] },
} as const satisfies Record<string, BroadcastMessageFilter>;
type RecipientType = keyof typeof TYPES;

const BOUNCE_TYPES = { permanent: "hard", transient: "soft" } as const;
type BounceType = keyof typeof BOUNCE_TYPES;

interface RecipientsQuery {
  type: RecipientType;
  email?: string;
  bounce_type?: BounceType;
}

/** Returns the route that lists the recipients of a broadcast who did or got something. */
export function broadcastRecipientsRoute(operations: Operations, db: Db): Route {
  return listRoute(operations, {
    path: "/broadcasts/:id/recipients",
    operation: "listBroadcastRecipients",
    summary: "List recipients of a broadcast",
    query: Type.Object({
      ...ID_PAGE,
      type: OneOf(Object.keys(TYPES)),
      email: Type.Optional(AddressText),
      bounce_type: Type.Optional(OneOf(Object.keys(BOUNCE_TYPES))),
    }),
    async read({ senderId, params: { id = "" }, query }, place, take) {
      const { type, email, bounce_type: bounce } = query as unknown as RecipientsQuery;
      if (bounce !== undefined && type !== "bounced")
        throw invalid("bounce_type", "can only be given with type=bounced.");
      await existingBroadcast(db, senderId, id);
      const bounceType = bounce === undefined ? undefined : BOUNCE_TYPES[bounce];
      const filter = { ...TYPES[type], email, bounceType };
      return listBroadcastMessages(db, { senderId, broadcastId: id }, filter, place, take);
    },
    async show(messages, { senderId, query }) {
      const { type } = query as unknown as RecipientsQuery;
      const ids = messages.map(({ id }) => id);
      const links = type === "clicked" ? await clickedLinks(db, senderId ?? "", ids) : [];
      const linksOf = Map.groupBy(links, ({ id }) => id);
      return messages.map((message) => ({
        id: message.id,
        contact_id: message.contactId,
        email: message.email,
        ...DETAILS[type]?.(message),
        ...(type === "clicked"
          ? { clicked_links: (linksOf.get(message.id) ?? []).map(({ url, clicks }) => ({ url, clicks })) }
          : {}),
      }));
    },
  });
}

/** The fields that recipients of some types have besides. */
const DETAILS: Partial<Readonly<Record<RecipientType, (message: BroadcastMessage) => object>>> = {
  opened: ({ opens }) => ({ count: opens }),
  clicked: ({ clicks }) => ({ count: clicks }),
  bounced: ({ bounceType }) => ({ bounce_type: bounceType === "soft" ? "transient" : "permanent" }),
};
