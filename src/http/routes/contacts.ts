import { findInexactNumber, INEXACT_NUMBER, isDeeper } from "../../core/validation.ts";
import { type Static, Type } from "@sinclair/typebox";
import { addressKey, ADDRESS_EXPECTED, normalizeAddress } from "../../core/addresses.ts";
import { AppError, invalid, notFound, readAll } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { wellFormed } from "../../core/text.ts";
import { ConstraintError, type Db } from "../../store/engine/client.ts";
import {
  type Contact,
  deleteContact,
  getContact,
  insertContact,
  listContacts,
  setSubscribed,
  updateContact,
} from "../../store/projects/contacts.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import {
  EMAIL,
  MAX_NAME_CHARS,
  Nullable,
  ONE_LINE,
  PAGE_QUERY,
  PageOf,
  Search,
  showTime,
  Timestamp,
} from "../routing/schemas.ts";

/** Limits of a contact's metadata: keys, size as JSON, and nesting. */
const MAX_METADATA_KEYS = 50;
const MAX_METADATA_BYTES = 16 * 1024;
const MAX_METADATA_DEPTH = 10;

const ContactSchema = Type.Object(
  {
    id: Type.String(),
    email: Type.String(),
    firstName: Nullable(Type.String()),
    lastName: Nullable(Type.String()),
    subscribed: Type.Boolean(),
    unsubscribedAt: Nullable(Timestamp),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Contact" },
);

const Name = Type.Optional(
  Nullable(Type.String({ maxLength: MAX_NAME_CHARS, ...ONE_LINE, examples: ["Ana"] })),
);
const Metadata = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), {
    maxProperties: MAX_METADATA_KEYS,
    description: `Your own fields: at most ${MAX_METADATA_KEYS} keys and ${MAX_METADATA_BYTES} bytes of JSON, nested ${MAX_METADATA_DEPTH} deep. Whole numbers beyond 2^53 are refused. Send them as texts.`,
    examples: [{ customerId: "42" }],
  }),
);
const CreateContact = Type.Object({
  email: Type.String(EMAIL),
  firstName: Name,
  lastName: Name,
  metadata: Metadata,
  subscribed: Type.Optional(Type.Boolean({ default: true })),
});
const UpdateContact = Type.Object(
  { firstName: Name, lastName: Name, metadata: Metadata, subscribed: Type.Optional(Type.Boolean()) },
  { description: "Null clears a name. `metadata` replaces all keys." },
);

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  subscribed: Type.Optional(Type.Boolean()),
  q: Search("Part of the address, first name or last name. Case does not matter."),
});

function show(contact: Contact): Static<typeof ContactSchema> {
  return {
    id: contact.id,
    email: contact.email,
    firstName: contact.firstName,
    lastName: contact.lastName,
    subscribed: contact.subscribed,
    unsubscribedAt: showTime(contact.unsubscribedAt),
    metadata: contact.metadata,
    createdAt: showTime(contact.createdAt),
    updatedAt: showTime(contact.updatedAt),
  };
}

/** Throws 422 if metadata exceeds its limits. */
function checkMetadata(metadata: Record<string, unknown> | undefined): void {
  if (metadata === undefined) return;
  // Checks the depth before making JSON, because deep nesting overflows the stack there.
  if (isDeeper(metadata, MAX_METADATA_DEPTH))
    throw invalid("metadata", `must be nested at most ${MAX_METADATA_DEPTH} deep.`);
  const inexact = findInexactNumber(metadata, "metadata");
  if (inexact !== null) throw invalid(inexact, INEXACT_NUMBER);
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    throw invalid("metadata", `must have at most ${MAX_METADATA_BYTES} bytes as JSON.`);
}

/** Returns a name as the database will store it, with halves of surrogate pairs replaced. */
function nameOf(name: string | null): string | null {
  return name === null ? null : name.toWellFormed();
}

function addressOf(text: string): string {
  const email = normalizeAddress(text);
  if (email === null) throw invalid("email", ADDRESS_EXPECTED, "invalid_email");
  return email;
}

/** Returns the address, empty if none is given. Throws 422 with all issues. */
function checkedAddress({ email, metadata }: Partial<Static<typeof CreateContact>>): string {
  const [address] = readAll(
    () => (email === undefined ? "" : addressOf(email)),
    () => checkMetadata(metadata),
  );
  return address;
}

