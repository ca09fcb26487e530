import { type Static, Type } from "@sinclair/typebox";
import type { Consent } from "../../core/audience/consent.ts";
import { MAX_PROPERTIES } from "../../core/audience/properties.ts";
import { GIVEN_CHOICES, MAX_TOPICS } from "../../core/audience/topics.ts";
import { addressKey } from "../../core/addresses.ts";
import { invalid, notFound } from "../../core/errors.ts";
import { unsubscribeRecipient } from "../../flows/deliver/unsubscribe-recipient.ts";
import {
  type AskToJoin,
  changeContact,
  checkedAddress,
  checkMetadata,
  createContact,
  MAX_METADATA_BYTES,
  MAX_METADATA_DEPTH,
  MAX_METADATA_KEYS,
} from "../../flows/projects/contacts.ts";
import type { Outbox } from "../../flows/outbox.ts";
import type { Db } from "../../store/engine/client.ts";
import { listRecipients } from "../../store/messages/recipients.ts";
import { type Contact, deleteContact, getContact, setSubscribed } from "../../store/projects/contacts.ts";
import type { Project } from "../../store/projects/projects.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import type { Parts } from "../routing/parts.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { EMAIL, MAX_NAME_CHARS, Nullable, ONE_LINE, OneOf } from "../routing/schemas.ts";
import { ContactSchema, GivenConsent, GivenValue, showContact } from "../views/contact.ts";
import { contactListRoutes } from "./audience/contact-list.ts";

const Properties = Type.Optional(
  Type.Record(Type.String(), GivenValue, {
    maxProperties: MAX_PROPERTIES,
    description:
      "Values of properties that /v1/contact-properties defines. Properties that are absent stay as they are. Null removes a value.",
    // The property must exist.
    examples: [{}],
  }),
);
const Topics = Type.Optional(
  Type.Record(Type.String(), OneOf(GIVEN_CHOICES), {
    maxProperties: MAX_TOPICS,
    description:
      "Choices by the id of their topic. Topics that are absent stay as they are. A topic with `doubleOptIn` is `pending` until the person uses the link that is mailed then.",
    // The topic must exist.
    examples: [{}],
  }),
);
const Name = Type.Optional(
  Nullable(Type.String({ maxLength: MAX_NAME_CHARS, ...ONE_LINE, examples: ["Ana"] })),
);
const Metadata = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), {
    maxProperties: MAX_METADATA_KEYS,
    description: `Your own fields: at most ${MAX_METADATA_KEYS} keys and ${MAX_METADATA_BYTES} bytes of JSON, nested ${MAX_METADATA_DEPTH} deep. Whole numbers beyond 2^53 are refused. Send them as strings.`,
    examples: [{ customerId: "42" }],
  }),
);
/** A contact as a client names it. */
export const CreateContact = Type.Object(
  {
    email: Type.String(EMAIL),
    firstName: Name,
    lastName: Name,
    metadata: Metadata,
    properties: Properties,
    topics: Topics,
    subscribed: Type.Optional(Type.Boolean({ default: true })),
    consent: GivenConsent,
  },
  { title: "NewContact" },
);
const UpdateContact = Type.Object(
  {
    firstName: Name,
    lastName: Name,
    metadata: Metadata,
    properties: Properties,
    topics: Topics,
    subscribed: Type.Optional(Type.Boolean()),
    consent: GivenConsent,
  },
  {
    title: "ContactChanges",
    description:
      "Null clears a name. `metadata` replaces all keys, `properties` and `topics` only those that they have.",
  },
);

const Unsubscribe = Type.Object(
  {
    messageId: Type.Optional(
      Type.String({
        description: "The message to the contact whose reader asked to be unsubscribed.",
        examples: ["msg_01hzy8"],
      }),
    ),
  },
  // Its message must exist.
  { examples: [{}] },
);

interface Asking {
  /** Returns what mails a link to people who join a topic of the project. */
  asksToJoin: (project: Project) => AskToJoin;
}

/** Returns the routes of `/v1/contacts`. */
export function contactRoutes(deps: Outbox & Pick<Parts, "handOut"> & Asking): Route[] {
  const { db } = deps;
  return [
    createRoute(deps),
    ...contactListRoutes(deps),
    ...itemRoutes(deps),
    unsubscribeRoute(deps),
    resubscribeRoute(db),
  ];
}

