import { type Static, Type } from "@sinclair/typebox";
import {
  MAX_PROPERTIES,
  MAX_PROPERTIES_BYTES,
  MAX_STRING_CHARS,
  PROPERTY_TYPES,
} from "../../../core/audience/properties.ts";
import { existing, notFound } from "../../../core/errors.ts";
import { changeFallback, createProperty } from "../../../flows/audience/properties.ts";
import {
  type ContactProperty,
  getProperty,
  listProperties,
  markProperty,
} from "../../../store/audience/properties.ts";
import type { Store } from "../../../store/engine/client.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../../routing/schemas.ts";
import { PropertyValueSchema } from "../../views/contact.ts";

const Fallback = Nullable(PropertyValueSchema);
const TypeSchema = OneOf(
  PROPERTY_TYPES,
  "`date`: an ISO 8601 day or date-time with a zone, shown as a date-time in UTC. It never changes.",
);
const FIELDS = {
  name: Type.String({
    pattern: "^[A-Za-z][A-Za-z0-9_]{0,49}$",
    expected: "a letter, followed by at most 49 letters, digits or _",
    description: "It never changes.",
    examples: ["plan"],
  }),
  type: TypeSchema,
  fallback: Type.Optional(Fallback),
};
const CreateProperty = Type.Object(FIELDS, { title: "NewContactProperty" });
const PropertyView = Type.Object(
  {
    id: Type.String(),
    name: Type.String({ examples: ["plan"] }),
    type: TypeSchema,
    fallback: Fallback,
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "ContactProperty" },
);

function showProperty({
  senderId: _,
  createdAt,
  updatedAt,
  ...property
}: ContactProperty): Static<typeof PropertyView> {
  return { ...property, createdAt: showTime(createdAt), updatedAt: showTime(updatedAt) };
}

/** Returns the routes of `/v1/contact-properties`. */
export function contactPropertyRoutes({ db }: Pick<Store, "db">): Route[] {
  return [
    projectRoute({
      method: "POST",
      path: "/v1/contact-properties",
      operationId: "createContactProperty",
      stores: {},
      summary: "Define a property that contacts may have",
      description: `Contacts then take values of its type. A project has at most ${MAX_PROPERTIES}. A string has at most ${MAX_STRING_CHARS} characters, and the values of a contact together at most ${MAX_PROPERTIES_BYTES / 1024} KiB.`,
      scope: "audience:write",
      examples: { body: { name: "plan", type: "string", fallback: "free" } },
      body: CreateProperty,
      answers: { 201: PropertyView },
      async handle({ senderId, body, now, record }) {
        const answer = (property: ContactProperty) => created(showProperty(property));
        return answer(await createProperty(db, senderId, body, now, (property) => record(answer(property))));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/contact-properties",
      operationId: "listContactProperties",
      summary: "List the properties of contacts, newest first",
      description: "Those that were deleted are left out at once.",
      scope: "audience:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(PropertyView) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        return ok(answer(await listProperties(db, senderId, after, take), showProperty, ({ id }) => id));
      },
    }),
    ...itemRoutes({ db }),
  ];
}

function itemRoutes({ db }: Pick<Store, "db">): Route[] {
  const path = "/v1/contact-properties/:id";
  return [
    projectRoute({
      method: "GET",
      path,
      operationId: "getContactProperty",
      summary: "Get a property of contacts",
      description: "With what a template gets for a contact without a value.",
      scope: "audience:read",
      answers: { 200: PropertyView },
      async handle({ senderId, params }) {
        return ok(showProperty(existing("property", await getProperty(db, senderId, params.id))));
      },
    }),
    projectRoute({
      method: "PATCH",
      path,
      operationId: "updateContactProperty",
      stores: {},
      summary: "Change the fallback of a property",
      description: "Null removes it. Name and type never change, because contacts already have values.",
      scope: "audience:write",
      // The value must have the type of the property.
      examples: { body: { fallback: null } },
      body: Type.Object(
        { fallback: Fallback },
        { title: "ContactPropertyChanges", examples: [{ fallback: null }] },
      ),
      answers: { 200: PropertyView },
      async handle({ senderId, params, body, now }) {
        return ok(showProperty(await changeFallback(db, { senderId, id: params.id }, body.fallback, now)));
      },
    }),
    projectRoute({
      method: "DELETE",
      path,
      operationId: "deleteContactProperty",
      summary: "Delete a property and its values",
      description:
        "The values are removed from the contacts within some minutes, and then the name is free for another property.",
      scope: "audience:write",
      answers: { 204: null },
      async handle({ senderId, params, now }) {
        if (!(await markProperty(db, senderId, params.id, now))) throw notFound("property");
        return noContent();
      },
    }),
  ];
}
