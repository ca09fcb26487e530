import { idCeiling } from "../../core/ids.ts";
import {
  MAX_PROPERTIES,
  type PropertyShape,
  type PropertyType,
  type PropertyValue,
} from "../../core/audience/properties.ts";
import { type ConfigurationQuery, changesRow, type Db, type Statement } from "../engine/client.ts";
import { nullableJson, plain, table } from "../engine/columns.ts";
import { requireRoom } from "../engine/guards.ts";
import type { Place } from "../engine/place.ts";

/** A property that the contacts of a project may have. Times in milliseconds. */
export interface ContactProperty extends PropertyShape {
  id: string;
  senderId: string;
  type: PropertyType;
  /** The value that a template gets for a contact without one; null: none. */
  fallback: PropertyValue | null;
  createdAt: number;
  updatedAt: number;
}

const PROPERTIES = table<ContactProperty>("contact_properties", {
  id: plain("id"),
  senderId: plain("sender_id"),
  name: plain("name"),
  type: plain("type"),
  fallback: nullableJson("fallback"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

const KEPT = "deleted_at IS NULL";

const SHAPES: ConfigurationQuery<{ shapes: string }, readonly PropertyShape[]> = {
  sql: `SELECT json_group_array(json_object('name', name, 'type', type)) AS shapes
    FROM (SELECT name, type FROM contact_properties WHERE sender_id = ? AND ${KEPT} ORDER BY name LIMIT ${MAX_PROPERTIES})`,
  read: ({ shapes }) => JSON.parse(shapes),
};

/** Returns the properties that the project's contacts may have. They are cached until configuration changes. */
export async function propertyShapes(db: Db, senderId: string): Promise<readonly PropertyShape[]> {
  return (await db.readConfig(SHAPES, [senderId])) ?? [];
}

/** Returns the values that a contact without its own has, by the name of the property. */
export async function fallbacksOf(db: Db, senderId: string): Promise<Record<string, PropertyValue>> {
  const rows = await db.all<{ name: string; fallback: string }>(
    `SELECT name, fallback FROM contact_properties WHERE sender_id = ? AND fallback IS NOT NULL AND ${KEPT} LIMIT ${MAX_PROPERTIES}`,
    [senderId],
  );
  return Object.fromEntries(rows.map(({ name, fallback }) => [name, JSON.parse(fallback)]));
}

/** Returns a property of the project; null if it has none with that id. */
export function getProperty(db: Db, senderId: string, id: string): Promise<ContactProperty | null> {
  return PROPERTIES.first(db, `WHERE sender_id = ? AND id = ? AND ${KEPT}`, [senderId, id]);
}

/** Returns at most `take` of the project's properties, newest first, at a place. */
export function listProperties(
  db: Db,
  senderId: string,
  place: Place,
  take: number,
): Promise<ContactProperty[]> {
  const where = `sender_id = ? AND ${KEPT}`;
  return PROPERTIES.page(db, { where, args: [senderId], place, ceiling: idCeiling("prp"), take });
}

/**
 * Returns the statements that store a property. Its name is UNIQUE, and with too many properties the guard
 * `too_many_records` undoes the write.
 */
export function insertProperty(property: ContactProperty): Statement[] {
  return [
    requireRoom("contact_properties WHERE sender_id = ?", property.senderId, MAX_PROPERTIES),
    PROPERTIES.insert(property),
  ];
}

/** Changes the fallback. Returns the property afterwards; null if the project has none with that id. */
export function updateFallback(
  db: Db,
  senderId: string,
  id: string,
  fallback: PropertyValue | null,
  now: number,
): Promise<ContactProperty | null> {
  const text = fallback === null ? null : JSON.stringify(fallback);
  const set = `SET fallback = ?, updated_at = ? WHERE sender_id = ? AND id = ? AND ${KEPT}`;
  return PROPERTIES.update(db, set, [text, now, senderId, id]);
}

/** Marks a property as deleted. Returns false if the project has none with that id. */
export function markProperty(db: Db, senderId: string, id: string, now: number): Promise<boolean> {
  const sql = `UPDATE contact_properties SET deleted_at = ? WHERE sender_id = ? AND id = ? AND ${KEPT}`;
  return changesRow(db, sql, [now, senderId, id]);
}
