import { normalizeAddress } from "../../core/addresses.ts";
import type { PropertyShape } from "../../core/audience/properties.ts";
import type { ImportKind } from "../../store/imports/imports.ts";
import { fileFault } from "./faults.ts";

// Someone who leaves another service would miss it: each writes its lists under its own headings. One list of names for all
// columns was tried first, but `reason` is a kind of suppression here and the answer of a server at SendGrid.

/** The meanings that a column can have, by kind of import. The first name of each is that of the API. */
const COLUMNS = {
  contacts: {
    email: ["email", "emailaddress", "address"],
    firstName: ["firstname", "givenname"],
    lastName: ["lastname", "surname", "familyname"],
    subscribed: ["subscribed"],
    unsubscribed: ["unsubscribed"],
    metadata: ["metadata"],
    properties: ["properties"],
    topics: ["topics"],
    unsubscribedAt: ["unsubscribedat"],
    lastSentAt: ["lastsentat"],
    lastOpenedAt: ["lastopenedat"],
    lastClickedAt: ["lastclickedat"],
    createdAt: ["createdat", "created"],
    updatedAt: ["updatedat"],
  },
  suppressions: {
    email: ["email", "emailaddress", "address"],
    reason: ["reason", "suppressionreason"],
    bounceType: ["bouncetype"],
    note: ["note", "error"],
    expiresAt: ["expiresat"],
    createdAt: ["createdat", "created", "lastupdatetime"],
  },
} as const satisfies Readonly<Record<ImportKind, Readonly<Record<string, readonly string[]>>>>;

/** A field that a column can hold. */
export type Field = keyof (typeof COLUMNS)["contacts"] | keyof (typeof COLUMNS)["suppressions"];
/** A field, or a property of contacts: `properties.plan`. */
export type ColumnField = Field | `properties.${string}`;

/** Files that are recognized. */
export const FORMS = ["postrider", "resend", "sendgrid", "mailgun", "postmark", "ses", "other"] as const;
type FormName = (typeof FORMS)[number];

interface Form {
  name: FormName;
  kind: ImportKind;
  /** Headings that it must have, in the form of `plainName`. */
  has: readonly string[];
  /** It has no other headings. */
  only?: true;
  /** Values of every row. */
  gives?: Readonly<Partial<Record<Field, string>>>;
  /** Columns that mean something else than their name says. */
  means?: Readonly<Record<string, Field>>;
}

/** The recognized files. The first that fits counts. */
const TABLE: readonly Form[] = [
  { name: "postrider", kind: "contacts", has: ["email", "subscribed"] },
  { name: "resend", kind: "contacts", has: ["email", "unsubscribed"] },
  { name: "sendgrid", kind: "contacts", has: ["email", "firstname", "lastname", "contactid"] },
  {
    name: "mailgun",
    kind: "contacts",
    has: ["address", "tags", "createdat"],
    only: true,
    gives: { subscribed: "false" },
  },
  { name: "postrider", kind: "suppressions", has: ["email", "reason", "bouncetype"] },
  { name: "postmark", kind: "suppressions", has: ["emailaddress", "suppressionreason"] },
  { name: "ses", kind: "suppressions", has: ["emailaddress", "reason", "lastupdatetime"] },
  {
    name: "mailgun",
    kind: "suppressions",
    has: ["address", "code", "error"],
    gives: { reason: "bounce" },
  },
  {
    name: "mailgun",
    kind: "suppressions",
    has: ["address", "tags", "createdat"],
    only: true,
    gives: { reason: "manual", note: "unsubscribed at Mailgun" },
  },
  {
    name: "mailgun",
    kind: "suppressions",
    has: ["address", "createdat"],
    only: true,
    gives: { reason: "complaint" },
  },
  {
    name: "sendgrid",
    kind: "suppressions",
    has: ["email", "reason", "created"],
    gives: { reason: "bounce" },
    means: { reason: "note" },
  },
  {
    name: "sendgrid",
    kind: "suppressions",
    has: ["email", "created", "ip"],
    only: true,
    gives: { reason: "complaint" },
  },
  { name: "sendgrid", kind: "suppressions", has: ["email", "created"], only: true },
];
/** Headings that only a list of contacts has. To suppress everyone in it would be a mistake. */
const OF_CONTACTS: readonly string[] = [
  ...COLUMNS.contacts.subscribed,
  ...COLUMNS.contacts.unsubscribed,
  ...COLUMNS.contacts.firstName,
  ...COLUMNS.contacts.lastName,
];

