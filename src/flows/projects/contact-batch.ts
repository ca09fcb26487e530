import { isDeepStrictEqual } from "node:util";
import { addressKey } from "../../core/addresses.ts";
import { type Consent, withConsent } from "../../core/audience/consent.ts";
import { changedValues, checkValuesSize, type PropertyShape } from "../../core/audience/properties.ts";
import { AppError } from "../../core/errors.ts";
import { limitsOf, overQuota, type QuotaLimits, type Quotas } from "../../core/quotas.ts";
import { ConstraintError, type Db, type Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import {
  type Contact,
  type ContactChanges,
  findContacts,
  insertContact,
  replaceContact,
  requireUnchanged,
} from "../../store/projects/contacts.ts";
import { type ChangeLimit, holdingsOf, overQuotaIn, withinLimits } from "../../store/projects/holdings.ts";
import type { Project } from "../../store/projects/projects.ts";
import {
  checkedAddress,
  type KnownToProject,
  knownToProject,
  type NewContact,
  newContact,
  storedFields,
} from "./contacts.ts";

/** Maximum number of contacts in a batch. */
export const MAX_BATCH = 100;
/** Tries of a batch. It is repeated if another request changes a contact between its read and its write. */
const MAX_TRIES = 10;

/** A contact that a batch has saved, and what it did to it. */
export interface SavedContact {
  id: string;
  email: string;
  result: "created" | "updated" | "unchanged";
}

/** Dependencies of saving contacts. */
export interface ContactBatchDeps {
  db: Db;
  quotas: Quotas;
}

/** The request that saves contacts. */
export interface SavingContacts {
  senderId: string;
  project: Pick<Project, "plan">;
  now: number;
  growing: ChangeLimit;
  /** Reads what an item wants. Default: `wantedContact`. */
  read?: typeof wantedContact;
  /** Set if nothing is written: the number of contacts that would have been created before. */
  preview?: number;
}

/** The changes that an item makes to a contact, and the contact that it makes if its address is new. */
export interface WantedContact {
  changes: ContactChanges;
  fresh: Contact;
}

/** The outcomes of a batch in the order of its items, and the contacts to write. */
interface Plan {
  outcomes: (SavedContact | AppError)[];
  added: Map<string, Contact>;
  changed: Map<string, Contact>;
}

/**
 * Creates contacts, and changes the given fields of those that exist, in the order of the items. A new contact beyond the
 * quota is refused alone.
 * @param items checked items, or the errors that refuse them
 * @param record returns statements for the same write
 */
export async function saveContacts(
  { db, quotas }: ContactBatchDeps,
  { senderId, project, now, growing, read = wantedContact, preview }: SavingContacts,
  items: readonly (NewContact | AppError)[],
  record: (outcomes: Plan["outcomes"]) => readonly Statement[],
): Promise<Plan["outcomes"]> {
  const limits = limitsOf(quotas, project.plan);
  const keys = items.flatMap((item) => (item instanceof Error ? [] : [addressKey(checkedAddress(item))]));
  const known = await knownToProject(db, senderId, keys);
  const wanted = items.map((item) =>
    item instanceof Error ? item : refusedOr(() => read(senderId, item, known, now)),
  );
  for (let tries = 1; ; tries++) {
    const stood = await findContacts(db, senderId, keys);
    const held = limits.contacts === null ? 0 : (await holdingsOf(db, senderId)).contacts;
    const plan = planOf(wanted, stood, {
      limits,
      held: held + (preview ?? 0),
      shapes: known.shapes,
      now,
    });
    if (preview !== undefined) return plan.outcomes;
    try {
      await db.write(writeOf(plan, stood, { senderId, limits, growing }, record(plan.outcomes)));
      return plan.outcomes;
    } catch (error) {
      const raced =
        overQuotaIn(error) === "contacts" ||
        isBroken(error, "changed_since_read") ||
        (error instanceof ConstraintError && error.unique?.startsWith("contacts.") === true);
      if (!raced || tries === MAX_TRIES) throw error;
    }
  }
}

/** Returns what an item wants. Throws 422 for what is not allowed. */
export function wantedContact(
  senderId: string,
  item: NewContact,
  known: KnownToProject,
  now: number,
): WantedContact {
  return { changes: storedFields(item, known, now), fresh: newContact(senderId, item, known, now) };
}

function refusedOr<Result>(read: () => Result): Result | AppError {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** The facts that decide about the items of a batch. */
interface Deciding {
  limits: QuotaLimits;
  /** Contacts that the project has. */
  held: number;
  shapes: readonly PropertyShape[];
  now: number;
}

function planOf(
  wanted: readonly (WantedContact | AppError)[],
  stood: ReadonlyMap<string, Contact>,
  deciding: Deciding,
): Plan {
  const plan: Plan = { outcomes: [], added: new Map(), changed: new Map() };
  for (const one of wanted)
    plan.outcomes.push(one instanceof Error ? one : refusedOr(() => place(plan, one, stood, deciding)));
  return plan;
}

/** Adds an item to the plan. Throws if there is no room for its contact, or if its properties get too large. */
function place(
  { added, changed }: Plan,
  { changes, fresh }: WantedContact,
  stood: ReadonlyMap<string, Contact>,
  { limits, held, shapes, now }: Deciding,
): SavedContact {
  const key = fresh.emailKey;
  const before = added.get(key) ?? changed.get(key) ?? stood.get(key);
  if (before === undefined) {
    if (limits.contacts !== null && held + added.size >= limits.contacts)
      throw overQuota("contacts", limits.contacts);
    added.set(key, fresh);
    return { id: fresh.id, email: fresh.email, result: "created" };
  }
  const after = changedContact(before, changes, shapes, now);
  if (after !== null) (added.has(key) ? added : changed).set(key, after);
  return { id: before.id, email: before.email, result: after === null ? "unchanged" : "updated" };
}

/** Returns the contact with the given fields; null if it has them already. */
function changedContact(
  contact: Contact,
  { properties: values = {}, topics = {}, consent: told, ...fields }: ContactChanges,
  shapes: readonly PropertyShape[],
  now: number,
): Contact | null {
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const entries = told?.entries.filter((entry) => told.isTold || turns(contact, entry)) ?? [];
  const consent = entries.reduce(withConsent, contact.consent);
  const properties = changedValues(kept(contact.properties, shapes), values);
  checkValuesSize(properties);
  const after: Contact = {
    ...contact,
    ...given,
    properties,
    topics: { ...contact.topics, ...topics },
    consent,
  };
  if (isDeepStrictEqual(after, contact)) return null;
  const unsubscribedAt = after.subscribed ? null : (contact.unsubscribedAt ?? now);
  return { ...after, unsubscribedAt, updatedAt: now };
}

/** Returns whether an entry differs from what the contact has chosen before. */
function turns({ subscribed, topics }: Contact, { topicId, subscribed: after }: Consent): boolean {
  return topicId === undefined ? subscribed !== after : topics[topicId] !== Number(after);
}

/** Returns the values without those of a deleted property, which a chore is removing. */
function kept(values: Contact["properties"], shapes: readonly PropertyShape[]): Contact["properties"] {
  const names = new Set(shapes.map(({ name }) => name));
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)));
}

function writeOf(
  { added, changed }: Plan,
  stood: ReadonlyMap<string, Contact>,
  { senderId, limits, growing }: Pick<SavingContacts, "senderId" | "growing"> & { limits: QuotaLimits },
  recorded: readonly Statement[],
): Statement[] {
  const read = [...changed.keys()].flatMap((key) => stood.get(key) ?? []);
  return [
    ...(read.length === 0 ? [] : [requireUnchanged(read)]),
    ...[...changed.values()].flatMap((contact) => growing(replaceContact(contact))),
    ...[...added.values()].map(insertContact),
    ...recorded,
    ...(added.size === 0 ? [] : withinLimits(senderId, ["contacts"], limits)),
    ...(added.size + recorded.length === 0 ? [] : withinLimits(senderId, ["storedOctets"], limits)),
  ];
}
