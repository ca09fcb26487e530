const REFERENCE = "#/components/schemas/";

/**
 * Takes schemas that have a `title` out of a part of the document, each once, so that it refers to them by name: generators of
 * clients make one type of each, with that name, where they would make another at every place.
 * @returns the part with references in their place, and the schemas by title
 * @throws Error where two different schemas have one title
 */
export function withNamedSchemas<Part>(part: Part): { part: Part; schemas: Record<string, unknown> } {
  const schemas = new Map<string, unknown>();
  const texts = new Map<string, string>();
  function walk(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(walk);
    const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, walk(inner)]));
    const { title, type } = copy;
    // A field may be called title itself: then that is a schema, and no text.
    if (typeof title !== "string" || type !== "object") return copy;
    const text = JSON.stringify(copy);
    if ((texts.get(title) ?? text) !== text) throw new Error(`two schemas are called ${title}`);
    texts.set(title, text);
    schemas.set(title, copy);
    return { $ref: `${REFERENCE}${title}` };
  }
  return { part: walk(part) as Part, schemas: Object.fromEntries(schemas) };
}