/** How the rows of a file are read. */
export interface Recognized {
  form: FormName;
  /** The headings of the file, or the names in its first object. */
  names: readonly string[];
  gives: Readonly<Partial<Record<Field, string>>>;
  /** The properties that columns may have. */
  shapes: readonly PropertyShape[];
  /** Returns the field of each column. Null: it is left out. */
  fieldsOf(names: readonly string[]): readonly (ColumnField | null)[];
}

/** Returns a heading in lower case, with letters and digits alone: `First_Name` is `firstname`. */
function plainName(name: string): string {
  return name
    .replace(/^\ufeff/, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "");
}

/**
 * Returns how to read a file with these headings. Throws 422 if it has no addresses, or is of another kind.
 * @param shapes the properties of the project's contacts. Columns named `plan` or `properties.plan` hold the property `plan`.
 */
export function recognize(
  kind: ImportKind,
  names: readonly string[],
  shapes: readonly PropertyShape[],
): Recognized {
  const plain = names.map(plainName);
  const fits = ({ has, only }: Form) =>
    has.every((name) => plain.includes(name)) && (only !== true || plain.length === has.length);
  const form = TABLE.find((one) => one.kind === kind && fits(one));
  if (form === undefined) refuseOther(kind, plain, fits);
  const properties = new Map(
    shapes.flatMap(({ name }) => {
      const field: ColumnField = `properties.${name}`;
      return [name, field].map((heading) => [plainName(heading), field] as const);
    }),
  );
  const fieldsOf = (some: readonly string[]) => {
    const fields = some
      .map(plainName)
      .map((name) => form?.means?.[name] ?? fieldNamed(kind, name) ?? properties.get(name) ?? null);
    return fields.map((field, at) => (fields.indexOf(field) === at ? field : null));
  };
  if (!fieldsOf(names).includes("email")) throw fileFault(NO_ADDRESSES);
  return { form: form?.name ?? "other", names, gives: form?.gives ?? {}, shapes, fieldsOf };
}

const NO_ADDRESSES = 'No column has the addresses. Name one "email", in the first row.';

function fieldNamed(kind: ImportKind, name: string): Field | null {
  const columns: Readonly<Record<string, readonly string[]>> = COLUMNS[kind];
  return (Object.keys(columns).find((field) => columns[field]?.includes(name)) as Field) ?? null;
}

function refuseOther(kind: ImportKind, plain: readonly string[], fits: (form: Form) => boolean): void {
  if (kind === "contacts" && TABLE.some((one) => one.kind === "suppressions" && fits(one)))
    throw fileFault("This is a list of suppressions. Send it with POST /v1/suppressions/import.");
  if (kind === "suppressions" && plain.some((name) => OF_CONTACTS.includes(name)))
    throw fileFault("This is a list of contacts. Send it with POST /v1/contacts/import.");
}

/** Returns the names of the columns of a file without a heading: one address per row, or SES's `address,REASON`. */
export function namesWithoutHeading(first: readonly string[]): readonly string[] | null {
  const at = first.findIndex((cell) => normalizeAddress(cell.trim()) !== null);
  if (at < 0) return null;
  if (first.length === 1) return ["email"];
  if (first.length === 2 && at === 0 && /^(?:bounce|complaint)$/i.test(first[1]?.trim() ?? ""))
    return ["EmailAddress", "Reason", "LastUpdateTime"];
  throw fileFault("The first row has an address. Put the names of the columns there.");
}
