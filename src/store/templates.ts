import { idCeiling, isId } from "../core/ids.ts";
import type { Db, Statement } from "./engine/client.ts";

/** Longest slug, characters. */
export const MAX_SLUG_CHARS = 64;
/** Highest number put behind a slug that is taken. */
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

interface Row {
  id: string;
  sender_id: string;
  slug: string;
  name: string;
  subject: string;
  html: string | null;
  text: string | null;
  variables: string;
  created_at: number;
  updated_at: number;
}

const COLUMNS = "id, sender_id, slug, name, subject, html, text, variables, created_at, updated_at";

function templateOf(row: Row): SavedTemplate {
  const variables: string[] = JSON.parse(row.variables);
  return {
    id: row.id,
    senderId: row.sender_id,
    slug: row.slug,
    name: row.name,
    subject: row.subject,
    html: row.html,
    text: row.text,
    variables,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** The statement that saves a template. A taken slug breaks UNIQUE on `templates.sender_id, templates.slug`. */
export function insertTemplate(template: SavedTemplate): Statement {
  return {
    sql: `INSERT INTO templates (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
      template.id,
      template.senderId,
      template.slug,
      template.name,
      template.subject,
      template.html,
      template.text,
      JSON.stringify(template.variables),
      template.createdAt,
      template.updatedAt,
    ],
  };
}

/** A slug has no underscore and an id has one, so a name is either. */
function nameColumn(idOrSlug: string): "id" | "slug" {
  return isId("tpl", idOrSlug) ? "id" : "slug";
}

/** The project's template of that id or slug; null where there is none. */
export async function findTemplate(
  db: Db,
  senderId: string,
  idOrSlug: string,
): Promise<SavedTemplate | null> {
  const row = await db.first<Row>(
    `SELECT ${COLUMNS} FROM templates WHERE sender_id = ? AND ${nameColumn(idOrSlug)} = ?`,
    [senderId, idOrSlug],
  );
  return row === null ? null : templateOf(row);
}

/** Whether the project has a template of that id or slug: its parts may be of megabytes, and are not read. */
export async function hasTemplate(db: Db, senderId: string, idOrSlug: string): Promise<boolean> {
  const sql = `SELECT 1 FROM templates WHERE sender_id = ? AND ${nameColumn(idOrSlug)} = ?`;
  return (await db.first(sql, [senderId, idOrSlug])) !== null;
}

/** Octets of html and text in one page, unless one template alone has more: a hundred of 4 MiB must not become one answer. */
export const MAX_PAGE_OCTETS = 2 * 1024 * 1024;

/** What a page of templates holds. */
export interface TemplatesFound {
  templates: SavedTemplate[];
  /** Where fewer than asked for are not all there are: the last one's id. */
  stoppedAt: string | null;
}

/** The project's templates, newest first, after the id `after`, at most `take`, and as many as a page has room for. */
export async function listTemplates(
  db: Db,
  senderId: string,
  after: string | null,
  take: number,
): Promise<TemplatesFound> {
  const start = after ?? idCeiling("tpl");
  // Sizes stand in a row's header: nothing of the parts themselves is read.
  const sizes = await db.all<{ id: string; octets: number }>(
    `SELECT id, COALESCE(octet_length(html), 0) + COALESCE(octet_length(text), 0) AS octets
      FROM templates WHERE sender_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
    [senderId, start, take],
  );
  if (sizes.length === 0) return { templates: [], stoppedAt: null };
  const fitting = fittingPage(sizes.map(({ octets }) => octets));
  const rows = await db.all<Row>(
    `SELECT ${COLUMNS} FROM templates WHERE sender_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
    [senderId, start, fitting],
  );
  const stoppedAt = fitting < sizes.length ? (rows.at(-1)?.id ?? null) : null;
  return { templates: rows.map(templateOf), stoppedAt };
}

/** How many of the first templates a page has room for: one at least. */
function fittingPage(octets: readonly number[]): number {
  let room = MAX_PAGE_OCTETS;
  const over = octets.findIndex((size, place) => {
    room -= size;
    return room < 0 && place > 0;
  });
  return over === -1 ? octets.length : over;
}

/**
 * Puts `after` in the place of `before`, if its content is still what was read: its variables were worked out from all
 * parts together. Returns false where it changed or went meanwhile; a taken slug breaks UNIQUE.
 */
export async function replaceTemplate(db: Db, before: SavedTemplate, after: SavedTemplate): Promise<boolean> {
  const [written] = await db.write([
    {
      sql: `UPDATE templates SET slug = ?, name = ?, subject = ?, html = ?, text = ?, variables = ?, updated_at = ?
        WHERE sender_id = ? AND id = ?
          AND slug = ? AND name = ? AND subject = ? AND html IS ? AND text IS ?`,
      args: [
        ...[after.slug, after.name, after.subject, after.html, after.text],
        ...[JSON.stringify(after.variables), after.updatedAt, before.senderId, before.id],
        ...[before.slug, before.name, before.subject, before.html, before.text],
      ],
    },
  ]);
  return written?.changes === 1;
}

/** Deletes the project's template of that id or slug. Returns false where there is none. */
export async function deleteTemplate(db: Db, senderId: string, idOrSlug: string): Promise<boolean> {
  const [written] = await db.write([
    {
      sql: `DELETE FROM templates WHERE sender_id = ? AND ${nameColumn(idOrSlug)} = ?`,
      args: [senderId, idOrSlug],
    },
  ]);
  return written?.changes === 1;
}

/** `base`, or with the first of -2, -3 … that the project has not; null where all to `MAX_SLUG_NUMBER` are taken. */
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
