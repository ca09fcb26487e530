import { type Static, Type } from "@sinclair/typebox";
import { type Consent, MAX_CONSENTS, MAX_HOW_CHARS } from "../../core/audience/consent.ts";
import { CHOICE_NAMES, showChoices } from "../../core/audience/topics.ts";
import type { Contact } from "../../store/projects/contacts.ts";
import { Nullable, OneOf, ONE_LINE, showTime, TIME, Timestamp } from "../routing/schemas.ts";

const VALUES = [Type.String({ examples: ["pro"] }), Type.Number(), Type.Boolean()];

/** A value of a contact's property. */
export const PropertyValueSchema = Type.Union([...VALUES], {
  expected: "a string, a number, true or false",
  examples: ["pro"],
});

/** A value that a client sets. */
export const GivenValue = Type.Union([...VALUES, Type.Null()], {
  expected: "a string, a number, true, false or null",
  examples: ["pro"],
});

/** How a person joined or left, as a client tells it. */
export const GivenConsent = Type.Optional(
  Type.Object(
    {
      at: Type.Optional(Type.String({ ...TIME, description: "When. Default: now." })),
      how: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: MAX_HOW_CHARS,
          ...ONE_LINE,
          description: "In your words. Default: `api`.",
          examples: ["sign-up form"],
        }),
      ),
      ip: Type.Optional(
        Type.String({ description: "The address from which the person acted.", examples: ["203.0.113.7"] }),
      ),
    },
    {
      title: "GivenConsent",
      description:
        "The proof of `subscribed`, which an update must have too. It becomes an entry of `consent`.",
      examples: [{ how: "sign-up form" }],
    },
  ),
);

export const ConsentView = Type.Object(
  {
    at: Timestamp,
    subscribed: Type.Boolean({ description: "Whether the person was subscribed afterwards." }),
    how: Type.String({
      description:
        "`api`, `page` and `one_click` of an unsubscribe link, `double_opt_in` of a mailed link, `mail` to the address of List-Unsubscribe, or your words.",
      examples: ["api"],
    }),
    ip: Type.Optional(Type.String({ examples: ["203.0.113.7"] })),
    topicId: Type.Optional(
      Type.String({ description: "The topic, if it is not the subscription as a whole." }),
    ),
  },
  { title: "Consent" },
);

/** Returns an entry of a trail as the API shows it. */
export function showConsent({ at, ...entry }: Consent): Static<typeof ConsentView> {
  return { at: showTime(at), ...entry };
}

/** A contact as the API shows it. */
export const ContactSchema = Type.Object(
  {
    id: Type.String(),
    email: Type.String(),
    firstName: Nullable(Type.String()),
    lastName: Nullable(Type.String()),
    subscribed: Type.Boolean(),
    unsubscribedAt: Nullable(Timestamp),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    properties: Type.Record(Type.String(), PropertyValueSchema, {
      description:
        "Values of the properties that /v1/contact-properties defines. One without a value is absent.",
      examples: [{}],
    }),
    topics: Type.Record(Type.String(), OneOf(CHOICE_NAMES), {
      description:
        "What the contact has chosen, by the id of the topic. `pending`: the person has not used the mailed link, and gets nothing. For other topics, `defaultSubscribed` counts.",
      examples: [{}],
    }),
    consent: Type.Array(ConsentView, {
      description: `How the person joined and left, oldest first: the first entry and the last ${MAX_CONSENTS - 1}.`,
      // An entry of the API has no address.
      examples: [[{ at: "2026-01-31T09:30:00.000Z", subscribed: true, how: "api" }]],
    }),
    lastSentAt: Nullable(Type.String({ ...TIME, description: "When a message last left to the contact." })),
    lastOpenedAt: Nullable(
      Type.String({ ...TIME, description: "When a person last opened one. Known machines do not count." }),
    ),
    lastClickedAt: Nullable(
      Type.String({ ...TIME, description: "When a person last clicked a link in one." }),
    ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Contact" },
);

/** Returns a contact in the form of `ContactSchema`. */
export function showContact(contact: Contact): Static<typeof ContactSchema> {
  return {
    id: contact.id,
    email: contact.email,
    firstName: contact.firstName,
    lastName: contact.lastName,
    subscribed: contact.subscribed,
    unsubscribedAt: showTime(contact.unsubscribedAt),
    metadata: contact.metadata,
    properties: contact.properties,
    topics: showChoices(contact.topics),
    consent: contact.consent.map(showConsent),
    lastSentAt: showTime(contact.lastSentAt),
    lastOpenedAt: showTime(contact.lastOpenedAt),
    lastClickedAt: showTime(contact.lastClickedAt),
    createdAt: showTime(contact.createdAt),
    updatedAt: showTime(contact.updatedAt),
  };
}
