import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Db, Guard } from "../../src/store/engine/client.ts";
import { isBroken, requireGuard } from "../../src/store/engine/guards.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { takeUsage, usageOf } from "../../src/store/projects/usage.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const DAY = "2026-03-01";
const NOW = Date.parse("2026-03-01T12:00:00Z");
/** Conditions with an operator that binds less than NOT. */
const holds = (value: number): Guard => ({ sql: "? = 1 OR 0", args: [value] });

let database: TestDatabase;
let db: Db;

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
  const account =
    "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'o@a.example', ?)";
  await db.write([{ sql: account, args: [NOW] }]);
  await db.write([insertProject({ ...testSender("acc", "one", NOW), id: "snd_1" })]);
});
afterAll(() => database.remove());

/** Columns of the table, which are the reasons that have their own statement. */
async function reasons(): Promise<Parameters<typeof requireGuard>[0][]> {
  const rows = await db.all<{ name: Parameters<typeof requireGuard>[0] }>(
    "SELECT name FROM pragma_table_info('guards')",
  );
  return rows.map(({ name }) => name);
}

async function failure(write: Promise<unknown>): Promise<unknown> {
  return write.then(
    () => null,
    (error: unknown) => error,
  );
}

test("a broken guard undoes the write it is in, and names its own reason alone", async () => {
  const all = await reasons();
  expect(all.length).toBeGreaterThan(1);
  for (const reason of all) {
    const others = all.filter((other) => other !== reason).map((other) => requireGuard(other, holds(1)));
    const write = [takeUsage("snd_1", DAY, 1, null), ...others, requireGuard(reason, holds(0))];
    const error = await failure(db.write(write));
    expect(all.filter((each) => isBroken(error, each))).toEqual([reason]);
    expect(isBroken(error, "over_daily_volume")).toBe(false);
  }
  expect(await usageOf(db, "snd_1", DAY)).toBe(0);
});

test("guards that hold let the write through and store nothing", async () => {
  const guards = (await reasons()).map((reason) => requireGuard(reason, holds(1)));
  await db.write([...guards, takeUsage("snd_1", DAY, 2, 5), ...guards]);
  expect(await usageOf(db, "snd_1", DAY)).toBe(2);
  expect(await db.all("SELECT 1 FROM guards")).toEqual([]);
});

test("the limit of a day in a write with a guard that holds is not taken for that guard", async () => {
  const write = [requireGuard("webhook_disabled", holds(1)), takeUsage("snd_1", DAY, 9, 5)];
  const error = await failure(db.write(write));
  expect(isBroken(error, "over_daily_volume")).toBe(true);
  expect(isBroken(error, "webhook_disabled")).toBe(false);
});
