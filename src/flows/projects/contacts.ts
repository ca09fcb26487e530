import {
  type Consent,
  consentsOf,
  type GivenConsent,
  readConsent,
  withConsent,
} from "../../core/audience/consent.ts";
import {
  changedValues,
  checkValuesSize,
  type GivenValues,
  OVERSIZED,
  type PropertyShape,
  readValues,
} from "../../core/audience/properties.ts";
import {
  type Choices,
  type GivenChoice,
  pendingTopics,
  readChoices,
  type TopicShape,
} from "../../core/audience/topics.ts";
import { addressKey } from "../../core/addresses.ts";
import { requiredAddress } from "../../core/messages/address-input.ts";
import { AppError, invalid, readAll, existing } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { wellFormed } from "../../core/text.ts";
import { findInexactNumber, INEXACT_NUMBER, isDeeper } from "../../core/validation.ts";
import { topicShapes } from "../../store/audience/topics.ts";
import { propertyShapes } from "../../store/audience/properties.ts";
import { ConstraintError, type Db, type Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import {
  type Contact,
  type ContactChanges,
  getContact,
  insertContact,
  NOT_ENGAGED,
  updateContact,
} from "../../store/projects/contacts.ts";
import { unsubscribedBeforeErasure } from "../../store/projects/erased-unsubscriptions.ts";
import type { ChangeLimit } from "../../store/projects/holdings.ts";

/** Limits of a contact's metadata: keys, size as JSON, and nesting. */
export const MAX_METADATA_KEYS = 50;
export const MAX_METADATA_BYTES = 16 * 1024;
export const MAX_METADATA_DEPTH = 10;

/** A contact as the client names it. */
export interface NewContact {
  email: string;
  firstName?: string | null;
  lastName?: string | null;
  metadata?: Record<string, unknown>;
  properties?: GivenValues;
  topics?: Readonly<Record<string, GivenChoice>>;
  /** If left out: true, unless the address had unsubscribed when it was erased. */
  subscribed?: boolean;
  /** How the person joined or left. */
  consent?: GivenConsent;
}

/** Throws 422 if metadata exceeds its limits. */
export function checkMetadata(metadata: Record<string, unknown> | undefined): void {
  if (metadata === undefined) return;
  // Checks the depth before making JSON, because deep nesting overflows the stack there.
  if (isDeeper(metadata, MAX_METADATA_DEPTH))
    throw invalid("metadata", `must be nested at most ${MAX_METADATA_DEPTH} deep.`);
  const inexact = findInexactNumber(metadata, "metadata");
  if (inexact !== null) throw invalid(inexact, INEXACT_NUMBER);
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    throw invalid("metadata", `must have at most ${MAX_METADATA_BYTES} bytes as JSON.`);
}

/** Facts of the project that decide about a new contact. */
export interface KnownToProject {
  /** The properties that contacts may have. */
  shapes: readonly PropertyShape[];
  topics: readonly TopicShape[];
  /** Keys of erased addresses that had unsubscribed: only the client's word subscribes them again. */
  unsubscribed: ReadonlySet<string>;
  /** True if people who join topics with `doubleOptIn` are asked by a link. */
  asks?: boolean;
}

/**
 * Mails the person of a contact a link to join topics.
 * @param statements for the same write
 */
export type AskToJoin = (
  contact: Contact,
  topicIds: readonly string[],
  statements: readonly Statement[],
) => Promise<void>;

/** The properties and topics of a project. */
export type WhatContactsHave = Pick<KnownToProject, "shapes" | "topics" | "asks">;

/** Reads the properties and topics of a project. */
export async function whatContactsHave(db: Db, senderId: string): Promise<WhatContactsHave> {
  const [shapes, topics] = await Promise.all([propertyShapes(db, senderId), topicShapes(db, senderId)]);
  return { shapes, topics };
}

/** Reads what decides about new contacts with those address keys. */
export async function knownToProject(
  db: Db,
  senderId: string,
  keys: readonly string[],
): Promise<KnownToProject> {
  return {
    ...(await whatContactsHave(db, senderId)),
    unsubscribed: await unsubscribedBeforeErasure(db, senderId, keys),
  };
}

/** Returns a name as the database will store it, with halves of surrogate pairs replaced. */
function nameOf(name: string | null): string | null {
  return name === null ? null : name.toWellFormed();
}

/** Returns the address, empty if none is given. Throws 422 with all issues. */
export function checkedAddress({ email, metadata }: Partial<NewContact>): string {
  const [address] = readAll(
    () => (email === undefined ? "" : requiredAddress(email, "email")),
    () => checkMetadata(metadata),
  );
  return address;
}

/** Returns the contact that a client names. Throws 422 for what is not allowed. */
export function newContact(
  senderId: string,
  body: NewContact,
  { shapes, topics, unsubscribed, asks = false }: KnownToProject,
  now: number,
): Contact {
  const subscribed = body.subscribed ?? !unsubscribed.has(addressKey(body.email));
  const [email, properties, choices, entry] = readAll(
    () => checkedAddress(body),
    () => changedValues({}, readValues(shapes, body.properties ?? {})),
    () => readChoices(topics, body.topics ?? {}, asks),
    () => readConsent(body.consent, subscribed, now),
  );
  checkValuesSize(properties);
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
    properties,
    topics: choices,
    consent: trailOf(entry, choices),
    ...NOT_ENGAGED,
    createdAt: now,
    updatedAt: now,
  };
}

