import { AppError } from "../../core/errors.ts";
import { addressKey } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import type { DoneRow, WaitingRow } from "../../store/imports/parts.ts";
import type { Contact } from "../../store/projects/contacts.ts";
import { limitChange } from "../../store/projects/holdings.ts";
import { limitsOf } from "../../core/quotas.ts";
import { type SavedContact, saveContacts, wantedContact } from "../projects/contact-batch.ts";
import type { KnownToProject, NewContact } from "../projects/contacts.ts";
import type { Part, PartDeps } from "./part.ts";
import type { ContactValues } from "./row-values.ts";

/** Saves the contacts of a part with its results in one write, or says what would become of them. */
export async function saveContactPart(deps: PartDeps, part: Part): Promise<DoneRow[]> {
  const { senderId, project, now, rows, settle, preview } = part;
  const since = new Map<NewContact, ContactValues["since"]>();
  const items = rows.map(([, , values, error]) => {
    if (values === null) return new AppError("validation_error", error ?? "");
    const { item, since: times } = values as ContactValues;
    since.set(item, times);
    return item;
  });
  const storedOctets = limitsOf(deps.quotas, project.plan).storedOctets;
  const outcomes = await saveContacts(
    deps,
    {
      senderId,
      project,
      now,
      growing: (change) => limitChange(senderId, storedOctets, change),
      read(sender, item, known, at) {
        const { changes, fresh } = wantedContact(sender, cautious(item, known), known, at);
        return { changes, fresh: made(fresh, since.get(item) ?? {}) };
      },
      ...(preview === undefined ? {} : { preview }),
    },
    items,
    (planned) => settle(doneRows(rows, planned)),
  );
  return doneRows(rows, outcomes);
}

/** Leaves out that a person is subscribed who had unsubscribed before an erasure: the file may be older than that. */
function cautious(item: NewContact, { unsubscribed }: KnownToProject): NewContact {
  if (item.subscribed !== true || !unsubscribed.has(addressKey(item.email))) return item;
  const { subscribed, ...rest } = item;
  return rest;
}

/** Returns a new contact with the times of the file. Its id has the time, so a list keeps its order. */
function made(contact: Contact, since: ContactValues["since"]): Contact {
  const past = (at: number | undefined, other: number) => Math.min(at ?? other, contact.createdAt);
  const known = (at: number | undefined) => (at === undefined ? null : past(at, at));
  const { createdAt, updatedAt, unsubscribedAt } = since;
  const began = past(createdAt, contact.createdAt);
  return {
    ...contact,
    id: newId("con", began),
    createdAt: began,
    updatedAt: past(updatedAt, contact.updatedAt),
    consent: contact.consent.map((entry) => ({ ...entry, how: "import" })),
    unsubscribedAt: contact.subscribed ? null : past(unsubscribedAt, contact.createdAt),
    lastSentAt: known(since.lastSentAt),
    lastOpenedAt: known(since.lastOpenedAt),
    lastClickedAt: known(since.lastClickedAt),
  };
}

function doneRows(rows: readonly WaitingRow[], outcomes: readonly (SavedContact | AppError)[]): DoneRow[] {
  return rows.map(([row, email, , error], at) => {
    const outcome = outcomes[at];
    return outcome === undefined || outcome instanceof Error
      ? [row, email, "failed", outcome?.message ?? error]
      : [row, email, outcome.result, null];
  });
}
