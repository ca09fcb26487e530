import type { Mailbox } from "../../core/addresses.ts";
import { wellFormedJson } from "../../core/text.ts";
import { type Db, firstReturned, type Statement, type Value, type Written } from "./client.ts";
import { type OwnedPage, pageOrder } from "./place.ts";

/*
 * Each entity has one description, field by field. It makes the list of columns, the values of an INSERT, and the
 * entity from a row. For queries that return one JSON column, it makes that object and reads it.
 */

export type Row = Readonly<Record<string, Value>>;

/** How one field of an entity is stored. */
export interface Column<Field> {
  columns: readonly string[];
  values(field: Field): Value[];
  read(row: Row): Field;
  /** Returns SQL for the field as a JSON value. @param table the name or alias of the table */
  json(table: string): string;
  /** Reads the field from the parsed JSON value. */
  fromJson(json: unknown): Field;
}

/** A field that is stored as it is. */
export function plain<Field extends Value>(column: string): Column<Field> {
  return {
    columns: [column],
    values: (field) => [field],
    read: (row) => row[column] as Field,
    json: (table) => `${table}.${column}`,
    fromJson: (json) => json as Field,
  };
}

/** A boolean that is stored as 0 or 1. */
export function flag(column: string): Column<boolean> {
  return {
    columns: [column],
    values: (field) => [Number(field)],
    read: (row) => row[column] === 1,
    json: (table) => `${table}.${column}`,
    fromJson: (json) => json === 1,
  };
}

/** One of some values, which is stored as its place in the list. */
export function oneOf<const Value>(column: string, values: readonly Value[]): Column<Value> {
  const at = (place: unknown): Value => {
    const value = values[Number(place)];
    if (value === undefined) throw new Error(`${column} has no value ${place}`);
    return value;
  };
  return {
    columns: [column],
    values: (field) => [values.indexOf(field)],
    read: (row) => at(row[column]),
    json: (table) => `${table}.${column}`,
    fromJson: at,
  };
}

/** A boolean that is stored as its opposite. */
export function inverseFlag(column: string): Column<boolean> {
  return {
    ...flag(column),
    values: (field) => [Number(!field)],
    read: (row) => row[column] === 0,
    fromJson: (json) => json === 0,
  };
}

/** Booleans that are stored in a column each, by their names. */
export function flags<Name extends string>(
  columns: Readonly<Record<Name, string>>,
): Column<Record<Name, boolean>> {
  const all = Object.entries(columns) as [Name, string][];
  const fieldOf = (is: (name: Name, column: string) => boolean) =>
    Object.fromEntries(all.map(([name, column]) => [name, is(name, column)])) as Record<Name, boolean>;
  return {
    columns: all.map(([, column]) => column),
    values: (field) => all.map(([name]) => Number(field[name])),
    read: (row) => fieldOf((_, column) => row[column] === 1),
    json: (table) =>
      `json_object(${all.map(([name, column]) => `'${name}', ${table}.${column}`).join(", ")})`,
    fromJson: (json) => fieldOf((name) => (json as Record<Name, number>)[name] === 1),
  };
}

/** A value that is stored as JSON text. */
export function json<Field>(column: string): Column<Field> {
  return {
    columns: [column],
    values: (field) => [wellFormedJson(field)],
    read: (row) => JSON.parse(String(row[column])),
    json: (table) => `json(${table}.${column})`,
    fromJson: (json) => json as Field,
  };
}

/** A value that is stored as JSON text, or NULL. */
export function nullableJson<Field>(column: string): Column<Field | null> {
  return {
    ...json<Field | null>(column),
    values: (field) => [field === null ? null : wellFormedJson(field)],
    read: (row) => (row[column] === null ? null : JSON.parse(String(row[column]))),
  };
}

/** Returns the mailbox that two columns hold. */
export function storedMailbox(email: string, name: string | null): Mailbox {
  return name === null ? { email } : { email, name };
}

/** A mailbox that is stored as an address and a name, which may be NULL. */
export function mailbox(email: string, name: string): Column<Mailbox> {
  return {
    columns: [email, name],
    values: (field) => [field.email, field.name ?? null],
    read: (row) => storedMailbox(String(row[email]), row[name] as string | null),
    json: (table) => `json_array(${table}.${email}, ${table}.${name})`,
    fromJson(json) {
      const [storedEmail, storedName] = json as [string, string | null];
      return storedMailbox(storedEmail, storedName);
    },
  };
}

/** The entity that a description of columns describes. */
export type EntityOf<Columns> = {
  [Field in keyof Columns]: Columns[Field] extends Column<infer Type> ? Type : never;
};

