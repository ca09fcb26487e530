import { afterAll, beforeAll, expect, test } from "bun:test";
import { KINDS, NOT_EXPORTED, PARENTS } from "../../src/store/transfer/kinds.ts";
import { sealedColumns } from "../../src/store/installation/secrets.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let base: TestDatabase;
beforeAll(async () => {
  base = await testDatabase();
});
afterAll(() => base.remove());

interface Column {
  name: string;
  pk: number;
}

const columns = (table: string) =>
  base.db.all<Column>("SELECT name, pk FROM pragma_table_info(?) ORDER BY pk", [table]);

test("each table is either exported, or is in the list of those that are not, with the reason", async () => {
  const tables = await base.db.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'message_terms_%' AND name NOT LIKE 'message_words_%'",
  );
  const listed = [...KINDS.map(({ table }) => table), ...Object.keys(NOT_EXPORTED)];
  expect(listed.toSorted()).toEqual(tables.map(({ name }) => name).toSorted());
});

test.each(KINDS.map((kind) => [kind.table, kind] as const))(
  "%s is walked by its primary key, and all columns that its row names exist",
  async (table, { key, as = {}, omit = [], contents = [], quiet }) => {
    const all = await columns(table);
    const primary = all.filter(({ pk }) => pk > 0).map(({ name }) => name);
    // The identity of a content is its key; its id is a place in this database.
    expect([...key]).toEqual(table === "contents" ? ["key"] : primary);
    const named = [
      ...Object.keys(as),
      ...omit,
      ...sealedColumns(table),
      ...contents,
      ...(quiet ? [quiet.column] : []),
    ];
    expect(named.filter((column) => !all.some(({ name }) => name === column))).toEqual([]);
  },
);

test("each table comes after the tables that its foreign keys refer to", async () => {
  for (const [at, { table }] of KINDS.entries()) {
    const parents = await base.db.all<{ table: string }>('SELECT "table" FROM pragma_foreign_key_list(?)', [
      table,
    ]);
    for (const { table: parent } of parents)
      expect({ table, before: KINDS.slice(0, at).map((kind) => kind.table) }).toMatchObject({
        before: expect.arrayContaining([parent]),
      });
  }
});

test("a column that names a row of an exported table is in the list of parents", async () => {
  for (const { table } of KINDS) {
    const keys = await base.db.all<{ table: string; from: string }>(
      'SELECT "table", "from" FROM pragma_foreign_key_list(?)',
      [table],
    );
    for (const { from, table: parent } of keys)
      expect({ table, from, parent: PARENTS[from] }).toEqual({ table, from, parent });
  }
});
