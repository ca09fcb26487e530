import { isDeeper } from "../../core/validation.ts";
import { type Static, Type } from "@sinclair/typebox";
import { addressKey, NO_ADDRESS, normalizeAddress } from "../../core/addresses.ts";
import { AppError, invalid, notFound, readAll } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { wellFormed } from "../../core/well-formed.ts";
import { ConstraintError, type Db } from "../../store/engine/client.ts";
import {
  type Contact,
  deleteContact,
  getContact,
  insertContact,
  listContacts,
  setSubscribed,
  updateContact,
} from "../../store/contacts.ts";
import { created, noContent, ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import {
  MAX_NAME_CHARS,
  Nullable,
  ONE_LINE,
  PAGE_QUERY,
  PageOf,
  Search,
  showTime,
  Timestamp,
} from "../schemas.ts";

/** Keys of a contact's metadata, its size as JSON, and how deep lists and objects may lie in one another. */
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

const Name = Type.Optional(Nullable(Type.String({ maxLength: MAX_NAME_CHARS, pattern: ONE_LINE })));
const Metadata = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), {
    maxProperties: MAX_METADATA_KEYS,
    description: `Your own fields: at most ${MAX_METADATA_KEYS} keys and ${MAX_METADATA_BYTES} bytes of JSON, nested ${MAX_METADATA_DEPTH} deep. Whole numbers beyond 2^53 lose digits: send them as texts.`,
  }),
);
const CreateContact = Type.Object({
  email: Type.String(),
  firstName: Name,
  lastName: Name,
  metadata: Metadata,
  subscribed: Type.Optional(Type.Boolean({ default: true })),
});
const UpdateContact = Type.Object(
  { firstName: Name, lastName: Name, metadata: Metadata },
  { description: "Null clears a name; `metadata` replaces the whole of it." },
);

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  subscribed: Type.Optional(Type.Boolean()),
  q: Search("Part of the address, first or last name, in any case."),
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

/** Throws 422 for metadata over its limits. */
function checkMetadata(metadata: Record<string, unknown> | undefined): void {
  if (metadata === undefined) return;
  // Before it becomes JSON: what is nested deep enough breaks the stack there.
  if (isDeeper(metadata, MAX_METADATA_DEPTH))
    throw invalid("metadata", `Nested more than ${MAX_METADATA_DEPTH} deep.`);
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    throw invalid("metadata", `At most ${MAX_METADATA_BYTES} bytes as JSON.`);
}

/** What is no Unicode text (half of a surrogate pair) would come back otherwise than it was given. */
function nameOf(name: string | null): string | null {
  return name === null ? null : name.toWellFormed();
}

function addressOf(text: string): string {
  const email = normalizeAddress(text);
  if (email === null) throw invalid("email", NO_ADDRESS, "invalid_email");
  return email;
}

/** The address, empty where none is given. Throws 422 over all that is wrong. */
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

/** `/v1/contacts`. */
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
    summary: "Store a contact",
    scope: "contacts:write",
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
          throw new AppError("conflict", `There is a contact ${contact.emailKey} already.`, {
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
      summary: "Read a contact",
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
      summary: "Change a contact's names or metadata",
      scope: "contacts:write",
      body: UpdateContact,
      rules: ({ metadata }: Static<typeof UpdateContact>) => checkMetadata(metadata),
      answers: { 200: ContactSchema },
      async handle({ senderId, params, body, now }) {
        checkMetadata(body.metadata);
        const { firstName, lastName, metadata } = body;
        const changes = {
          firstName: firstName === undefined ? undefined : nameOf(firstName),
          lastName: lastName === undefined ? undefined : nameOf(lastName),
          metadata: metadata === undefined ? undefined : wellFormed(metadata),
        };
        return ok(show(found(await updateContact(db, senderId, params.id, changes, now))));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/contacts/:id",
      operationId: "deleteContact",
      summary: "Delete a contact",
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

// Doing it twice is doing it once, so its answer need not be stored in the same write.
function subscriptionRoute(db: Db, verb: "unsubscribe" | "resubscribe", subscribed: boolean): Route {
  return projectRoute({
    method: "POST",
    path: `/v1/contacts/:id/${verb}`,
    operationId: `${verb}Contact`,
    summary: subscribed ? "Subscribe a contact again" : "Unsubscribe a contact; it is not suppressed",
    scope: "contacts:write",
    answers: { 200: ContactSchema },
    async handle({ senderId, params, now }) {
      return ok(show(found(await setSubscribed(db, senderId, params.id, subscribed, now))));
    },
  });
}
