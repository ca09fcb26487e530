import { type Static, Type } from "@sinclair/typebox";
import { notFound } from "../../core/errors.ts";
import { MAX_SUBJECT_CHARS } from "../../core/messages/send-item.ts";
import {
  checkedSource,
  createTemplate,
  existingTemplate,
  refusing,
  type TemplateDeps,
  updateTemplate,
} from "../../flows/projects/templates.ts";
import {
  deleteTemplate,
  listTemplates,
  MAX_SLUG_CHARS,
  type SavedTemplate,
} from "../../store/projects/templates.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import {
  MAX_NAME_CHARS,
  Nullable,
  ONE_LINE,
  PAGE_QUERY,
  PageOf,
  showTime,
  Timestamp,
  WITHOUT_NUL,
} from "../routing/schemas.ts";

/** A template as the API shows it. */
const TemplateSchema = Type.Object(
  {
    id: Type.String(),
    slug: Type.String(),
    name: Type.String(),
    subject: Type.String(),
    html: Nullable(Type.String()),
    text: Nullable(Type.String()),
    variables: Type.Array(Type.String(), { description: "Full paths, in order of first use." }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Template" },
);

const Name = Type.String({
  minLength: 1,
  maxLength: MAX_NAME_CHARS,
  ...ONE_LINE,
  examples: ["Order confirmation"],
});

const Slug = Type.String({
  pattern: `^[a-z0-9-]{1,${MAX_SLUG_CHARS}}$`,
  expected: `1 to ${MAX_SLUG_CHARS} lower-case letters, digits and hyphens`,
  examples: ["order-confirmation"],
  description: "The template's name in paths and sends. If absent, it is derived from `name`.",
});

const TemplateSubject = Type.String({
  maxLength: MAX_SUBJECT_CHARS,
  ...WITHOUT_NUL,
  description: "May contain placeholders such as `{{ user.name }}`.",
  examples: ["Hello {{ name }}"],
});

/** Html or text of a template or draft. */
const TemplateBody = Type.String({
  ...WITHOUT_NUL,
  description: "May contain placeholders such as `{{ user.name }}`, and `{% if %}` and `{% for %}`.",
  examples: ["Hello {{ name }}"],
});

/** Body of POST /v1/templates. */
const CreateTemplate = Type.Object({
  name: Name,
  slug: Type.Optional(Slug),
  subject: TemplateSubject,
  html: Type.Optional(Nullable(TemplateBody)),
  text: Type.Optional(Nullable(TemplateBody)),
});

/** Body of PATCH /v1/templates/{id}. */
const UpdateTemplate = Type.Partial(CreateTemplate);

function showTemplate(template: SavedTemplate): Static<typeof TemplateSchema> {
  const { id, slug, name, subject, html, text, variables, createdAt, updatedAt } = template;
  return {
    id,
    slug,
    name,
    subject,
    html,
    text,
    variables,
    createdAt: showTime(createdAt),
    updatedAt: showTime(updatedAt),
  };
}

const RenderedSchema = Type.Object(
  {
    subject: Type.String(),
    html: Nullable(Type.String()),
    text: Nullable(Type.String()),
    missing: Type.Array(Type.String(), {
      description: "Variables that `data` lacks. They render as empty strings.",
    }),
  },
  { title: "RenderedTemplate" },
);

const Data = Type.Record(Type.String(), Type.Unknown(), {
  description:
    "Values for the placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.",
  examples: [{ name: "Ana" }],
});

const RenderTemplate = Type.Object({ data: Type.Optional(Data) });
const PreviewTemplate = Type.Object({
  subject: Type.Optional(TemplateSubject),
  html: Type.Optional(Nullable(TemplateBody)),
  text: Type.Optional(Nullable(TemplateBody)),
  data: Type.Optional(Data),
});

/** Largest body with a template, bytes: html and text of 2 MiB each, with JSON escapes. */
export const MAX_TEMPLATE_BODY_BYTES = 5 * 1024 * 1024;

/** Returns the routes of `/v1/templates`. */
export function templateRoutes(deps: TemplateDeps): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), renderRoute(deps), previewRoute(deps)];
}

