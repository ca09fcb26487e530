import { type Static, Type } from "@sinclair/typebox";
import { AppError, type Issue, invalid, notFound, validationError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { MAX_SUBJECT_CHARS } from "../../core/messages/send-item.ts";
import { isBlank, MAX_BODY_PART_BYTES } from "../../core/messages/send-rules.ts";
import { RenderingFailure, refusalOf, type TemplateSource } from "../../core/templates/render.ts";
import type { Renderer } from "../../flows/mime/rendering-tasks.ts";
import { ConstraintError, type Db } from "../../store/engine/client.ts";
import {
  findTemplate,
  freeSlug,
  insertTemplate,
  MAX_SLUG_CHARS,
  replaceTemplate,
  type SavedTemplate,
} from "../../store/projects/templates.ts";
import { type Answer, created } from "../routing/answer.ts";
import type { ProjectContext } from "../routing/route.ts";
import { MAX_NAME_CHARS, Nullable, ONE_LINE, showTime, Timestamp, WITHOUT_NUL } from "../routing/schemas.ts";
import { slugOf } from "../../core/text.ts";

/** Dependencies of saving templates. */
export interface TemplateDeps {
  db: Db;
  renderer: Renderer;
}

/** Tries of a write. It is repeated if another write came between its read and its write. */
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
  ...ONE_LINE,
  examples: ["Order confirmation"],
});

const Slug = Type.String({
  pattern: `^[a-z0-9-]{1,${MAX_SLUG_CHARS}}$`,
  expected: `1 to ${MAX_SLUG_CHARS} lower-case letters, digits and hyphens`,
  examples: ["order-confirmation"],
  description: "The template's name in paths and sends. If absent, it is derived from `name`.",
});

/** The subject of a template or draft. */
export const TemplateSubject = Type.String({
  maxLength: MAX_SUBJECT_CHARS,
  ...WITHOUT_NUL,
  description: "May contain placeholders such as `{{ user.name }}`.",
  examples: ["Hello {{ name }}"],
});

/** Html or text of a template or draft. */
export const TemplateBody = Type.String({
  ...WITHOUT_NUL,
  description: "May contain placeholders such as `{{ user.name }}`, and `{% if %}` and `{% for %}`.",
  examples: ["Hello {{ name }}"],
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

/** Returns a template as the API shows it. */
export function showTemplate(template: SavedTemplate): Static<typeof TemplateSchema> {
  const { id, slug, name, subject, html, text, variables, createdAt, updatedAt } = template;
  return {
    ...{ id, slug, name, subject, html, text, variables },
    createdAt: showTime(createdAt),
    updatedAt: showTime(updatedAt),
  };
}

/**
 * Checks the limits of a source. Throws 422 if a part is too large. Replaces halves of surrogate pairs, as the
 * database would.
 */
export function checkedSource({ subject, html, text }: TemplateSource): TemplateSource {
  const issues: Issue[] = [];
  for (const [param, part] of [
    ["html", html],
    ["text", text],
  ] as const)
    if (part !== null && Buffer.byteLength(part) > MAX_BODY_PART_BYTES)
      issues.push({ param, message: `must have at most ${MAX_BODY_PART_BYTES} bytes.` });
  if (issues.length > 0) throw validationError(issues);
  return {
    subject: subject.toWellFormed(),
    html: html?.toWellFormed() ?? null,
    text: text?.toWellFormed() ?? null,
  };
}

/** Throws 422 if the messages of a template would show nothing. */
function refuseBlank({ html, text }: TemplateSource): void {
  if (isBlank(html) && isBlank(text))
    throw invalid(
      "html",
      "is required, unless text is given. At least one of them must not be blank.",
      "missing_field",
    );
}

/** Awaits reading or rendering a template. If it fails, throws a 422, because the client made the template. */
export async function refusing<Result>(rendering: Promise<Result>): Promise<Result> {
  try {
    return await rendering;
  } catch (error) {
    throw error instanceof RenderingFailure ? refusalOf(error) : error;
  }
}

/** Returns a slug made from a name. If the name has no Latin letters or digits, the slug is a general one. */
function derivedSlug(name: string): string {
  return slugOf(name, MAX_SLUG_CHARS) || "template";
}

function duplicate(slug: string): AppError {
  return new AppError("conflict", `A template with the slug ${slug} already exists.`, {
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
 * Saves a template under the given slug, or under the first free one made from its name.
 * @throws AppError 409 `duplicate`; 422 if a part is too large or does not parse
 */
export async function createTemplate(
  { db, renderer }: TemplateDeps,
  { senderId, body, now, record }: Creation,
): Promise<Answer> {
  const source = checkedSource({ subject: body.subject, html: body.html ?? null, text: body.text ?? null });
  const variables = await refusing(renderer.variables(senderId, source));
  refuseBlank(source);
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
      // The slug was made from the name and was free a moment ago, so the next one is tried.
      if (body.slug !== undefined || tries === MAX_TRIES) throw duplicate(slug);
    }
  }
}

type Changes = Static<typeof UpdateTemplate>;

/** Returns the template with the changes, and with its variables read again. */
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
  refuseBlank(source);
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
 * Updates the fields in `changes`.
 * @throws AppError 404; 409 `duplicate`; 422 if a part is too large or does not parse
 */
export async function updateTemplate(
  { db, renderer }: TemplateDeps,
  senderId: string,
  idOrSlug: string,
  changes: Changes,
  { now, growing }: Pick<ProjectContext<"/v1/templates/:id", never, never>, "now" | "growing">,
): Promise<SavedTemplate> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const before = await findTemplate(db, senderId, idOrSlug);
    if (before === null) throw notFound("template");
    const after = await changed(renderer, before, changes, now);
    try {
      if (await replaceTemplate(db, before, after, growing)) return after;
    } catch (error) {
      throw isSlugTaken(error) ? duplicate(after.slug) : error;
    }
  }
  throw new AppError("conflict", "Other requests are changing this template. Try again.", {
    code: "invalid_state",
  });
}

/** Returns the project's template with that id or slug. Throws 404 if there is none. */
export async function existingTemplate(db: Db, senderId: string, idOrSlug: string): Promise<SavedTemplate> {
  const template = await findTemplate(db, senderId, idOrSlug);
  if (template === null) throw notFound("template");
  return template;
}
