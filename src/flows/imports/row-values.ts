import { normalizeAddress } from "../../core/addresses.ts";
import type { PropertyType } from "../../core/audience/properties.ts";
import { AppError, invalid } from "../../core/errors.ts";
import { parseTime } from "../../core/time/date-times.ts";
import { SECOND_MS } from "../../core/time/units.ts";
import type { ImportKind } from "../../store/imports/imports.ts";
import type { WaitingRow } from "../../store/imports/parts.ts";
import { type NewSuppression, SUPPRESSION_REASONS } from "../../store/projects/suppressions.ts";
import type { NewContact } from "../projects/contacts.ts";
import { fieldsOf as suppressionFields } from "../projects/suppressions.ts";
import type { RawRow } from "./csv-rows.ts";
import type { ColumnField, Field, Recognized } from "./forms.ts";

/** Maximum number of characters of a note, and of a cell without an address that is shown with its fault. */
const MAX_NOTE_CHARS = 1000;
const MAX_SHOWN_CHARS = 254;

/** Times of a contact that a file of ours has. */
const TIMES = [
  "createdAt",
  "updatedAt",
  "unsubscribedAt",
  "lastSentAt",
  "lastOpenedAt",
  "lastClickedAt",
] as const;
/** Those times, milliseconds. */
export type Since = Partial<Record<(typeof TIMES)[number], number>>;
/** A contact of a file. `says`: the file says that the person is subscribed, which subscribes a contact again. */
export interface ContactValues {
  item: NewContact;
  since: Since;
}
/** A suppression of a file. */
export type SuppressionValues = Pick<NewSuppression, "reason" | "bounceType" | "expiresAt" | "createdAt"> & {
  note: string | null;
};

/** How rows become values. */
export interface ReadingRows {
  kind: ImportKind;
  file: Recognized;
  now: number;
  /** The reason of suppressions whose file has none. */
  reason: NewSuppression["reason"] | undefined;
  /** Checks a contact as the API does. Returns the error that refuses it; null: it is fine. */
  checkContact: (item: NewContact) => AppError | null;
}

/** Returns a row with its values, or with the reason why it fails. */
export function rowValues(reading: ReadingRows, raw: RawRow): WaitingRow {
  const cells = cellsOf(reading.file, raw);
  const email = textOf(cells.email).trim();
  const fails = (error: string): WaitingRow => [raw.row, email.slice(0, MAX_SHOWN_CHARS), null, error];
  if (raw.error !== undefined) return fails(raw.error);
  try {
    const values = reading.kind === "contacts" ? contactOf(reading, cells) : suppressionOf(reading, cells);
    return [raw.row, normalizeAddress(email) ?? email, values, null];
  } catch (error) {
    if (error instanceof AppError) return fails(error.message);
    throw error;
  }
}

type Cells = Partial<Record<ColumnField, unknown>>;

/** Returns the values by field. Empty cells are left out, so they change nothing. */
function cellsOf({ form, gives, fieldsOf }: Recognized, { names, values }: RawRow): Cells {
  const cells: Cells = { ...gives };
  fieldsOf(names).forEach((field, at) => {
    const value = values[at];
    if (field === null || value === undefined || value === "") return;
    cells[field] = form === "postrider" && typeof value === "string" ? withoutApostrophe(value) : value;
  });
  return cells;
}

/** Returns a cell as it was before its apostrophe kept programs from running it as a formula. */
function withoutApostrophe(cell: string): string {
  return FORMULA.test(cell) ? cell.slice(1) : cell;
}
const FORMULA = /^'+[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

function textOf(value: unknown): string {
  return typeof value === "string"
    ? value
    : value === undefined || value === null
      ? ""
      : JSON.stringify(value);
}

function contactOf({ file, checkContact }: ReadingRows, cells: Cells): ContactValues {
  const { firstName, lastName } = cells;
  const item = {
    email: textOf(cells.email).trim(),
    ...(firstName === undefined ? {} : { firstName }),
    ...(lastName === undefined ? {} : { lastName }),
    ...objectsOf(file, cells),
    ...subscriptionOf(file, cells),
  } as NewContact;
  const refusal = checkContact(item);
  if (refusal !== null) throw refusal;
  return { item, since: file.form === "postrider" ? sinceOf(cells) : {} };
}

/** Returns what a row says about the subscription. Only our own files can say that someone is subscribed. */
function subscriptionOf({ form }: Recognized, cells: Cells): { subscribed?: boolean } {
  const subscribed = flagOf("subscribed", cells.subscribed);
  const left = flagOf("unsubscribed", cells.unsubscribed);
  if (left === true || subscribed === false) return { subscribed: false };
  return subscribed === true && form === "postrider" ? { subscribed } : {};
}