function collectionRoutes(deps: TemplateDeps): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "POST",
      path: "/v1/templates",
      operationId: "createTemplate",
      stores: { adds: ["templates"] },
      summary: "Create a template",
      description:
        "Placeholders are written `{{ user.name }}` (Liquid). A template needs `html` or `text`. A syntax error is 422.",
      scope: "templates:write",
      examples: {
        body: { name: "Order confirmation", subject: "Hello {{ name }}", html: "<p>Hello {{ name }}</p>" },
      },
      body: CreateTemplate,
      bodyLimit: MAX_TEMPLATE_BODY_BYTES,
      answers: { 201: TemplateSchema },
      async handle({ senderId, body, now, record }) {
        const answer = (template: SavedTemplate) => created(showTemplate(template));
        const recorded = (template: SavedTemplate) => record(answer(template));
        return answer(await createTemplate(deps, senderId, body, now, recorded));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/templates",
      operationId: "listTemplates",
      summary: "List templates, newest first",
      description: "With their sources and the names of their placeholders.",
      scope: "templates:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(TemplateSchema) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        const { templates, stoppedAt } = await listTemplates(db, senderId, after, take);
        return ok(answer(templates, showTemplate, ({ id }) => id, stoppedAt));
      },
    }),
  ];
}

function itemRoutes(deps: TemplateDeps): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "GET",
      path: "/v1/templates/:id",
      operationId: "getTemplate",
      summary: "Get a template by id or slug",
      description: "With its source and the names of its placeholders.",
      scope: "templates:read",
      answers: { 200: TemplateSchema },
      async handle({ senderId, params }) {
        return ok(showTemplate(await existingTemplate(db, senderId, params.id)));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/templates/:id",
      operationId: "updateTemplate",
      shows: "templates:read",
      stores: { limitedBy: "handler" },
      summary: "Update a template",
      description:
        "Fields that are absent stay as they are. Messages that are already accepted keep what was rendered for them.",
      scope: "templates:write",
      examples: { body: { subject: "Your order, {{ name }}" } },
      body: UpdateTemplate,
      bodyLimit: MAX_TEMPLATE_BODY_BYTES,
      answers: { 200: TemplateSchema },
      errors: ["conflict"],
      async handle({ senderId, params, body, now, growing }) {
        const moment = { now, growing };
        return ok(showTemplate(await updateTemplate(deps, senderId, params.id, body, moment)));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/templates/:id",
      operationId: "deleteTemplate",
      summary: "Delete a template",
      description: "Messages that were accepted with it and not rendered yet end as `rendering_failure`.",
      scope: "templates:write",
      answers: { 204: null },
      async handle({ senderId, params }) {
        if (!(await deleteTemplate(db, senderId, params.id))) throw notFound("template");
        return noContent();
      },
    }),
  ];
}

function renderRoute({ db, renderer }: TemplateDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/templates/:id/render",
    operationId: "renderTemplate",
    costly: "content",
    summary: "Render a saved template without sending it",
    description: "Sends and stores nothing. `missing` lists the placeholders for which `data` has no value.",
    scope: "templates:read",
    body: RenderTemplate,
    bodyLimit: MAX_TEMPLATE_BODY_BYTES,
    bodyOptional: true,
    readsOnly: true,
    answers: { 200: RenderedSchema },
    async handle({ senderId, params, body }) {
      const template = await existingTemplate(db, senderId, params.id);
      const { subject, html, text } = template;
      return ok(await refusing(renderer.template(senderId, { subject, html, text }, body.data ?? {})));
    },
  });
}

function previewRoute({ renderer }: TemplateDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/templates/preview",
    operationId: "previewTemplate",
    costly: "content",
    summary: "Render a draft without saving it",
    description: "Sends and stores nothing. A syntax error is 422.",
    scope: "templates:read",
    examples: {
      body: { subject: "Hello {{ name }}", html: "<p>Hello {{ name }}</p>", data: { name: "Ana" } },
    },
    body: PreviewTemplate,
    readsOnly: true,
    bodyLimit: MAX_TEMPLATE_BODY_BYTES,
    answers: { 200: RenderedSchema },
    async handle({ senderId, body }) {
      const source = checkedSource({
        subject: body.subject ?? "",
        html: body.html ?? null,
        text: body.text ?? null,
      });
      return ok(await refusing(renderer.template(senderId, source, body.data ?? {})));
    },
  });
}
