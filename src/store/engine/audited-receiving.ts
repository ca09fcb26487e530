import { AUDITED, type Audited, type Kind } from "./audited-tables.ts";

const WILDCARD: [string, Kind] = ["wildcard", "flag"];

/** The table of the step of wildcards, which makes the triggers of domains again. */
export const AUDITED_WILDCARD: readonly Audited[] = AUDITED.filter(({ table }) => table === "domains").map(
  (domains) => ({ ...domains, fields: { ...domains.fields, wildcard: WILDCARD } }),
);
