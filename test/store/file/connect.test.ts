import { afterEach, beforeEach, expect, test } from "bun:test";
import Database from "libsql";
import { databasePath } from "../../../src/store/engine/client.ts";
import { connect } from "../../../src/store/embedded/connection.ts";
import { testDatabase, type TestDatabase } from "../../support/database.ts";

let data: TestDatabase;
beforeEach(async () => {
  data = await testDatabase();
});
afterEach(() => data.remove());

test("connects while another process holds the write lock", () => {
  const path = databasePath(data.url) ?? "";
  const other = new Database(path);
  other.exec("BEGIN IMMEDIATE");

  const connection = connect(path);

  expect(connection.database.prepare("PRAGMA auto_vacuum").get()).toMatchObject({ auto_vacuum: 2 });
  connection.close();
  other.exec("ROLLBACK");
  other.close();
});
