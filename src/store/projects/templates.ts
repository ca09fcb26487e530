import { idCeiling, isId } from "../../core/ids.ts";
import { changesRow, type Db, type Statement } from "../engine/client.ts";
import { json, plain, table } from "../engine/columns.ts";
import type { Place } from "../engine/place.ts";
import { NO_LIMIT, changeResult, type ChangeLimit } from "./holdings.ts";

/** Longest slug, characters. */
export const MAX_SLUG_CHARS = 64;
/** Highest number that is appended to a slug that is taken. */
export const MAX_SLUG_NUMBER = 1000;

/** A saved template. Times in milliseconds. */
export interface SavedTemplate {
  id: string;
  senderId: string;
  slug: string;
  name: string;
  subject: string;
  html: string | null;
  text: string | null;
  /** Full paths of the variables, in order of first use. */
  variables: string[];
  createdAt: number;
  updatedAt: number;
}

const TEMPLATES = table<SavedTemplate>("templates", {
  id: plain("id"),
  senderId: plain("sender_id"),
  slug: plain("slug"),
  name: plain("name"),
  subject: plain("subject"),
  html: plain("html"),
  text: plain("text"),
  variables: json("variables"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

/**
 * Returns the statement that saves a template. If the slug is taken, it breaks UNIQUE on `templates.sender_id,
 * templates.slug`.
 */
export function insertTemplate(template: SavedTemplate): Statement {
  return TEMPLATES.insert(template);
}

/** Returns the column to search for a name. An id has an underscore, and a slug has none. */
function nameColumn(idOrSlug: string): "id" | "slug" {
  return isId("tpl", idOrSlug) ? "id" : "slug";
}

/** Returns the project's template with that id or slug; null if there is none. */
export function findTemplate(db: Db, senderId: string, idOrSlug: string): Promise<SavedTemplate | null> {
  return TEMPLATES.first(db, `WHERE sender_id = ? AND ${nameColumn(idOrSlug)} = ?`, [senderId, idOrSlug]);
}

/**
 * Returns the beginning of subject and text of the first of the project's templates with those slugs; null if there is none.
 * @param chars maximum characters of each
 */
export async function beginningOf(
  db: Db,
  senderId: string,
  slugs: readonly string[],
  chars: number,
): Promise<{ subject: string; text: string } | null> {
  return db.first(
    `SELECT substr(COALESCE(subject, ''), 1, ?3) AS subject, substr(COALESCE(text, ''), 1, ?3) AS text
      FROM json_each(?2) slugs JOIN templates t ON t.sender_id = ?1 AND t.slug = slugs.value ORDER BY slugs.key LIMIT 1`,
    [senderId, JSON.stringify(slugs), chars],
  );
}

/**
 * Returns the variables of the project's template with that id or slug; null if there is none. Its parts, which may
 * have megabytes, are not read.
 */
export async function variablesOfTemplate(
  db: Db,
  senderId: string,
  idOrSlug: string,
): Promise<string[] | null> {
  const sql = `SELECT variables FROM templates WHERE sender_id = ? AND ${nameColumn(idOrSlug)} = ?`;
  const row = await db.first<{ variables: string }>(sql, [senderId, idOrSlug]);
  return row === null ? null : (JSON.parse(row.variables) as string[]);
}

/**
 * Octets of html and text in one page, unless one template alone has more. A hundred templates of 4 MiB must not
 * become one response.
 */
export const MAX_PAGE_OCTETS = 2 * 1024 * 1024;

export interface TemplatesFound {
  templates: SavedTemplate[];
  /** If the page is short and the list is not at its end: the last template's id. */
  stoppedAt: string | null;
}

/**
 * Returns the project's templates, newest first, with ids below `after`: at most `take`, and at most a page's octets.
 */
export async function listTemplates(
  db: Db,
  senderId: string,
  after: string | null,
  take: number,
): Promise<TemplatesFound> {
  const start = after ?? idCeiling("tpl");
  // SQLite reads sizes from a row's header, without the values.
  const sizes = await db.all<{ id: string; octets: number }>(
    `SELECT id, COALESCE(octet_length(html), 0) + COALESCE(octet_length(text), 0) AS octets
      FROM templates WHERE sender_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
    [senderId, start, take],
  );
  if (sizes.length === 0) return { templates: [], stoppedAt: null };
  const fitting = fittingPage(sizes.map(({ octets }) => octets));
  const page = "WHERE sender_id = ? AND id < ? ORDER BY id DESC LIMIT ?";
  const templates = await TEMPLATES.all(db, page, [senderId, start, fitting]);
  return { templates, stoppedAt: fitting < sizes.length ? (templates.at(-1)?.id ?? null) : null };
}

/** A template without its source. */
export type NamedTemplate = Pick<SavedTemplate, "id" | "slug" | "name" | "createdAt" | "updatedAt">;

const NAMED = table<NamedTemplate>("templates", {
  id: plain("id"),
  slug: plain("slug"),
  name: plain("name"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

/** Returns at most `take` of the project's templates without their sources, newest first, at a place. */
export function listTemplateNames(
  db: Db,
  senderId: string,
  place: Place,
  take: number,
): Promise<NamedTemplate[]> {
  const owner = { where: "sender_id = ?", args: [senderId] };
  return NAMED.page(db, { ...owner, place, ceiling: idCeiling("tpl"), take });
}

/** Returns how many of the first templates fit into a page: at least one. */
function fittingPage(octets: readonly number[]): number {
  let room = MAX_PAGE_OCTETS;
  const over = octets.findIndex((size, place) => {
    room -= size;
    return room < 0 && place > 0;
  });
  return over === -1 ? octets.length : over;
}

/**
 * Replaces a template if its content is still as it was read, because its variables were computed from all parts
 * together. Returns false if it was changed or deleted since. If the slug is taken, it breaks UNIQUE.
 */
export async function replaceTemplate(
  db: Db,
  before: SavedTemplate,
  after: SavedTemplate,
  growing: ChangeLimit = NO_LIMIT,
): Promise<boolean> {
  const written = await db.write(
    growing({
      sql: `UPDATE templates SET slug = ?, name = ?, subject = ?, html = ?, text = ?, variables = ?, updated_at = ?
        WHERE sender_id = ? AND id = ?
          AND slug = ? AND name = ? AND subject = ? AND html IS ? AND text IS ?`,
      args: [
        after.slug,
        after.name,
        after.subject,
        after.html,
        after.text,
        JSON.stringify(after.variables),
        after.updatedAt,
        before.senderId,
        before.id,
        before.slug,
        before.name,
        before.subject,
        before.html,
        before.text,
      ],
    }),
  );
  return changeResult(written)?.changes === 1;
}

/** Deletes the project's template with that id or slug. Returns false if there is none. */
export function deleteTemplate(db: Db, senderId: string, idOrSlug: string): Promise<boolean> {
  const sql = `DELETE FROM templates WHERE sender_id = ? AND ${nameColumn(idOrSlug)} = ?`;
  return changesRow(db, sql, [senderId, idOrSlug]);
}

/**
 * Returns `base`, or `base` with the first of -2, -3 … that the project does not have; null if all up to
 * `MAX_SLUG_NUMBER` are taken.
 */
export async function freeSlug(db: Db, senderId: string, base: string): Promise<string | null> {
  const candidates = [base];
  for (let number = 2; number <= MAX_SLUG_NUMBER; number++) candidates.push(numbered(base, number));
  const row = await db.first<{ slug: string }>(
    `SELECT value AS slug FROM json_each(?)
      WHERE NOT EXISTS (SELECT 1 FROM templates WHERE sender_id = ? AND templates.slug = value)
      ORDER BY key LIMIT 1`,
    [JSON.stringify(candidates), senderId],
  );
  return row?.slug ?? null;
}

function numbered(base: string, number: number): string {
  const tail = `-${number}`;
  return `${base.slice(0, MAX_SLUG_CHARS - tail.length).replace(/-+$/, "")}${tail}`;
}
