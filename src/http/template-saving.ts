import { type Static, Type } from "@sinclair/typebox";
import { AppError, type Issue, notFound, validationError } from "../core/errors.ts";
import { newId } from "../core/ids.ts";
import { MAX_SUBJECT_CHARS } from "../core/send-item.ts";
import { MAX_BODY_PART_BYTES } from "../core/send-rules.ts";
import { RenderingFailure, refusalOf, type TemplateSource } from "../core/templates.ts";
import type { Renderer } from "../flows/renderings.ts";
import { ConstraintError, type Db } from "../store/engine/client.ts";
import {
  findTemplate,
  freeSlug,
  insertTemplate,
  MAX_SLUG_CHARS,
  replaceTemplate,
  type SavedTemplate,
} from "../store/templates.ts";
import { type Answer, created } from "./answer.ts";
import type { ProjectContext } from "./route.ts";
import { MAX_NAME_CHARS, Nullable, ONE_LINE, showTime, Timestamp, WITHOUT_NUL } from "./schemas.ts";
import { slugOf } from "./slug.ts";

/** What templates are saved with. */
export interface TemplateDeps {
  db: Db;
  renderer: Renderer;
}

/** How often a write is tried again because another one came between its read and itself. */
const MAX_TRIES = 50;

/** A template as the API shows it. */
export const TemplateSchema = Type.Object(
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
  pattern: ONE_LINE,
});

const Slug = Type.String({
  pattern: `^[a-z0-9-]{1,${MAX_SLUG_CHARS}}$`,
  description: "The template's name in paths and sends; derived from `name` when absent.",
});

/** A subject line of a template or a draft. */
export const TemplateSubject = Type.String({
  maxLength: MAX_SUBJECT_CHARS,
  pattern: WITHOUT_NUL,
  description: "May hold placeholders: `{{ user.name }}`.",
});

/** Html or text of a template or a draft. */
export const TemplateBody = Type.String({
  pattern: WITHOUT_NUL,
  description: "May hold placeholders, `{% if %}`, `{% for %}`.",
});

/** Body of POST /v1/templates. */
export const CreateTemplate = Type.Object({
  name: Name,
  slug: Type.Optional(Slug),
  subject: TemplateSubject,
  html: Type.Optional(Nullable(TemplateBody)),
  text: Type.Optional(Nullable(TemplateBody)),
});

/** Body of PATCH /v1/templates/{id}. */
export const UpdateTemplate = Type.Partial(CreateTemplate);

/** A template as the API shows it. */
export function showTemplate(template: SavedTemplate): Static<typeof TemplateSchema> {
  const { id, slug, name, subject, html, text, variables, createdAt, updatedAt } = template;
  return {
    ...{ id, slug, name, subject, html, text, variables },
    createdAt: showTime(createdAt),
    updatedAt: showTime(updatedAt),
  };
}

/**
 * The source within its limits. Half of a surrogate pair is no Unicode text: it is replaced, since the database would
 * do so on its own. Throws 422 for a part that is too large.
 */
export function checkedSource({ subject, html, text }: TemplateSource): TemplateSource {
  const issues: Issue[] = [];
  for (const [param, part] of [
    ["html", html],
    ["text", text],
  ] as const)
    if (part !== null && Buffer.byteLength(part) > MAX_BODY_PART_BYTES)
      issues.push({ param, message: `At most ${MAX_BODY_PART_BYTES} bytes.` });
  if (issues.length > 0) throw validationError(issues);
  return {
    subject: subject.toWellFormed(),
    html: html?.toWellFormed() ?? null,
    text: text?.toWellFormed() ?? null,
  };
}

/** Awaits what reads or renders a template; its failure is the caller's fault: 422. */
export async function refusing<Result>(rendering: Promise<Result>): Promise<Result> {
  try {
    return await rendering;
  } catch (error) {
    throw error instanceof RenderingFailure ? refusalOf(error) : error;
  }
}

/** A name as a slug; one without Latin letters or digits is a template like any other. */
function derivedSlug(name: string): string {
  return slugOf(name, MAX_SLUG_CHARS) || "template";
}

function duplicate(slug: string): AppError {
  return new AppError("conflict", `There is a template with the slug ${slug} already.`, {
    code: "duplicate",
    param: "slug",
  });
}

function isSlugTaken(error: unknown): boolean {
  return error instanceof ConstraintError && error.unique?.startsWith("templates.") === true;
}

type Creation = Pick<
  ProjectContext<"/v1/templates", never, typeof CreateTemplate>,
  "senderId" | "body" | "now" | "record"
>;

/**
 * Saves a template under the slug given, or the first free one that its name yields.
 * @throws AppError 409 `duplicate`, 422 for a part that is too large or cannot be read
 */
export async function createTemplate(
  { db, renderer }: TemplateDeps,
  { senderId, body, now, record }: Creation,
): Promise<Answer> {
  const source = checkedSource({ subject: body.subject, html: body.html ?? null, text: body.text ?? null });
  const variables = await refusing(renderer.variables(senderId, source));
  const rest = { senderId, name: body.name.toWellFormed(), ...source, variables };
  for (let tries = 1; ; tries++) {
    const slug = body.slug ?? (await freeSlug(db, senderId, derivedSlug(body.name)));
    if (slug === null) throw duplicate(derivedSlug(body.name));
    const template = { id: newId("tpl", now), slug, ...rest, createdAt: now, updatedAt: now };
    const answer = created(showTemplate(template));
    try {
      await db.write([insertTemplate(template), ...record(answer)]);
      return answer;
    } catch (error) {
      if (!isSlugTaken(error)) throw error;
      // A derived slug was free a moment ago: the next one is.
      if (body.slug !== undefined || tries === MAX_TRIES) throw duplicate(slug);
    }
  }
}

type Changes = Static<typeof UpdateTemplate>;

/** The template with the changes in it, its variables worked out anew. */
async function changed(
  renderer: Renderer,
  before: SavedTemplate,
  changes: Changes,
  now: number,
): Promise<SavedTemplate> {
  const source = checkedSource({
    subject: changes.subject ?? before.subject,
    html: changes.html === undefined ? before.html : changes.html,
    text: changes.text === undefined ? before.text : changes.text,
  });
  return {
    ...before,
    ...source,
    slug: changes.slug ?? before.slug,
    name: changes.name?.toWellFormed() ?? before.name,
    variables: await refusing(renderer.variables(before.senderId, source)),
    updatedAt: now,
  };
}

/**
 * Sets what `changes` names and leaves the rest.
 * @throws AppError 404, 409 `duplicate`, 422 for a part that is too large or cannot be read
 */
export async function updateTemplate(
  { db, renderer }: TemplateDeps,
  senderId: string,
  idOrSlug: string,
  changes: Changes,
  now: number,
): Promise<SavedTemplate> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const before = await findTemplate(db, senderId, idOrSlug);
    if (before === null) throw notFound("template");
    const after = await changed(renderer, before, changes, now);
    try {
      if (await replaceTemplate(db, before, after)) return after;
    } catch (error) {
      throw isSlugTaken(error) ? duplicate(after.slug) : error;
    }
  }
  throw new AppError("conflict", "This template is being changed by others.", { code: "invalid_state" });
}

/** The project's template of that id or slug. Throws 404 where there is none. */
export async function existingTemplate(db: Db, senderId: string, idOrSlug: string): Promise<SavedTemplate> {
  const template = await findTemplate(db, senderId, idOrSlug);
  if (template === null) throw notFound("template");
  return template;
}
