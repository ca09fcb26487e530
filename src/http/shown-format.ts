/**
 * The keyword by which a schema names a text's format for the reference alone. Under its own name, `format`, the checker would
 * hold texts to it, and our rules are not quite a format's: a time needs no seconds.
 */
const SHOWN_FORMAT = "shownFormat";

/** To be spread into the options of a schema. */
export const DATE_TIME = { [SHOWN_FORMAT]: "date-time" };
/** As above. */
export const URI = { [SHOWN_FORMAT]: "uri" };

/**
 * A document of schemas as its readers know them: formats under their own name, and a choice between texts as one `enum`, of which
 * generators of clients make one type. Of `anyOf` they make a type for each of its texts.
 */
export function asShown<Part>(part: Part): Part {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map(asShown) as Part;
  const entries = Object.entries(part).flatMap(([key, value]): [string, unknown][] => {
    if (key === SHOWN_FORMAT && typeof value === "string") return [["format", value]];
    const texts = key === "anyOf" ? textsOf(value) : null;
    if (texts !== null)
      return [
        ["type", "string"],
        ["enum", texts],
      ];
    return [[key, asShown(value)]];
  });
  return Object.fromEntries(entries) as Part;
}

/** The texts that a union is a choice between; null where it is another. */
function textsOf(variants: unknown): string[] | null {
  if (!Array.isArray(variants)) return null;
  const texts = variants.map((variant: { const?: unknown }) => variant.const);
  return texts.every((text) => typeof text === "string") ? texts : null;
}
