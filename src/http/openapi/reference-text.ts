/** The parts of the OpenAPI document that the text shows. */
export interface Reference {
  paths: Record<string, Record<string, ShownOperation>>;
  components: { schemas: Record<string, ShownSchema> };
}

interface ShownSchema {
  $ref?: string;
  type?: string;
  description?: string;
  enum?: readonly string[];
  properties?: Record<string, ShownSchema>;
  required?: readonly string[];
  anyOf?: readonly ShownSchema[];
  items?: ShownSchema;
}

interface Content {
  schema: ShownSchema;
  example?: unknown;
}

interface ShownOperation {
  summary: string;
  description?: string;
  security: readonly { apiKey?: readonly string[] }[];
  parameters: readonly { name?: string; in?: string; required?: boolean; schema: ShownSchema }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { content?: Record<string, Content> }>;
}

/** Returns the operations that need a key, with method and path. */
export function shownOperations({ paths }: Reference): (ShownOperation & { method: string; path: string })[] {
  return Object.entries(paths)
    .filter(([path]) => path.startsWith("/v1/"))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        method: method.toUpperCase(),
        path,
      })),
    );
}

/** Returns the reference in Markdown: each operation with its parameters, the fields of its body, and examples. */
export function referenceText(reference: Reference): string {
  const operations = shownOperations(reference).map((operation) =>
    [
      `## ${operation.method} ${operation.path}\n`,
      `${operation.summary}. ${operation.description ?? ""}${scopeText(operation)}\n`,
      ...parametersText(reference, operation),
      ...bodyText(reference, operation),
      ...answersText(operation),
    ].join("\n"),
  );
  return ["# Reference\n", ...operations].join("\n");
}

function scopeText({ security }: ShownOperation): string {
  const scopes = security.flatMap(({ apiKey = [] }) => apiKey).map((scope) => `\`${scope}\``);
  return scopes.length === 0 ? "" : ` A key with scopes needs ${scopes.join(" and ")}.`;
}

function parametersText(reference: Reference, { parameters }: ShownOperation): string[] {
  const query = parameters.filter((parameter) => parameter.in === "query");
  const lines = query.map(({ name = "", required, schema }) =>
    fieldText(reference, name, schema, required === true),
  );
  return lines.length === 0 ? [] : ["Query:\n", ...lines, ""];
}

function bodyText(reference: Reference, { requestBody }: ShownOperation): string[] {
  const content = requestBody?.content["application/json"];
  if (content === undefined) return [];
  const { properties = {}, required = [] } = resolved(reference, content.schema);
  const lines = Object.entries(properties).map(([name, schema]) =>
    fieldText(reference, name, schema, required.includes(name)),
  );
  return ["Body:\n", ...lines, "", jsonText(content.example)];
}

function answersText({ responses }: ShownOperation): string[] {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([status, { content = {} }]) => {
      const [type, shown] = Object.entries(content)[0] ?? [];
      if (type === undefined) return [`Answer ${status}, without a body.\n`];
      if (type !== "application/json") return [`Answer ${status}: ${type}.\n`];
      return [`Answer ${status}:\n`, jsonText(shown?.example)];
    });
}

function jsonText(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`\n`;
}

function fieldText(reference: Reference, name: string, schema: ShownSchema, required: boolean): string {
  const { description = "" } = { ...resolved(reference, schema), ...schema };
  const words = [typeText(reference, schema), ...(required ? ["required"] : [])].join(", ");
  return `- \`${name}\` (${words})${description === "" ? "" : `: ${description}`}`;
}

function typeText(reference: Reference, schema: ShownSchema): string {
  const { type, anyOf, items, enum: texts } = resolved(reference, schema);
  if (texts !== undefined) return texts.map((text) => `"${text}"`).join(" | ");
  if (anyOf !== undefined) return [...new Set(anyOf.map((one) => typeText(reference, one)))].join(" or ");
  if (type === "array" && items !== undefined) return `list of ${typeText(reference, items)}`;
  return type ?? "any";
}

function resolved({ components }: Reference, schema: ShownSchema): ShownSchema {
  if (schema.$ref === undefined) return schema;
  return components.schemas[schema.$ref.replace(/^.*\//, "")] ?? {};
}
