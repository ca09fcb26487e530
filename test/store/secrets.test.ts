import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { REPLACE } from "../../src/flows/secrets/reset.ts";
import { SEALED } from "../../src/store/installation/secrets.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { readFiles } from "../support/source-files.ts";

let base: TestDatabase;
beforeAll(async () => {
  base = await testDatabase();
});
afterAll(() => base.remove());

/** Files that seal what is kept nowhere in the database, or pass on what was sealed. */
const SEAL_NO_COLUMN: Readonly<Record<string, string>> = {
  "core/crypto/secretbox.ts": "seals for all others",
  "http/access/session.ts": "cookies",
  "http/dashboard/provider.ts": "cookies of sign-ins by an OpenID provider",
  "http/resend/attachments.ts": "download links",
  "http/views/highlights.ts": "cursors",
  "core/crypto/sealed-link.ts": "mailed links",
  "commands/transfer/export.ts": "the check of an exported file",
  "commands/transfer/import.ts": "columns of the same table, from a file",
  "flows/secrets/reseal.ts": "columns of the same table, again",
  "flows/secrets/lost-dkim.ts": "columns of the same table, in place of lost ones",
  "flows/secrets/reset.ts": "columns of the same table, in place of lost ones",
  "flows/certificates/renew.ts": "columns of the same table, again",
};

test("each file that seals a secret is in the table of sealed columns", async () => {
  const src = join(import.meta.dir, "../../src");
  const files = await readFiles(src, "**/*.ts");
  const sealing = Object.keys(files).filter((path) =>
    /(?<!\.)\bseal\(|import \{[^}]*\breseal\b[^}]*\}/.test(files[path] ?? ""),
  );
  const listed = [...SEALED.flatMap(({ sealedBy }) => sealedBy), ...Object.keys(SEAL_NO_COLUMN)];
  expect(sealing.toSorted()).toEqual(listed.toSorted());
});

test("each column of the schema that has the name of a secret is in the table of sealed columns", async () => {
  const secret = /^(?:sealed_\w+|\w*private_key|\w*secret|order_key)$/;
  const columns = await base.db.all<{ table: string; name: string }>(
    `SELECT m.name AS "table", c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`,
    [],
  );
  const found = columns.filter(({ name }) => secret.test(name)).map(({ table, name }) => `${table}.${name}`);
  const listed = SEALED.flatMap(({ table, columns: sealed }) => sealed.map((name) => `${table}.${name}`));
  expect(listed).toEqual(expect.arrayContaining(found));
});

test("each table with sealed columns has a way to replace lost ones", () => {
  expect(Object.keys(REPLACE).toSorted()).toEqual(SEALED.map(({ table }) => table).toSorted());
});

test.each(SEALED.map((sealed) => [sealed.table, sealed] as const))(
  "the table of sealed columns has the primary key of %s",
  async (table, { key, columns }) => {
    const all = await base.db.all<{ name: string; pk: number }>(
      "SELECT name, pk FROM pragma_table_info(?) ORDER BY pk",
      [table],
    );
    expect(all.filter(({ pk }) => pk > 0).map(({ name }) => name)).toEqual([...key]);
    expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining([...columns]));
  },
);
