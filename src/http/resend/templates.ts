import { type Static, Type } from "@sinclair/typebox";
import { MAX_SUBJECT_CHARS } from "../../core/messages/send-item.ts";
import type { Db } from "../../store/engine/client.ts";
import { listTemplateNames, type NamedTemplate } from "../../store/projects/templates.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import { Given, Id, Part, ShortText } from "./form/given.ts";
import {
  callOperation,
  copyName,
  listRoute,
  type OperationRequest,
  type Operations,
  refuseFields,
  renamed,
  translated,
  withoutNulls,
} from "./form/translate.ts";
import { MAX_BODY_PART_BYTES } from "../../core/messages/send-rules.ts";
import { invalid } from "../../core/errors.ts";

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

const NAMES = { name: "name", alias: "slug" } as const;
const PARTS = ["subject", "html", "text"] as const;
const UNSUPPORTED = {
  from: "Give it with each send.",
  reply_to: "Give it with each send.",
};
/** Maximum number of variables in one template. */
const MAX_VARIABLES = 50;
/** Maximum characters of a fallback, which is repeated at each placeholder of its variable. */
const MAX_FALLBACK_CHARS = 2000;

export const TemplateFields = Type.Object({
  name: Given(ShortText),
  alias: Given(Id),
  subject: Given(Type.String({ maxLength: MAX_SUBJECT_CHARS })),
  html: Given(Part),
  text: Given(Part),
  variables: Given(
    Type.Array(
      Type.Object({
        key: Id,
        type: Given(OneOf(["string", "number"])),
        fallback_value: Given(
          Type.Union([Type.String({ maxLength: MAX_FALLBACK_CHARS }), Type.Number()], {
            expected: `a string of at most ${MAX_FALLBACK_CHARS} characters or a number`,
          }),
        ),
      }),
      { maxItems: MAX_VARIABLES },
    ),
  ),
});
export type TemplateFields = Static<typeof TemplateFields>;

/** Returns the routes of `/resend/templates`. A template is published as soon as it is saved. */
export function templateRoutes(operations: Operations, db: Db): Route[] {
  const path = "/templates/:id";
  const done = ({ id }: Template) => ({ object: "template", id });
  return [
    translated(operations, {
      method: "POST",
      path: "/templates",
      operation: "createTemplate",
      summary: "Create a template",
      body: TemplateFields,
      ask: ({ body }) => ({ body: { subject: "", ...templateFields(body) } }),
      answer: done,
    }),
    listRoute(operations, {
      path: "/templates",
      operation: "listTemplates",
      summary: "List templates",
      read: ({ senderId }, place, take) => listTemplateNames(db, senderId, place, take),
      show: (templates) => templates.map(showName),
    }),
    translated(operations, {
      method: "GET",
      path,
      operation: "getTemplate",
      summary: "Get a template",
      answer: showTemplate,
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateTemplate",
      summary: "Update a template",
      body: TemplateFields,
      ask: ({ params, body }) => ({ params, body: templateFields(body) }),
      answer: done,
    }),
    translated(operations, {
      method: "DELETE",
      path,
      operation: "deleteTemplate",
      summary: "Delete a template",
      answer: (_body, { params }) => ({ object: "template", id: params.id, deleted: true }),
    }),
    translated(operations, {
      method: "POST",
      path: `${path}/publish`,
      operation: "getTemplate",
      summary: "Publish a template, which is published already",
      answer: done,
    }),
    translated(operations, {
      method: "POST",
      path: `${path}/duplicate`,
      operation: "createTemplate",
      summary: "Copy a template",
      ask: (context) => copyOf(operations, context),
      answer: done,
    }),
  ];
}

async function copyOf(operations: Operations, context: CheckedRequest): Promise<OperationRequest> {
  const { body } = await callOperation(operations, "getTemplate", context, { params: { ...context.params } });
  const { name, subject, html, text } = body as Template;
  return { body: { name: copyName(name), subject, html, text } };
}

