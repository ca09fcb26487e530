import { isId } from "../ids.ts";
import type { PropertyValue } from "./properties.ts";

/** Statuses of a broadcast. `sending` lasts until each of its messages was tried once. */
export const BROADCAST_STATUSES = ["draft", "scheduled", "sending", "paused", "sent", "canceled"] as const;
export type BroadcastStatus = (typeof BROADCAST_STATUSES)[number];

/** Maximum number of broadcasts in a project. */
export const MAX_BROADCASTS = 5000;
/** Largest `ratePerHour`, messages. */
export const MAX_RATE_PER_HOUR = 100_000_000;

/** Returns whether a message is of a broadcast, which it then names as its template. */
export function isOfBroadcast(templateId: string | null): templateId is string {
  return templateId !== null && isId("bro", templateId);
}

/** The fields of a contact that a message can show. */
export interface MergedContact {
  email: string;
  firstName: string | null;
  lastName: string | null;
  properties: Readonly<Record<string, PropertyValue>>;
}

/** The name of the variable that holds the contact. */
const CONTACT = "contact";
const FIELDS = ["email", "firstName", "lastName"] as const;

/** The fields of a contact that a content uses. */
export interface UsedFields {
  fields: readonly (typeof FIELDS)[number][];
  /** Names of properties; null: all. */
  properties: readonly string[] | null;
}

/** Returns the fields of a contact that are among the variables of a content, which are full paths. */
export function usedFields(variables: readonly string[]): UsedFields {
  const isUsed = (path: string) =>
    variables.some((variable) => variable === path || variable.startsWith(`${path}.`));
  const properties = variables.flatMap(
    (variable) => /^contact\.properties\.([A-Za-z0-9_]+)/.exec(variable)?.[1] ?? [],
  );
  // The contact or its properties as a whole, or a field whose name is only known when it is rendered.
  const isDynamic = variables.some((variable) => /^contact(?:\.properties)?(?:\[|$)/.test(variable));
  return {
    fields: FIELDS.filter((field) => isDynamic || isUsed(`${CONTACT}.${field}`)),
    properties: isDynamic ? null : properties,
  };
}

/**
 * Returns the data of one contact's message: what the content uses, and no more, because it is stored with each message.
 * @param fallbacks values of the properties that a contact lacks
 */
export function mergeData(
  { fields, properties: names }: UsedFields,
  contact: MergedContact,
  fallbacks: Readonly<Record<string, PropertyValue>>,
): Record<string, unknown> | null {
  const values = { ...fallbacks, ...contact.properties };
  const shown = names === null ? values : picked(values, names);
  const own = Object.fromEntries(
    fields.flatMap((field) => (contact[field] === null ? [] : [[field, contact[field]]])),
  );
  if (fields.length === 0 && names?.length === 0) return null;
  return { [CONTACT]: { ...own, ...(Object.keys(shown).length === 0 ? {} : { properties: shown }) } };
}

function picked(
  values: Readonly<Record<string, PropertyValue>>,
  names: readonly string[],
): Record<string, PropertyValue> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = Object.hasOwn(values, name) ? values[name] : undefined;
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** The fields of a contact that always have a value. */
const PRESENT = "email";

/**
 * Returns the used fields of a contact, without `contact.`, that leave a gap where a contact lacks them. Those with a `default` filter or in
 * an `if` do not. When in doubt, a field is among them.
 * @param source the parts of the content together
 * @param filled names of properties that have a fallback
 */
export function unguardedPaths(
  source: string,
  variables: readonly string[],
  filled: readonly string[],
): string[] {
  const outputs = [...source.matchAll(/\{\{([^{}]*)\}\}/g)].map(([, code = ""]) => code);
  const conditions = [...source.matchAll(/\{%-?\s*(?:els)?(?:if|unless|case)\b([^%]*)%\}/g)].map(
    ([, code = ""]) => code,
  );
  const { fields, properties } = usedFields(variables);
  const paths = [...fields, ...(properties ?? []).map((name) => `properties.${name}`)];
  const names = (code: string, path: string) =>
    new RegExp(`\\bcontact\\.${path.replace(".", "\\.")}\\b`).test(code);
  return paths.filter(
    (path) =>
      path !== PRESENT &&
      !filled.some((name) => path === `properties.${name}`) &&
      !conditions.some((code) => names(code, path)) &&
      outputs.some((code) => names(code, path) && !/\|\s*default\b/.test(code)),
  );
}
