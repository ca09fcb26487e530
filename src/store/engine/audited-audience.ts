import { AUDITED, type Audited, type Kind } from "./audited-tables.ts";

const BY_PROJECT = {
  account: "(SELECT account_id FROM senders WHERE id = row.sender_id)",
  project: "row.sender_id",
};

const LONG_PROPERTIES: [string, Kind] = ["properties", "long"];

/** The tables of the step of properties, which makes the triggers of contacts again. */
export const AUDITED_CONTACTS: readonly Audited[] = [
  {
    table: "contact_properties",
    noun: "contact_property",
    name: "name",
    ...BY_PROJECT,
    // It is marked first, and deleted once no contact has a value.
    named: [{ verb: "delete", when: "OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL" }],
    marks: ["deleted_at"],
    goes: "OLD.deleted_at IS NOT NULL",
    fields: { name: "name", type: "type", fallback: ["fallback", "long"] },
  },
  ...AUDITED.filter(({ table }) => table === "contacts").map((contacts) => ({
    ...contacts,
    fields: { ...contacts.fields, properties: LONG_PROPERTIES },
  })),
];