/** Returns the trail of a new contact. */
function trailOf(entry: Consent, choices: Choices): readonly Consent[] {
  return consentsOf(entry, choices).reduce(withConsent, [entry]);
}

/**
 * Adds a contact to the project's list.
 * @param record returns statements for the same write
 * @throws AppError 409 `duplicate`; 422 for an address or metadata that is not allowed; 429 if too many links were mailed
 */
export async function createContact(
  db: Db,
  senderId: string,
  wanted: NewContact,
  now: number,
  { record, ask }: { record: (contact: Contact) => readonly Statement[]; ask: AskToJoin },
): Promise<Contact> {
  const key = addressKey(checkedAddress(wanted));
  const known = { ...(await knownToProject(db, senderId, [key])), asks: true };
  const contact = newContact(senderId, wanted, known, now);
  const statements = [insertContact(contact), ...record(contact)];
  const asked = pendingTopics(contact.topics);
  try {
    if (asked.length > 0) await ask(contact, asked, statements);
    else await db.write(statements);
    return contact;
  } catch (error) {
    if (error instanceof ConstraintError && error.unique?.startsWith("contacts.") === true)
      throw new AppError("conflict", `The contact ${contact.emailKey} already exists.`, {
        code: "duplicate",
        param: "email",
      });
    throw error;
  }
}

/**
 * Changes the fields in `changes`. Metadata is replaced as a whole, properties one by one.
 * @throws AppError 404; 422 for what is not allowed
 */
export async function changeContact(
  db: Db,
  { senderId, id }: { senderId: string; id: string },
  changes: Omit<NewContact, "email">,
  now: number,
  { growing, ask }: { growing: ChangeLimit; ask: AskToJoin },
): Promise<Contact> {
  checkMetadata(changes.metadata);
  const have = { ...(await whatContactsHave(db, senderId)), asks: true };
  const fields = storedFields(await withoutJoined(db, { senderId, id }, changes, have), have, now);
  const asked = pendingTopics(fields.topics ?? {});
  // First the mail: a link that is too many changes nothing.
  if (asked.length > 0) await ask(existing("contact", await getContact(db, senderId, id)), asked, []);
  try {
    return existing("contact", await updateContact(db, senderId, id, fields, now, growing));
  } catch (error) {
    throw isBroken(error, "over_properties") ? invalid("properties", OVERSIZED) : error;
  }
}

/** Returns changes without topics that the person has joined by a link before. */
async function withoutJoined(
  db: Db,
  { senderId, id }: { senderId: string; id: string },
  changes: Omit<NewContact, "email">,
  { topics }: WhatContactsHave,
): Promise<Omit<NewContact, "email">> {
  const byLink = new Set(topics.filter(({ doubleOptIn }) => doubleOptIn).map((topic) => topic.id));
  const joins = Object.entries(changes.topics ?? {}).filter(([topic]) => byLink.has(topic));
  if (joins.length === 0) return changes;
  const contact = existing("contact", await getContact(db, senderId, id));
  const others = Object.entries(changes.topics ?? {}).filter(
    ([topic, choice]) => !(byLink.has(topic) && choice === "subscribed" && contact.topics[topic] === 1),
  );
  return { ...changes, topics: Object.fromEntries(others) };
}

/** Returns the given fields as the database will store them. Throws 422 for what is not allowed. */
export function storedFields(
  {
    firstName,
    lastName,
    metadata,
    properties,
    topics: named,
    subscribed,
    consent,
  }: Omit<NewContact, "email">,
  { shapes, topics, asks = false }: WhatContactsHave,
  now: number,
): ContactChanges {
  if (consent !== undefined && subscribed === undefined && named === undefined)
    throw invalid(
      "consent",
      "can only be given together with `subscribed` or `topics`, of which it is the proof.",
    );
  const choices = named === undefined ? undefined : readChoices(topics, named, asks);
  const entry = readConsent(consent, subscribed ?? true, now);
  const entries = [...(subscribed === undefined ? [] : [entry]), ...consentsOf(entry, choices ?? {})];
  return {
    subscribed,
    topics: choices,
    consent: { entries, isTold: consent !== undefined },
    properties: properties === undefined ? undefined : readValues(shapes, properties),
    firstName: firstName === undefined ? undefined : nameOf(firstName),
    lastName: lastName === undefined ? undefined : nameOf(lastName),
    metadata: metadata === undefined ? undefined : wellFormed(metadata),
  };
}
