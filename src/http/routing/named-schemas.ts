const REFERENCE = "#/components/schemas/";
const DISCRIMINATOR = { propertyName: "type" };

/**
 * Moves schemas with a `title` out of a part of the document, so that it refers to them by name. Generators of
 * clients then make one type with that name, instead of one type per use.
 * @returns the part with references, and the schemas by title
 * @throws Error if two different schemas have the same title
 */
export function withNamedSchemas<Part>(part: Part): { part: Part; schemas: Record<string, unknown> } {
  const schemas = new Map<string, unknown>();
  const texts = new Map<string, string>();
  function walk(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(walk);
    const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, walk(inner)]));
    const { title } = copy;
    // A field may itself be called title. Then the value is a schema, not a string.
    if (typeof title !== "string" || !isNamed(copy)) return copy;
    if ("discriminator" in copy) copy.discriminator = { ...DISCRIMINATOR, mapping: mappingOf(value, copy) };
    const text = JSON.stringify(copy);
    if ((texts.get(title) ?? text) !== text) throw new Error(`two schemas are called ${title}`);
    texts.set(title, text);
    schemas.set(title, copy);
    return { $ref: `${REFERENCE}${title}` };
  }
  return { part: walk(part) as Part, schemas: Object.fromEntries(schemas) };
}

/** Option of a union of objects. Each has another text in its field `type`. */
export const BY_TYPE = { discriminator: DISCRIMINATOR };

function isNamed(schema: Record<string, unknown>): boolean {
  return schema.type === "object" || "discriminator" in schema;
}

/** Returns the variant's reference for each value of the field that tells the variants apart. */
function mappingOf(union: object, shown: Record<string, unknown>): Record<string, string> {
  const variants = (union as { anyOf: { properties: { type: { const: string } } }[] }).anyOf;
  const references = shown.anyOf as { $ref: string }[];
  return Object.fromEntries(
    variants.map(({ properties }, index) => [properties.type.const, references[index]?.$ref ?? ""]),
  );
}
