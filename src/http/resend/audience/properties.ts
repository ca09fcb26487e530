import { Type } from "@sinclair/typebox";
import { type ContactProperty, listProperties } from "../../../store/audience/properties.ts";
import type { Db } from "../../../store/engine/client.ts";
import type { Route } from "../../routing/route.ts";
import { OneOf, showTime } from "../../routing/schemas.ts";
import { Given, Part, ShortText } from "../form/given.ts";
import { listRoute, type Operations, renamed, translated } from "../form/translate.ts";

const Fallback = {
  fallback_value: Given(Type.Union([Part, Type.Number()], { expected: "a string or a number" })),
};
const NAMES = { key: "name", type: "type", fallback_value: "fallback" } as const;

type Property = Pick<ContactProperty, "id" | "name" | "type" | "fallback"> & { createdAt: string };

function showProperty({ id, name, type, fallback, createdAt }: Property) {
  return { id, key: name, type, fallback_value: fallback, created_at: createdAt };
}

/** Returns the routes of the properties of contacts. */
export function propertyRoutes(operations: Operations, db: Db): Route[] {
  const path = "/contact-properties/:id";
  const named = ({ id }: Property) => ({ object: "contact_property", id });
  return [
    translated(operations, {
      method: "POST",
      path: "/contact-properties",
      operation: "createContactProperty",
      summary: "Create a property of contacts",
      body: Type.Object({ key: Given(ShortText), type: Given(OneOf(["string", "number"])), ...Fallback }),
      ask: ({ body }) => ({ body: renamed(body, NAMES) }),
      answer: named,
    }),
    listRoute(operations, {
      path: "/contact-properties",
      operation: "listContactProperties",
      summary: "List the properties of contacts",
      read: ({ senderId }, place, take) => listProperties(db, senderId, place, take),
      show: (rows) => rows.map((row) => showProperty({ ...row, createdAt: showTime(row.createdAt) })),
    }),
    translated(operations, {
      method: "GET",
      path,
      operation: "getContactProperty",
      summary: "Get a property of contacts",
      answer: (property: Property) => ({ object: "contact_property", ...showProperty(property) }),
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateContactProperty",
      summary: "Change the fallback of a property",
      body: Type.Object(Fallback),
      ask: ({ params, body }) => ({ params, body: renamed(body, NAMES) }),
      answer: named,
    }),
    translated(operations, {
      method: "DELETE",
      path,
      operation: "deleteContactProperty",
      summary: "Delete a property and its values",
      answer: (_: unknown, { params }) => ({ object: "contact_property", id: params.id, deleted: true }),
    }),
  ];
}
