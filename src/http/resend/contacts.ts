import { type Static, Type } from "@sinclair/typebox";
import { addressKey } from "../../core/addresses.ts";
import { AppError, existing } from "../../core/errors.ts";
import { findContact, listContacts } from "../../store/projects/contacts.ts";
import type { Db } from "../../store/engine/client.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { showTime } from "../routing/schemas.ts";
import { AddressText, Given, Id, ShortText, Values } from "./given.ts";
import {
  callOperation,
  ID_PAGE,
  listBody,
  listRoute,
  type Operations,
  refuseFields,
  renamed,
  resendRoute,
  translated,
} from "./translate.ts";

interface Contact {
  id: string;
  email: string;
  firstName: string | null;
  lastName: string | null;
  subscribed: boolean;
  metadata: Record<string, unknown>;
  createdAt: string;
}

const NAMES = { first_name: "firstName", last_name: "lastName", properties: "metadata" } as const;
const CONTACT_FIELDS = {
  first_name: Given(ShortText),
  last_name: Given(ShortText),
  unsubscribed: Given(Type.Boolean()),
  properties: Given(Values),
};
const ContactFields = Type.Object(CONTACT_FIELDS);
/** Segments of a contact. There is only one, so a list of more is a mistake. */
const Segments = Type.Array(Type.Union([Id, Type.Object({ id: Id })]), { maxItems: 100 });
const TOPICS = { topics: "Use topics of PATCH /v1/contacts/{id}." };

/** The id of the one segment, which has all contacts. */
const ALL = "all";
/** Every contact is in the one segment. When it was made is not known, so its time is the beginning. */
const SEGMENT = { id: ALL, name: "All contacts", created_at: "1970-01-01T00:00:00.000Z" };

/** Returns the routes of contacts and of the one segment `all`, which Resend also calls an audience. */
export function contactRoutes(operations: Operations, db: Db): Route[] {
  return [
    ...["/contacts", "/segments/:segment/contacts", "/audiences/:segment/contacts"].flatMap((base) => [
      ...collectionRoutes(operations, db, base),
      ...itemRoutes(operations, db, base),
    ]),
    ...segmentRoutes(operations, db),
    ...refusedRoutes(operations),
  ];
}

/** Throws 404 if the path names another segment than `all`. */
function requireSegment({ params }: CheckedRequest): void {
  if (params.segment !== undefined && params.segment !== ALL) throw noSegment();
}

function noSegment(): AppError {
  return new AppError("not_found", `No such segment. Postrider has one, "${ALL}", with all contacts.`);
}

function collectionRoutes(operations: Operations, db: Db, path: string): Route[] {
  return [
    translated(operations, {
      method: "POST",
      path,
      operation: "createContact",
      summary: "Create a contact",
      body: Type.Object({ ...CONTACT_FIELDS, email: Given(AddressText), segments: Given(Segments) }),
      ask(context) {
        requireSegment(context);
        const { email, segments, ...fields } = context.body;
        refuseFields(fields, TOPICS);
        for (const segment of segments ?? [])
          if ((typeof segment === "string" ? segment : segment.id) !== ALL) throw noSegment();
        return { body: { ...(email == null ? {} : { email }), ...contactFields(fields) } };
      },
      answer: ({ id }: Contact) => ({ object: "contact", id }),
    }),
    listRoute(operations, {
      path,
      operation: "listContacts",
      summary: "List contacts",
      read(context, place, take) {
        requireSegment(context);
        return listContacts(db, context.senderId, {}, place, take);
      },
      show: (contacts) =>
        contacts.map((contact) => showContact({ ...contact, createdAt: showTime(contact.createdAt) })),
    }),
  ];
}

/** Returns the fields of a contact under the names of `/v1`. Null clears a name, so it is kept. */
function contactFields(fields: Static<typeof ContactFields>): Record<string, unknown> {
  const { unsubscribed } = fields;
  return {
    ...renamed(fields, NAMES),
    ...(typeof unsubscribed === "boolean" ? { subscribed: !unsubscribed } : {}),
  };
}

/** Returns a contact's id. The path has its id or its address. */
async function contactId(db: Db, context: CheckedRequest): Promise<string> {
  requireSegment(context);
  const { contact = "" } = context.params;
  if (!contact.includes("@")) return contact;
  const found = existing("contact", await findContact(db, context.senderId ?? "", addressKey(contact)));
  return found.id;
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
        properties: showProperties(contact.metadata),
      }),
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateContact",
      summary: "Update a contact",
      body: ContactFields,
      async ask(context) {
        refuseFields(context.body, TOPICS);
        return { ...(await ask(context)), body: contactFields(context.body) };
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

function segmentRoutes(operations: Operations, db: Db): Route[] {
  const reading = { method: "GET", operation: "listContacts" } as const;
  const segment = { object: "segment", ...SEGMENT };
  const ofContact = "/contacts/:contact/segments";
  const list = { ...reading, query: Type.Object(ID_PAGE) };
  const all = { status: 200, body: listBody([SEGMENT], false) };
  return [
    ...["/segments", "/audiences"].flatMap((path) => [
      resendRoute(operations, { ...list, path, summary: "List segments" }, () => all),
      resendRoute(
        operations,
        { ...reading, path: `${path}/:segment`, summary: "Get a segment" },
        (context) => {
          requireSegment(context);
          return { status: 200, body: segment };
        },
      ),
    ]),
    resendRoute(
      operations,
      { ...list, path: ofContact, summary: "List a contact's segments" },
      async (context) => {
        await callOperation(operations, "getContact", context, {
          params: { id: await contactId(db, context) },
        });
        return all;
      },
    ),
    translated(operations, {
      method: "POST",
      path: `${ofContact}/:segment`,
      operation: "getContact",
      summary: "Add a contact to a segment. It is in the only one already",
      ask: async (context) => ({ params: { id: await contactId(db, context) } }),
      answer: () => ({ id: ALL }),
    }),
  ];
}

/** Calls that would change segments. They answer 404, as all calls without a counterpart do. */
const CHANGES = [
  { method: "POST", path: "/segments" },
  { method: "PATCH", path: "/segments/:segment" },
  { method: "DELETE", path: "/segments/:segment" },
  { method: "POST", path: "/audiences" },
  { method: "PATCH", path: "/audiences/:segment" },
  { method: "DELETE", path: "/audiences/:segment" },
  { method: "DELETE", path: "/contacts/:contact/segments/:segment" },
] as const;

function refusedRoutes(operations: Operations): Route[] {
  return CHANGES.map((change) =>
    resendRoute(
      operations,
      { ...change, operation: "updateContact", summary: "Change segments, which is refused" },
      () => {
        throw noSegment();
      },
    ),
  );
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

/** Returns the metadata that Resend's properties can hold: strings and numbers. */
function showProperties(metadata: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(metadata).flatMap(([name, value]) => {
      const type = typeof value;
      return type === "string" || type === "number" ? [[name, { type, value }]] : [];
    }),
  );
}