function finite(number: number): number | null {
  return Number.isFinite(number) ? number : null;
}

function flagOf(field: Field, value: unknown): boolean | undefined {
  if (value === undefined || value === null || typeof value === "boolean") return value ?? undefined;
  const flag = truthOf(textOf(value).trim());
  if (flag === null) throw invalid(field, 'must be "true" or "false".');
  return flag;
}

function truthOf(text: string): boolean | null {
  if (/^(?:true|1|yes)$/i.test(text)) return true;
  return /^(?:false|0|no)$/i.test(text) ? false : null;
}

/** Returns the fields that are objects, which a table has as JSON. */
function objectsOf({ shapes }: Recognized, cells: Cells): Partial<Record<Field, Record<string, unknown>>> {
  const given = (["metadata", "properties", "topics"] as const).filter((field) => cells[field] !== undefined);
  const objects = Object.fromEntries(given.map((field) => [field, objectOf(field, cells[field])]));
  const values = shapes.flatMap(({ name, type }) => {
    const cell = cells[`properties.${name}`];
    return cell === undefined ? [] : [[name, typedCell(type, cell)]];
  });
  if (values.length > 0) objects.properties = { ...objects.properties, ...Object.fromEntries(values) };
  return objects;
}

/** Returns the cell of a property as a value of its type. One that is none stays as it is, and the row fails. */
function typedCell(type: PropertyType, cell: unknown): unknown {
  if (typeof cell !== "string") return type === "string" && typeof cell === "number" ? String(cell) : cell;
  const text = cell.trim();
  if (type === "number")
    return /^[-+]?[\d.]+(?:e[-+]?\d+)?$/i.test(text) ? (finite(Number(text)) ?? cell) : cell;
  if (type === "boolean") return truthOf(text) ?? cell;
  return type === "date" ? text : cell;
}

function objectOf(field: Field, value: unknown): Record<string, unknown> {
  try {
    const object: unknown = typeof value === "string" ? JSON.parse(value) : value;
    if (typeof object === "object" && object !== null && !Array.isArray(object))
      return object as Record<string, unknown>;
  } catch {
    // Below.
  }
  throw invalid(field, "must be a JSON object.");
}

function sinceOf(cells: Cells): Since {
  const times = TIMES.map((field) => [field, timeOf(cells[field])]);
  return Object.fromEntries(times.filter(([, at]) => at !== null));
}

/** Returns a time in milliseconds; null if it is not known. Providers write ISO 8601, SQL's form in UTC, or seconds. */
function timeOf(value: unknown): number | null {
  const text = textOf(value).trim();
  if (/^\d{9,11}$/.test(text)) return Number(text) * SECOND_MS;
  const iso = parseTime(text.replace(/^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$/, "$1T$2Z"));
  const at = iso ?? (/^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN);
  return Number.isNaN(at) ? null : at;
}

/** The names that other services have for the reasons. */
const REASONS: Readonly<Record<string, readonly [NewSuppression["reason"], NewSuppression["bounceType"]]>> = {
  bounce: ["bounce", "hard"],
  hardbounce: ["bounce", "hard"],
  complaint: ["complaint", null],
  spamcomplaint: ["complaint", null],
  manual: ["manual", null],
  manualsuppression: ["manual", null],
  unsubscribe: ["manual", null],
};

function suppressionOf({ now, reason: given }: ReadingRows, cells: Cells): SuppressionValues {
  const named = textOf(cells.reason).trim().toLowerCase();
  const found = REASONS[named === "" ? (given ?? "manual") : named];
  if (found === undefined) throw invalid("reason", `must be ${SUPPRESSION_REASONS.join(", ")}.`);
  const [reason, bounceType] = found;
  const soft = reason === "bounce" && textOf(cells.bounceType).trim().toLowerCase() === "soft";
  const expires = cells.expiresAt === undefined ? {} : { expiresAt: textOf(cells.expiresAt) };
  const [, expiresAt] = suppressionFields({ email: textOf(cells.email).trim(), ...expires }, now);
  const note = textOf(cells.note).replaceAll("\0", "").slice(0, MAX_NOTE_CHARS).toWellFormed();
  return {
    reason,
    bounceType: soft ? "soft" : bounceType,
    expiresAt,
    createdAt: Math.min(timeOf(cells.createdAt) ?? now, now),
    note: note === "" ? null : note,
  };
}
