import { AppError, invalid, type Issue, validationError, existing } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { isBlank, MAX_BODY_PART_BYTES } from "../../core/messages/send-rules.ts";
import { refusalOf, RenderingFailure, type TemplateSource } from "../../core/templates/render.ts";
import { slugOf } from "../../core/text.ts";
import { ConstraintError, type Db, type Statement } from "../../store/engine/client.ts";
import type { ChangeLimit } from "../../store/projects/holdings.ts";
import {
  findTemplate,
  freeSlug,
  insertTemplate,
  MAX_SLUG_CHARS,
  replaceTemplate,
  type SavedTemplate,
} from "../../store/projects/templates.ts";
import type { Renderer } from "../mime/rendering-tasks.ts";

/** Dependencies of saving templates. */
export interface TemplateDeps {
  db: Db;
  renderer: Renderer;
}

/**
 * Maximum number of tries of a write. It is repeated if another write came between its read and its write.
 */
const MAX_TRIES = 50;

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

/**
 * Awaits reading or rendering a template. If it fails, throws a 422, because the client made the template.
 * @param param the field of the request that holds it; default: the part that fails
 */
export async function refusing<Result>(rendering: Promise<Result>, param?: string): Promise<Result> {
  try {
    return await rendering;
  } catch (error) {
    throw error instanceof RenderingFailure ? refusalOf(error, param) : error;
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

/** A template as the client names it. */
export interface NewTemplate {
  name: string;
  subject: string;
  html?: string | null;
  text?: string | null;
  /** Made from the name if left out. */
  slug?: string;
}

/**
 * Saves a template under the given slug, or under the first free one made from its name.
 * @param record returns statements for the same write
 * @throws AppError 409 `duplicate`; 422 if a part is too large or does not parse
 */
export async function createTemplate(
  { db, renderer }: TemplateDeps,
  senderId: string,
  wanted: NewTemplate,
  now: number,
  record: (template: SavedTemplate) => readonly Statement[],
): Promise<SavedTemplate> {
  const { subject, html = null, text = null } = wanted;
  const source = checkedSource({ subject, html, text });
  const variables = await refusing(renderer.variables(senderId, source));
  refuseBlank(source);
  const rest = { senderId, name: wanted.name.toWellFormed(), ...source, variables };
  for (let tries = 1; ; tries++) {
    const slug = wanted.slug ?? (await freeSlug(db, senderId, derivedSlug(wanted.name)));
    if (slug === null) throw duplicate(derivedSlug(wanted.name));
    const template = { id: newId("tpl", now), slug, ...rest, createdAt: now, updatedAt: now };
    try {
      await db.write([insertTemplate(template), ...record(template)]);
      return template;
    } catch (error) {
      if (!isSlugTaken(error)) throw error;
      // The slug was made from the name and was free a moment ago, so the next one is tried.
      if (wanted.slug !== undefined || tries === MAX_TRIES) throw duplicate(slug);
    }
  }
}

/** Changes of a template. Fields that are left out stay as they are. */
export type TemplateChanges = Partial<NewTemplate>;

/** Returns the template with the changes, and with its variables read again. */
async function changed(
  renderer: Renderer,
  before: SavedTemplate,
  changes: TemplateChanges,
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
  changes: TemplateChanges,
  { now, growing }: { now: number; growing: ChangeLimit },
): Promise<SavedTemplate> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const before = existing("template", await findTemplate(db, senderId, idOrSlug));
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
  return existing("template", await findTemplate(db, senderId, idOrSlug));
}
