import { afterAll, beforeAll, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { insertListed, listedAmong } from "../../src/store/threads/listed-senders.ts";
import { testSender } from "../support/api.ts";
import { around } from "../support/around.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const PROJECT = testSender("acc_lists", "lists", 0);
let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  const account =
    "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_lists', 'a', 'a@a.test', 0)";
  await database.db.write([{ sql: account, args: [] }, insertProject(PROJECT)]);
});
afterAll(() => database.remove());

test("a message to a project that lists no sender costs no query of the lists, until the first is listed", async () => {
  const asked: string[] = [];
  const db = around(database.db);
  db.all = (sql, args) => {
    asked.push(sql);
    return database.db.all(sql, args);
  };
  const among = () => listedAmong(db, { id: "inb_1", senderId: PROJECT.id }, ["ann@a.test", "@a.test"]);
  expect([await among(), await among(), asked]).toEqual([[], [], []]);
  const listed = {
    senderId: PROJECT.id,
    inboxId: null,
    pattern: "@a.test",
    list: "block",
    createdAt: 0,
  } as const;
  await database.db.write(insertListed({ id: newId("lse", 0), ...listed }));
  expect(await among()).toEqual([{ pattern: "@a.test", list: "block" }]);
  expect(asked).toHaveLength(1);
});