function newContact(senderId: string, body: Static<typeof CreateContact>, now: number): Contact {
  const email = checkedAddress(body);
  const subscribed = body.subscribed ?? true;
  return {
    id: newId("con", now),
    senderId,
    email,
    emailKey: addressKey(email),
    firstName: nameOf(body.firstName ?? null),
    lastName: nameOf(body.lastName ?? null),
    subscribed,
    unsubscribedAt: subscribed ? null : now,
    metadata: wellFormed(body.metadata ?? {}),
    createdAt: now,
    updatedAt: now,
  };
}

/** Returns the routes of `/v1/contacts`. */
export function contactRoutes({ db }: { db: Db }): Route[] {
  return [
    createRoute(db),
    listRoute(db),
    ...itemRoutes(db),
    subscriptionRoute(db, "unsubscribe", false),
    subscriptionRoute(db, "resubscribe", true),
  ];
}

function createRoute(db: Db): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/contacts",
    operationId: "createContact",
    stores: { adds: ["contacts"] },
    summary: "Create a contact",
    description: "An address can be in the list once. Case does not matter.",
    scope: "contacts:write",
    examples: { body: { email: "ben@example.com", firstName: "Ben", metadata: { customerId: "42" } } },
    body: CreateContact,
    rules: checkedAddress,
    answers: { 201: ContactSchema },
    async handle({ senderId, body, now, record }) {
      const contact = newContact(senderId, body, now);
      const answer = created(show(contact));
      try {
        await db.write([insertContact(contact), ...record(answer)]);
      } catch (error) {
        if (error instanceof ConstraintError && error.unique?.startsWith("contacts.") === true)
          throw new AppError("conflict", `The contact ${contact.emailKey} already exists.`, {
            code: "duplicate",
            param: "email",
          });
        throw error;
      }
      return answer;
    },
  });
}

function listRoute(db: Db): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/contacts",
    operationId: "listContacts",
    summary: "List contacts, newest first",
    description: "Filters can be combined.",
    scope: "contacts:read",
    query: ListQuery,
    answers: { 200: PageOf(ContactSchema) },
    async handle({ senderId, query, page }) {
      const { after, take, answer } = page();
      const { subscribed, q } = query;
      const { rows, stoppedAt } = await listContacts(db, senderId, { subscribed, q }, after, take);
      return ok(answer(rows, show, ({ id }) => id, stoppedAt));
    },
  });
}

function itemRoutes(db: Db): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/contacts/:id",
      operationId: "getContact",
      summary: "Get a contact",
      description: "With its subscription and your own `metadata`.",
      scope: "contacts:read",
      answers: { 200: ContactSchema },
      async handle({ senderId, params }) {
        return ok(show(found(await getContact(db, senderId, params.id))));
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
        "Fields that are absent stay as they are. Null clears a name. `metadata` replaces all keys.",
      scope: "contacts:write",
      examples: { body: { firstName: "Ben", subscribed: false } },
      body: UpdateContact,
      rules: ({ metadata }: Static<typeof UpdateContact>) => checkMetadata(metadata),
      answers: { 200: ContactSchema },
      async handle({ senderId, params, body, now, growing }) {
        checkMetadata(body.metadata);
        const { firstName, lastName, metadata, subscribed } = body;
        const changes = {
          subscribed,
          firstName: firstName === undefined ? undefined : nameOf(firstName),
          lastName: lastName === undefined ? undefined : nameOf(lastName),
          metadata: metadata === undefined ? undefined : wellFormed(metadata),
        };
        return ok(show(found(await updateContact(db, senderId, params.id, changes, now, growing))));
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

function found(contact: Contact | null): Contact {
  if (contact === null) throw notFound("contact");
  return contact;
}

// A repeated call has no further effect, so its answer need not be stored in the same write.
function subscriptionRoute(db: Db, verb: "unsubscribe" | "resubscribe", subscribed: boolean): Route {
  return projectRoute({
    method: "POST",
    path: `/v1/contacts/:id/${verb}`,
    operationId: `${verb}Contact`,
    shows: "contacts:read",
    evenFull: true,
    summary: subscribed ? "Subscribe a contact again" : "Unsubscribe a contact; it is not suppressed",
    description: subscribed
      ? "Clears `unsubscribedAt`. Repeating the call changes nothing."
      : "Repeating the call changes nothing. Only messages with `unsubscribeLink` respect the subscription.",
    scope: "contacts:write",
    answers: { 200: ContactSchema },
    async handle({ senderId, params, now }) {
      return ok(show(found(await setSubscribed(db, senderId, params.id, subscribed, now))));
    },
  });
}