/** The SQL and the conversions of an entity. */
export interface Mapping<Entity> {
  /** Names of the columns, in the order of `values`. */
  names: readonly string[];
  /** The names as SQL. */
  columns: string;
  values(entity: Entity): Value[];
  read(row: Row): Entity;
  /** Returns the assignments of an UPDATE, and their values, for the fields that are given. */
  assignments(changes: { [Field in keyof Entity]?: Entity[Field] | undefined }): {
    set: string[];
    values: Value[];
  };
  /** Returns the key and value pairs of SQL's `json_object` for some fields of a table. */
  jsonPairs(table: string, fields: readonly (keyof Entity)[]): string;
  /** Reads the fields of `jsonPairs` from the parsed object. */
  fromJson<Field extends keyof Entity>(
    json: Readonly<Record<string, unknown>>,
    fields: readonly Field[],
  ): Pick<Entity, Field>;
}

/** Makes the mapping of an entity. @param columns in the order of its INSERT */
export function mapping<Entity extends object>(
  columns: {
    [Field in keyof Entity]: Column<Entity[Field]>;
  },
): Mapping<Entity> {
  const all = Object.entries(columns) as [keyof Entity, Column<Entity[keyof Entity]>][];
  const names = all.flatMap(([, column]) => column.columns);
  return {
    names,
    columns: names.join(", "),
    values(entity) {
      const values: Value[] = [];
      for (const [field, column] of all) values.push(...column.values(entity[field]));
      return values;
    },
    read(row) {
      const entity: Partial<Entity> = {};
      for (const [field, column] of all) entity[field] = column.read(row);
      return entity as Entity;
    },
    assignments(changes) {
      const given = all.filter(([field]) => changes[field] !== undefined);
      return {
        set: given.flatMap(([, column]) => column.columns.map((name) => `${name} = ?`)),
        values: given.flatMap(([field, column]) => column.values(changes[field] as Entity[keyof Entity])),
      };
    },
    jsonPairs: (table, some) =>
      some.map((field) => `'${String(field)}', ${columns[field].json(table)}`).join(", "),
    fromJson: <Field extends keyof Entity>(
      object: Readonly<Record<string, unknown>>,
      some: readonly Field[],
    ) =>
      Object.fromEntries(
        some.map((field) => [field, columns[field].fromJson(object[String(field)])]),
      ) as unknown as Pick<Entity, Field>,
  };
}

/** A table whose rows are entities, with the statements that most tables need. `rest` is SQL after the table's name. */
export interface Table<Entity> extends Mapping<Entity> {
  /** Returns the entity in the first row of a query, or null. */
  first(db: Db, rest: string, args: Value[]): Promise<Entity | null>;
  /** Returns the entities in all rows of a query. */
  all(db: Db, rest: string, args: Value[]): Promise<Entity[]>;
  /** Returns one page of an owner's entities, newest first. */
  page(db: Db, page: OwnedPage): Promise<Entity[]>;
  insert(entity: Entity): Statement;
  /** Changes rows. Returns the entity in the first of them afterwards, or null: a later read could see another change. */
  update(db: Db, rest: string, args: Value[]): Promise<Entity | null>;
  /** Returns the entity that a statement with RETURNING has returned, or null. */
  returned(written: Written | undefined): Entity | null;
}

/** Makes the description of a table. @param columns in the order of its INSERT */
export function table<Entity extends object>(
  name: string,
  columns: { [Field in keyof Entity]: Column<Entity[Field]> },
): Table<Entity> {
  const map = mapping<Entity>(columns);
  const entityIn = (row: Row | null): Entity | null => (row === null ? null : map.read(row));
  const returned = (written: Written | undefined) => entityIn(firstReturned<Row>(written));
  const select = `SELECT ${map.columns} FROM ${name}`;
  const insert = `INSERT INTO ${name} (${map.columns}) VALUES (${map.names.map(() => "?").join(", ")})`;
  const all = async (db: Db, rest: string, args: Value[]) =>
    (await db.all<Row>(`${select} ${rest}`, args)).map(map.read);
  return {
    ...map,
    all,
    async page(db, { where, args, place, ceiling, take }) {
      const { range, order, from, newestFirst } = pageOrder(place, ceiling);
      return newestFirst(
        await all(db, `WHERE ${where} AND ${range} ${order} LIMIT ?`, [...args, from, take]),
      );
    },
    first: async (db, rest, args) => entityIn(await db.first<Row>(`${select} ${rest}`, args)),
    insert: (entity) => ({ sql: insert, args: map.values(entity) }),
    async update(db, rest, args) {
      const [written] = await db.write([{ sql: `UPDATE ${name} ${rest} RETURNING ${map.columns}`, args }]);
      return returned(written);
    },
    returned,
  };
}
