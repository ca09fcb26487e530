import { addressKey } from "../../../core/addresses.ts";
import { existing } from "../../../core/errors.ts";
import type { Db } from "../../../store/engine/client.ts";
import { findContact } from "../../../store/projects/contacts.ts";
import type { CheckedRequest } from "../../routing/route.ts";

/** Returns a contact's id. The path has its id or its address. @throws AppError 404 if no contact has the address */
export async function contactId(db: Db, { params, senderId }: CheckedRequest): Promise<string> {
  const { contact = "" } = params;
  if (!contact.includes("@")) return contact;
  return existing("contact", await findContact(db, senderId ?? "", addressKey(contact))).id;
}
