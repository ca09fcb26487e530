import { type Static, Type } from "@sinclair/typebox";
import { MAX_SEGMENTS } from "../../core/audience/filter.ts";
import { segmentFilter } from "../../flows/audience/segments.ts";
import { contactPasses } from "../../store/audience/filter-sql.ts";
import { propertyShapes } from "../../store/audience/properties.ts";
import { listContacts } from "../../store/projects/contacts.ts";
import type { Db } from "../../store/engine/client.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { showTime } from "../routing/schemas.ts";
import { ALL, membership } from "./audience/members.ts";
import { choicesOf, TopicChoices } from "./audience/topics.ts";
import { contactId } from "./audience/contact-id.ts";
import { AddressText, Given, Id, ShortText, Values } from "./form/given.ts";
import {
  callOperation,
  listRoute,
  type Operations,
  renamed,
  resendRoute,
  translated,
} from "./form/translate.ts";

interface Contact {
  id: string;
  email: string;
  firstName: string | null;
  lastName: string | null;
  subscribed: boolean;
  metadata: Record<string, unknown>;
  properties: Record<string, unknown>;
  createdAt: string;
}

const NAMES = { first_name: "firstName", last_name: "lastName" } as const;
const CONTACT_FIELDS = {
  first_name: Given(ShortText),
  last_name: Given(ShortText),
  unsubscribed: Given(Type.Boolean()),
  properties: Given(Values),
};
const ContactFields = Type.Object(CONTACT_FIELDS);
/** Segments that a new contact is added to. */
const Segments = Type.Array(Type.Union([Id, Type.Object({ id: Id })]), { maxItems: MAX_SEGMENTS });

/** Returns the routes of contacts: of all, and of a segment, which Resend also calls an audience. */
export function contactRoutes(operations: Operations, db: Db): Route[] {
  return [
    ...["/contacts", "/segments/:segment/contacts", "/audiences/:segment/contacts"].flatMap((base) => [
      ...collectionRoutes(operations, db, base),
      ...itemRoutes(operations, db, base),
    ]),
  ];
}

function collectionRoutes(operations: Operations, db: Db, path: string): Route[] {
  return [
    translated(operations, {
      method: "POST",
      path,
      operation: "createContact",
      summary: "Create a contact",
      body: Type.Object({
        ...CONTACT_FIELDS,
        email: Given(AddressText),
        segments: Given(Segments),
        topics: Given(TopicChoices),
      }),
      async ask({ body, senderId, params }) {
        const { email, segments, topics, ...fields } = body;
        const ids = (segments ?? []).map((segment) => (typeof segment === "string" ? segment : segment.id));
        if (params.segment !== undefined) ids.push(params.segment);
        const { properties, ...rest } = await contactFields(db, senderId ?? "", fields);
        const added = { ...properties, ...(await membership(db, senderId ?? "", ids, true)) };
        return {
          body: {
            ...(email == null ? {} : { email }),
            ...rest,
            ...(Object.keys(added).length === 0 ? {} : { properties: added }),
            ...(topics == null ? {} : { topics: choicesOf(topics) }),
          },
        };
      },
      answer: ({ id }: Contact) => ({ object: "contact", id }),
    }),
    listRoute(operations, {
      path,
      operation: "listContacts",
      summary: "List contacts",
      async read({ senderId, params: { segment = ALL }, now }, place, take) {
        const condition =
          segment === ALL ? null : (await segmentFilter(db, senderId, segment, now)).condition;
        const passes = condition === null ? undefined : contactPasses(condition);
        return listContacts(db, senderId, { passes }, place, take);
      },
      show: (contacts) =>
        contacts.map((contact) => showContact({ ...contact, createdAt: showTime(contact.createdAt) })),
    }),
  ];
}

/**
 * Returns the fields of a contact under the names of `/v1`. Null clears a name, so it is kept. Values whose property is not defined
 * are metadata.
 */
async function contactFields(
  db: Db,
  senderId: string,
  { unsubscribed, properties, ...fields }: Static<typeof ContactFields>,
): Promise<{ properties?: Record<string, unknown> }> {
  const defined = new Set((await propertyShapes(db, senderId)).map(({ name }) => name));
  const values = Object.entries(properties ?? {});
  const [typed, others] = [true, false].map((is) => values.filter(([name]) => defined.has(name) === is));
  return {
    ...renamed(fields, NAMES),
    ...(typeof unsubscribed === "boolean" ? { subscribed: !unsubscribed } : {}),
    ...(typed?.length ? { properties: Object.fromEntries(typed) } : {}),
    ...(others?.length ? { metadata: Object.fromEntries(others) } : {}),
  };
}

function itemRoutes(operations: Operations, db: Db, base: string): Route[] {
  const path = `${base}/:contact`;
  const ask = async (context: CheckedRequest) => ({ params: { id: await contactId(db, context) } });
  const removal = { method: "DELETE", path, operation: "deleteContact" } as const;
  return [
    translated(operations, {
      method: "GET",
      path,
      operation: "getContact",
      summary: "Get a contact",
      ask,
      answer: (contact: Contact) => ({
        object: "contact",
        ...showContact(contact),
        properties: showProperties({ ...contact.metadata, ...contact.properties }),
      }),
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateContact",
      summary: "Update a contact",
      body: ContactFields,
      async ask(context) {
        return {
          ...(await ask(context)),
          body: await contactFields(db, context.senderId ?? "", context.body),
        };
      },
      answer: ({ id }: Contact) => ({ object: "contact", id }),
    }),
    resendRoute(operations, { ...removal, summary: "Delete a contact" }, async (context) => {
      const { params } = await ask(context);
      await callOperation(operations, removal.operation, context, { params });
      return { status: 200, body: { object: "contact", contact: params.id, deleted: true } };
    }),
  ];
}

function showContact({ id, email, firstName, lastName, subscribed, createdAt }: Contact) {
  return {
    id,
    email,
    first_name: firstName,
    last_name: lastName,
    unsubscribed: !subscribed,
    created_at: createdAt,
  };
}

/** Returns the values that Resend's properties can hold: strings and numbers. */
function showProperties(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const type = typeof value;
      return type === "string" || type === "number" ? [[name, { type, value }]] : [];
    }),
  );
}
