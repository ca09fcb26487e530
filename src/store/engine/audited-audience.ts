import { AUDITED, type Audited, type Kind } from "./audited-tables.ts";

const BY_PROJECT = {
  account: "(SELECT account_id FROM senders WHERE id = row.sender_id)",
  project: "row.sender_id",
};

const LONG_PROPERTIES: [string, Kind] = ["properties", "long"];
const LONG_TOPICS: [string, Kind] = ["topics", "long"];

/** Returns the description of contacts with further fields, because their triggers are made again. */
function contactsWith(fields: Audited["fields"]): Audited[] {
  return AUDITED.filter(({ table }) => table === "contacts").map((contacts) => ({
    ...contacts,
    fields: { ...contacts.fields, ...fields },
  }));
}

const PROPERTIES: Audited = {
  table: "contact_properties",
  noun: "contact_property",
  name: "name",
  ...BY_PROJECT,
  // It is marked first, and deleted once no contact has a value.
  named: [{ verb: "delete", when: "OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL" }],
  marks: ["deleted_at"],
  goes: "OLD.deleted_at IS NOT NULL",
  fields: { name: "name", type: "type", fallback: ["fallback", "long"] },
};

/** The tables of the step of properties, which makes the triggers of contacts again. */
export const AUDITED_CONTACTS: readonly Audited[] = [
  PROPERTIES,
  ...contactsWith({ properties: LONG_PROPERTIES }),
];

const TOPICS: Audited = {
  table: "topics",
  noun: "topic",
  name: "name",
  ...BY_PROJECT,
  named: [{ verb: "delete", when: "OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL" }],
  marks: ["deleted_at"],
  goes: "OLD.deleted_at IS NOT NULL",
  fields: {
    name: "name",
    description: ["description", "long"],
    default_subscribed: ["defaultSubscribed", "flag"],
    visible: ["visible", "flag"],
  },
};

/** The tables of the step of topics, which makes the triggers of contacts again. */
export const AUDITED_TOPICS: readonly Audited[] = [
  TOPICS,
  ...contactsWith({ properties: LONG_PROPERTIES, topics: LONG_TOPICS }),
];

/** The table of the step of segments. */
export const AUDITED_SEGMENTS: readonly Audited[] = [
  {
    table: "segments",
    noun: "segment",
    name: "name",
    ...BY_PROJECT,
    fields: { name: "name", filter: ["filter", "json"] },
  },
];

/** The tables of all steps of the audience, as the last of them watches them. */
export const AUDITED_AUDIENCE: readonly Audited[] = [PROPERTIES, ...AUDITED_TOPICS, ...AUDITED_SEGMENTS];
