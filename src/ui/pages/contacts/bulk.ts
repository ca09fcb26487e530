import { post, remove } from "../../api/client.ts";
import type { Contact } from "../../api/types.ts";
import type { Bulk } from "../../components/picks.tsx";
import { can } from "../../state/session.ts";

/** The actions on selected contacts. */
export function contactBulk(): Bulk<Contact> {
  const path = ({ id }: Contact) => `/v1/contacts/${encodeURIComponent(id)}`;
  return {
    nameOf: ({ email }) => email,
    actions: can("contacts:write")
      ? [
          {
            verb: "Unsubscribe",
            done: "unsubscribed",
            run: async (contact) => void (await post(`${path(contact)}/unsubscribe`)),
          },
          {
            verb: "Resubscribe",
            done: "resubscribed",
            warning:
              "They get messages with an unsubscribe link again. Do this only if they have asked for it.",
            keep: "Leave them",
            run: async (contact) => void (await post(`${path(contact)}/resubscribe`)),
          },
          {
            verb: "Delete",
            done: "deleted",
            warning:
              "Names, properties and choices are deleted, also the choice to unsubscribe. Messages to the addresses stay, and more can be sent.",
            leaves: true,
            run: (contact) => remove(path(contact)),
          },
        ]
      : [],
    file: "contacts",
    columns: {
      email: ({ email }) => email,
      firstName: ({ firstName }) => firstName ?? "",
      lastName: ({ lastName }) => lastName ?? "",
      subscribed: ({ subscribed }) => String(subscribed),
      properties: ({ properties }) => JSON.stringify(properties),
      topics: ({ topics }) => JSON.stringify(topics),
      metadata: ({ metadata }) => JSON.stringify(metadata),
      createdAt: ({ createdAt }) => createdAt,
    },
  };
}
