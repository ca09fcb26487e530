import { addressKey, ADDRESS_EXPECTED, normalizeAddress } from "../../core/addresses.ts";
import { AppError, invalid, readAll, existing } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { wellFormed } from "../../core/text.ts";
import { findInexactNumber, INEXACT_NUMBER, isDeeper } from "../../core/validation.ts";
import { ConstraintError, type Db, type Statement } from "../../store/engine/client.ts";
import {
  type Contact,
  type ContactChanges,
  insertContact,
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
  /** If left out: true, unless the address had unsubscribed when it was erased. */
  subscribed?: boolean;
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

const NONE: ReadonlySet<string> = new Set();

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
export function checkedAddress({ email, metadata }: Partial<NewContact>): string {
  const [address] = readAll(
    () => (email === undefined ? "" : addressOf(email)),
    () => checkMetadata(metadata),
  );
  return address;
}

/**
 * Returns the contact that a client names. Throws 422 for an address or metadata that is not allowed.
 * @param unsubscribed keys of erased addresses that had unsubscribed: only the client's word subscribes them again
 */
export function newContact(
  senderId: string,
  body: NewContact,
  now: number,
  unsubscribed: ReadonlySet<string> = NONE,
): Contact {
  const email = checkedAddress(body);
  const subscribed = body.subscribed ?? !unsubscribed.has(addressKey(email));
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

/**
 * Adds a contact to the project's list.
 * @param record returns statements for the same write
 * @throws AppError 409 `duplicate`; 422 for an address or metadata that is not allowed
 */
export async function createContact(
  db: Db,
  senderId: string,
  wanted: NewContact,
  now: number,
  record: (contact: Contact) => readonly Statement[],
): Promise<Contact> {
  const key = addressKey(checkedAddress(wanted));
  const contact = newContact(senderId, wanted, now, await unsubscribedBeforeErasure(db, senderId, [key]));
  try {
    await db.write([insertContact(contact), ...record(contact)]);
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
 * Changes the fields in `changes`. Metadata is replaced as a whole.
 * @throws AppError 404; 422 for metadata that is not allowed
 */
export async function changeContact(
  db: Db,
  { senderId, id }: { senderId: string; id: string },
  changes: Omit<NewContact, "email">,
  now: number,
  growing: ChangeLimit,
): Promise<Contact> {
  checkMetadata(changes.metadata);
  return existing("contact", await updateContact(db, senderId, id, storedFields(changes), now, growing));
}

/** Returns the given fields as the database will store them. */
export function storedFields({
  firstName,
  lastName,
  metadata,
  subscribed,
}: Omit<NewContact, "email">): ContactChanges {
  return {
    subscribed,
    firstName: firstName === undefined ? undefined : nameOf(firstName),
    lastName: lastName === undefined ? undefined : nameOf(lastName),
    metadata: metadata === undefined ? undefined : wellFormed(metadata),
  };
}
