import { isDeepStrictEqual } from "node:util";
import { addressKey } from "../../core/addresses.ts";
import type { AppError } from "../../core/errors.ts";
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
import { unsubscribedBeforeErasure } from "../../store/projects/erased-unsubscriptions.ts";
import { type ChangeLimit, holdingsOf, overQuotaIn, withinLimits } from "../../store/projects/holdings.ts";
import type { Project } from "../../store/projects/projects.ts";
import { checkedAddress, type NewContact, newContact, storedFields } from "./contacts.ts";

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
  project: Project;
  now: number;
  growing: ChangeLimit;
}

/** An item with the contact that it makes if its address is new. */
interface Wanted {
  item: NewContact;
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
  { senderId, project, now, growing }: SavingContacts,
  items: readonly (NewContact | AppError)[],
  record: (outcomes: Plan["outcomes"]) => readonly Statement[],
): Promise<Plan["outcomes"]> {
  const limits = limitsOf(quotas, project.plan);
  const keys = items.flatMap((item) => (item instanceof Error ? [] : [addressKey(checkedAddress(item))]));
  const erased = await unsubscribedBeforeErasure(db, senderId, keys);
  const wanted = items.map((item) =>
    item instanceof Error ? item : { item, fresh: newContact(senderId, item, now, erased) },
  );
  for (let tries = 1; ; tries++) {
    const stood = await findContacts(db, senderId, keys);
    const held = limits.contacts === null ? 0 : (await holdingsOf(db, senderId)).contacts;
    const plan = planOf(wanted, stood, limits, held, now);
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

function planOf(
  wanted: readonly (Wanted | AppError)[],
  stood: ReadonlyMap<string, Contact>,
  limits: QuotaLimits,
  held: number,
  now: number,
): Plan {
  const plan: Plan = { outcomes: [], added: new Map(), changed: new Map() };
  const room = limits.contacts === null ? MAX_BATCH : limits.contacts - held;
  for (const one of wanted) {
    if (one instanceof Error) plan.outcomes.push(one);
    else plan.outcomes.push(place(plan, one, stood, room, now) ?? overQuota("contacts", limits.contacts));
  }
  return plan;
}

/** Adds an item to the plan. Returns null if there is no room for its contact. */
function place(
  { added, changed }: Plan,
  { item, fresh }: Wanted,
  stood: ReadonlyMap<string, Contact>,
  room: number,
  now: number,
): SavedContact | null {
  const key = fresh.emailKey;
  const before = added.get(key) ?? changed.get(key) ?? stood.get(key);
  if (before === undefined) {
    if (added.size >= room) return null;
    added.set(key, fresh);
    return { id: fresh.id, email: fresh.email, result: "created" };
  }
  const after = changedContact(before, storedFields(item), now);
  if (after !== null) (added.has(key) ? added : changed).set(key, after);
  return { id: before.id, email: before.email, result: after === null ? "unchanged" : "updated" };
}

/** Returns the contact with the given fields; null if it has them already. */
function changedContact(contact: Contact, changes: ContactChanges, now: number): Contact | null {
  const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  const after: Contact = { ...contact, ...given };
  if (isDeepStrictEqual(after, contact)) return null;
  const unsubscribedAt = after.subscribed ? null : (contact.unsubscribedAt ?? now);
  return { ...after, unsubscribedAt, updatedAt: now };
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
