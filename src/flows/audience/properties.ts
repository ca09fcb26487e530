import {
  MAX_PROPERTIES,
  type PropertyType,
  type PropertyValue,
  readValue,
} from "../../core/audience/properties.ts";
import { AppError, existing } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { actingAs, NOBODY } from "../../core/actor.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import {
  type ContactProperty,
  getProperty,
  insertProperty,
  updateFallback,
} from "../../store/audience/properties.ts";
import { removeValues } from "../../store/audience/removed-values.ts";
import { ConstraintError, type Db, type Statement, type Store } from "../../store/engine/client.ts";
import { tooManyRecords } from "../quotas.ts";

/** A property as a client names it. */
export interface NewProperty {
  name: string;
  type: PropertyType;
  fallback?: PropertyValue | null | undefined;
}

function fallbackOf(type: PropertyType, fallback: PropertyValue | null | undefined): PropertyValue | null {
  return fallback === undefined || fallback === null ? null : readValue(type, fallback, "fallback");
}

/**
 * Adds a property that the project's contacts may have.
 * @param record returns statements for the same write
 * @throws AppError 409 `duplicate`; 403 if there are too many; 422 for a fallback of another type
 */
export async function createProperty(
  db: Db,
  senderId: string,
  { name, type, fallback }: NewProperty,
  now: number,
  record: (property: ContactProperty) => readonly Statement[],
): Promise<ContactProperty> {
  const times = { createdAt: now, updatedAt: now };
  const property = {
    id: newId("prp", now),
    senderId,
    name,
    type,
    fallback: fallbackOf(type, fallback),
    ...times,
  };
  try {
    await db.write([...insertProperty(property), ...record(property)]);
    return property;
  } catch (error) {
    if (error instanceof ConstraintError && error.unique?.startsWith("contact_properties.") === true)
      throw new AppError(
        "conflict",
        `The property ${name} already exists, or its values are still being removed. That takes some minutes.`,
        { code: "duplicate", param: "name" },
      );
    return tooManyRecords(`A project has at most ${MAX_PROPERTIES} properties.`, "properties")(error);
  }
}

/**
 * Changes what a template gets for a contact without a value.
 * @throws AppError 404; 422 for a fallback of another type
 */
export async function changeFallback(
  db: Db,
  { senderId, id }: { senderId: string; id: string },
  fallback: PropertyValue | null,
  now: number,
): Promise<ContactProperty> {
  const { type } = existing("property", await getProperty(db, senderId, id));
  return existing("property", await updateFallback(db, senderId, id, fallbackOf(type, fallback), now));
}

/**
 * How long the values of a deleted property or topic stay, milliseconds: a request that has read the property may still write
 * one.
 */
export const REMOVED_AFTER_MS = MINUTE_MS;
/** Contacts of one write, which takes about three milliseconds. */
export const CONTACTS_PER_WRITE = 500;
const WRITES_PER_TURN = 4;

/** Removes the values of deleted properties and topics from contacts, one limited step per turn. */
export async function removePropertyValues({ db, clock }: Store): Promise<void> {
  // The audit trail has the deletion of the property or topic, not each contact.
  await actingAs(NOBODY, async () => {
    for (let write = 0; write < WRITES_PER_TURN; write++)
      if (!(await removeValues(db, clock.now() - REMOVED_AFTER_MS, CONTACTS_PER_WRITE))) return;
  });
}
