/**
 * The keyword by which a schema names a text's format for the reference alone. Under its own name, `format`, the checker would
 * hold texts to it, and our rules are not quite a format's: a time needs no seconds.
 */
const SHOWN_FORMAT = "shownFormat";

/** To be spread into the options of a schema. */
export const DATE_TIME = { [SHOWN_FORMAT]: "date-time" };
/** As above. */
export const URI = { [SHOWN_FORMAT]: "uri" };

/** A document of schemas in which formats have the name that its readers know. */
export function withFormats<Part>(part: Part): Part {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map(withFormats) as Part;
  const entries = Object.entries(part).map(([key, value]) =>
    key === SHOWN_FORMAT && typeof value === "string" ? ["format", value] : [key, withFormats(value)],
  );
  return Object.fromEntries(entries);
}