function createRoute({ db, asksToJoin }: { db: Db } & Asking): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/contacts",
    operationId: "createContact",
    stores: { adds: ["contacts"] },
    summary: "Create a contact",
    description:
      "An address can be in the list once. Case does not matter. An address that had unsubscribed when it was erased stays unsubscribed, unless `subscribed` is true.",
    scope: "contacts:write",
    examples: { body: { email: "ben@example.com", firstName: "Ben", metadata: { customerId: "42" } } },
    body: CreateContact,
    rules: checkedAddress,
    answers: { 201: ContactSchema },
    errors: ["rate_limited"],
    async handle({ senderId, project, body, now, record }) {
      const answer = (contact: Contact) => created(showContact(contact));
      const stored = (contact: Contact) => record(answer(contact));
      return answer(
        await createContact(db, senderId, body, now, { record: stored, ask: asksToJoin(project) }),
      );
    },
  });
}

function itemRoutes({ db, asksToJoin }: { db: Db } & Asking): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/contacts/:id",
      operationId: "getContact",
      summary: "Get a contact",
      description: "With its subscription, its properties and your own `metadata`.",
      scope: "contacts:read",
      answers: { 200: ContactSchema },
      async handle({ senderId, params }) {
        return ok(showContact(found(await getContact(db, senderId, params.id))));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/contacts/:id",
      operationId: "updateContact",
      shows: "contacts:read",
      stores: { limitedBy: "handler" },
      summary: "Update a contact",
      description:
        "Fields that are absent stay as they are. Null clears a name. `metadata` replaces all keys, `properties` and `topics` only those that they have.",
      scope: "contacts:write",
      examples: { body: { firstName: "Ben", subscribed: false } },
      body: UpdateContact,
      rules: ({ metadata }: Static<typeof UpdateContact>) => checkMetadata(metadata),
      answers: { 200: ContactSchema },
      errors: ["rate_limited"],
      async handle({ senderId, project, params, body, now, growing }) {
        const contact = { senderId, id: params.id };
        const ask = asksToJoin(project);
        return ok(showContact(await changeContact(db, contact, body, now, { growing, ask })));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/contacts/:id",
      operationId: "deleteContact",
      summary: "Delete a contact",
      description: "Messages to the address can still be sent.",
      scope: "contacts:write",
      answers: { 204: null },
      async handle({ senderId, params }) {
        if (!(await deleteContact(db, senderId, params.id))) throw notFound("contact");
        return noContent();
      },
    }),
  ];
}

function byApi(subscribed: boolean, at: number): Consent {
  return { at, subscribed, how: "api" };
}

function found(contact: Contact | null): Contact {
  if (contact === null) throw notFound("contact");
  return contact;
}

// A repeated call of these two has no further effect, so its answer need not be stored in the same write.

function unsubscribeRoute(deps: Outbox): Route {
  const { db } = deps;
  return projectRoute({
    method: "POST",
    path: "/v1/contacts/:id/unsubscribe",
    operationId: "unsubscribeContact",
    shows: "contacts:read",
    evenFull: true,
    summary: "Unsubscribe a contact; it is not suppressed",
    description:
      "Repeating the call changes nothing. Only messages with `unsubscribeLink` respect the subscription. With `messageId` that message gets the event `unsubscribed`; without it there is no event, because every event belongs to a message.",
    scope: "contacts:write",
    body: Unsubscribe,
    bodyOptional: true,
    answers: { 200: ContactSchema },
    async handle({ senderId, params, body: { messageId }, now }) {
      if (messageId !== undefined) {
        const contact = found(await getContact(db, senderId, params.id));
        const recipients = await listRecipients(db, senderId, messageId);
        const reader = recipients.find(({ email }) => addressKey(email) === contact.emailKey);
        if (reader === undefined)
          throw invalid("messageId", "No message of this project to the contact has that id.");
        await unsubscribeRecipient(deps, reader, { how: "api" });
      }
      return ok(showContact(found(await setSubscribed(db, senderId, params.id, byApi(false, now)))));
    },
  });
}

function resubscribeRoute(db: Db): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/contacts/:id/resubscribe",
    operationId: "resubscribeContact",
    shows: "contacts:read",
    evenFull: true,
    summary: "Subscribe a contact again",
    description: "Clears `unsubscribedAt`. Repeating the call changes nothing.",
    scope: "contacts:write",
    answers: { 200: ContactSchema },
    async handle({ senderId, params, now }) {
      return ok(showContact(found(await setSubscribed(db, senderId, params.id, byApi(true, now)))));
    },
  });
}
