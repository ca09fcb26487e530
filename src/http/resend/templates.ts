import { invalid } from "../../core/errors.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { fromLiquid, type TemplateVariable, toLiquid, variablesIn } from "./template-syntax.ts";
import {
  callOperation,
  fieldsOf,
  type OperationRequest,
  type Operations,
  refuseFields,
  renamed,
  translated,
  translatedList,
} from "./translate.ts";

interface Template {
  id: string;
  slug: string;
  name: string;
  subject: string;
  html: string | null;
  text: string | null;
  variables: string[];
  createdAt: string;
  updatedAt: string;
}

const NAMES = { name: "name", alias: "slug", subject: "subject", html: "html", text: "text" } as const;
const UNSUPPORTED = {
  from: "Give it with each send.",
  reply_to: "Give it with each send.",
};
/** Variables in one template. */
const MAX_VARIABLES = 50;
const COPY_SUFFIX = " (copy)";

/** Returns the routes of `/resend/templates`. A template is published as soon as it is saved. */
export function templateRoutes(operations: Operations): Route[] {
  const path = "/templates/:id";
  const done = ({ id }: Template) => ({ object: "template", id });
  return [
    translated<Template>(operations, {
      ...{ method: "POST", path: "/templates", operation: "createTemplate", summary: "Create a template" },
      ask: ({ body }) => ({ body: { subject: "", ...templateFields(body) } }),
      answer: done,
    }),
    translatedList<Template>(operations, {
      ...{ path: "/templates", operation: "listTemplates", summary: "List templates" },
      show: ({ id, name, slug, createdAt, updatedAt }) => ({
        ...{ id, name, alias: slug, status: "published" },
        ...{ created_at: createdAt, updated_at: updatedAt, published_at: updatedAt },
      }),
    }),
    translated<Template>(operations, {
      ...{ method: "GET", path, operation: "getTemplate", summary: "Get a template" },
      answer: showTemplate,
    }),
    translated<Template>(operations, {
      ...{ method: "PATCH", path, operation: "updateTemplate", summary: "Update a template" },
      ask: ({ params, body }) => ({ params, body: templateFields(body) }),
      answer: done,
    }),
    translated(operations, {
      ...{ method: "DELETE", path, operation: "deleteTemplate", summary: "Delete a template" },
      answer: (_body, { params }) => ({ object: "template", id: params.id, deleted: true }),
    }),
    translated<Template>(operations, {
      ...{ method: "POST", path: `${path}/publish`, operation: "getTemplate" },
      summary: "Publish a template, which is published already",
      answer: done,
    }),
    translated<Template>(operations, {
      ...{
        method: "POST",
        path: `${path}/duplicate`,
        operation: "createTemplate",
        summary: "Copy a template",
      },
      ask: (context) => copyOf(operations, context),
      answer: done,
    }),
  ];
}

async function copyOf(operations: Operations, context: CheckedRequest): Promise<OperationRequest> {
  const { body } = await callOperation(operations, "getTemplate", context, { params: { ...context.params } });
  const { name, subject, html, text } = body as Template;
  return { body: { name: `${name}${COPY_SUFFIX}`, subject, html, text } };
}

/** Returns the fields of a template under the names of `/v1`, with Liquid's placeholders. */
function templateFields(body: unknown): Record<string, unknown> {
  const given = fieldsOf(body);
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  refuseFields(fields, UNSUPPORTED);
  const variables = variablesOf(fields.variables);
  const liquid = (value: unknown) => (typeof value === "string" ? toLiquid(value, variables) : value);
  const named = renamed(fields, NAMES);
  return Object.fromEntries(
    Object.entries(named).map(([name, value]) => [name, TEXTS.has(name) ? liquid(value) : value]),
  );
}

const TEXTS: ReadonlySet<string> = new Set(["subject", "html", "text"]);

function variablesOf(variables: unknown): ReadonlyMap<string, TemplateVariable> {
  if (variables === undefined) return new Map();
  if (!Array.isArray(variables) || variables.length > MAX_VARIABLES)
    throw invalid("variables", `must be a list of at most ${MAX_VARIABLES} variables.`);
  return new Map(
    variables.map((variable, index) => {
      const {
        key,
        type = "string",
        fallback_value: fallback = null,
      } = fieldsOf(variable, `variables[${index}]`);
      if (typeof key !== "string") throw invalid(`variables[${index}].key`, "must be a text.");
      const isFallback = fallback === null || typeof fallback === "string" || Number.isFinite(fallback);
      if (!isFallback) throw invalid(`variables[${index}].fallback_value`, "must be a text or a number.");
      return [key, { key, type, fallback } as TemplateVariable];
    }),
  );
}

function showTemplate(template: Template): Record<string, unknown> {
  const { id, slug, name, subject, html, text, variables, createdAt, updatedAt } = template;
  return {
    ...{ object: "template", id, current_version_id: id, alias: slug, name },
    subject: fromLiquid(subject),
    html: fromLiquid(html ?? ""),
    text: text === null ? null : fromLiquid(text),
    ...{ from: null, reply_to: null, status: "published", has_unpublished_versions: false },
    ...{ created_at: createdAt, updated_at: updatedAt, published_at: updatedAt },
    variables: variablesIn([subject, html, text], variables).map(({ key, type, fallback }) => ({
      ...{ key, type, fallback_value: fallback, created_at: createdAt, updated_at: updatedAt },
    })),
  };
}