/** Returns the fields of a template under the names of `/v1`, with Liquid's placeholders. */
export function templateFields(body: TemplateFields): Record<string, unknown> {
  const fields = withoutNulls(body);
  refuseFields(body, UNSUPPORTED);
  const variables = new Map(
    (fields.variables ?? []).map(({ key, fallback_value: fallback }) => [key, fallback ?? null]),
  );
  const liquid = Object.fromEntries(
    PARTS.flatMap((part) => {
      const text = fields[part];
      return text === undefined ? [] : [[part, toLiquid(part, text, variables)]];
    }),
  );
  return { ...renamed(fields, NAMES), ...liquid };
}

function showName({ id, name, slug, createdAt, updatedAt }: NamedTemplate): Record<string, unknown> {
  const updated = showTime(updatedAt);
  return {
    id,
    name,
    alias: slug,
    status: "published",
    created_at: showTime(createdAt),
    updated_at: updated,
    published_at: updated,
  };
}

/** Returns a template as Resend shows it. */
export function showTemplate(template: Template): Record<string, unknown> {
  const { id, slug, name, subject, html, text, variables, createdAt, updatedAt } = template;
  const fallbacks = new Map<string, string | number>();
  return {
    object: "template",
    id,
    current_version_id: id,
    alias: slug,
    name,
    subject: fromLiquid(subject, fallbacks),
    html: fromLiquid(html ?? "", fallbacks),
    text: text === null ? null : fromLiquid(text, fallbacks),
    from: null,
    reply_to: null,
    status: "published",
    has_unpublished_versions: false,
    created_at: createdAt,
    updated_at: updatedAt,
    published_at: updatedAt,
    variables: declared(variables, fallbacks).map(({ key, type, fallback }) => ({
      key,
      type,
      fallback_value: fallback,
      created_at: createdAt,
      updated_at: updatedAt,
    })),
  };
}

/** The value of a variable that a send does not give. */
type Fallback = string | number | null;

/** A variable of a Resend template, as the client declares it. */
interface TemplateVariable {
  key: string;
  type: "string" | "number";
  fallback: Fallback;
}

/** A placeholder of Resend's: `{{{NAME}}}`. Names are letters, digits and `_`. */
const THEIRS = /\{\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}\}/g;
/** The placeholder that `toLiquid` makes. Its fallback has a limit, because the engine keeps a state for each character. */
const OURS =
  /\{\{ ([A-Za-z_][A-Za-z0-9_]{0,63})(?: \| default: ("(?:[^"\\]|\\.){0,10000}"|-?\d+(?:\.\d+)?))? \| raw \}\}/g;

/**
 * Converts Resend's placeholders to Liquid's. Resend does not escape values, so `raw` leaves them as they are. A
 * fallback becomes the `default` of each placeholder.
 * @throws AppError 422 as soon as the fallbacks make it too long
 */
function toLiquid(param: string, text: string, fallbacks: ReadonlyMap<string, Fallback>): string {
  const defaults = new Map(
    [...fallbacks].map(([key, fallback]) => [
      key,
      fallback === null ? "" : ` | default: ${JSON.stringify(fallback)}`,
    ]),
  );
  // Without fallbacks it can only double, which the limit of the template finds.
  if (defaults.size === 0) return text.replace(THEIRS, "{{ $1 | raw }}");
  let chars = text.length;
  return text.replace(THEIRS, (theirs, key: string) => {
    const ours = `{{ ${key}${defaults.get(key) ?? ""} | raw }}`;
    chars += ours.length - theirs.length;
    if (chars > MAX_BODY_PART_BYTES)
      throw invalid(
        param,
        `must have at most ${MAX_BODY_PART_BYTES} bytes with a fallback at each placeholder.`,
      );
    return ours;
  });
}

/**
 * Converts Liquid's placeholders to Resend's.
 * @param fallbacks gets those of the placeholders
 */
function fromLiquid(text: string, fallbacks: Map<string, string | number>): string {
  return text.replace(OURS, (_all, key: string, given?: string) => {
    if (given !== undefined) fallbacks.set(key, JSON.parse(given));
    return `{{{${key}}}}`;
  });
}

/** Returns a template's variables as its client declared them. */
function declared(
  names: readonly string[],
  fallbacks: ReadonlyMap<string, string | number>,
): TemplateVariable[] {
  return names.map((key) => {
    const fallback = fallbacks.get(key) ?? null;
    return { key, type: typeof fallback === "number" ? "number" : "string", fallback };
  });
}
