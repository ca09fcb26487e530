import { afterAll, beforeAll, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { DAY_MS } from "../../src/core/time/units.ts";
import { FACT_SOURCES } from "../../src/flows/notices/facts.ts";
import { NOTICE_TYPES } from "../../src/flows/notices/kinds.ts";
import {
  accountsToTell,
  deleteOldNotices,
  endNotice,
  listNotices,
  noteSent,
  openNotices,
  raiseNotice,
} from "../../src/store/notices/notices.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let base: TestDatabase;
beforeAll(async () => {
  base = await testDatabase();
  await base.db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'A', 'a@one.test', 1)",
      args: [],
    },
  ]);
});
afterAll(() => base.remove());

const ALL = { senderId: null };
const NOTICE = { senderId: null, subject: "r", detail: null };
const about = (subjectId: string, at: number, once?: true) =>
  raiseNotice({
    ...NOTICE,
    id: newId("ntc", at),
    accountId: "acc_1",
    kind: "rule_disabled",
    subjectId,
    at,
    ...(once === undefined ? {} : { once }),
  });
const of = async (subjectId: string) =>
  (await listNotices(base.db, "acc_1", ALL, null, 100)).filter((notice) => notice.subjectId === subjectId);

test("a notice is raised once while one of its kind and subject is open, and again after that has ended", async () => {
  await base.db.write([about("r1", 1000), about("r1", 2000)]);
  expect((await of("r1")).map(({ at }) => at)).toEqual([1000]);
  await base.db.write([endNotice("rule_disabled", "r1", 3000), about("r1", 4000)]);
  expect((await of("r1")).map(({ at, endedAt, mailedAt }) => [at, endedAt, mailedAt])).toEqual([
    [4000, null, null],
    [1000, 3000, 0],
  ]);
});

test("a notice of what happens once ends as it begins, and is still to be mailed", async () => {
  await base.db.write([about("r2", 1000, true), about("r2", 2000, true)]);
  expect((await of("r2")).map(({ at, endedAt, mailedAt }) => [at, endedAt, mailedAt])).toEqual([
    [2000, 2000, null],
    [1000, 1000, null],
  ]);
  expect((await openNotices(base.db, "rule_disabled", 100)).map(({ subjectId }) => subjectId)).not.toContain(
    "r2",
  );
});

test("only notices that ended before the time are deleted, up to the limit", async () => {
  await base.db.write([
    about("r3", 1000, true),
    about("r3", 2000, true),
    about("r3", 9000, true),
    about("r4", 1),
  ]);
  while ((await deleteOldNotices(base.db, 5000, 1)) > 0);
  expect((await of("r3")).map(({ at }) => at)).toEqual([9000]);
  expect(await of("r4")).toHaveLength(1);
});

test("accounts whose notices wait for the next day leave the turn to the others", async () => {
  const day = 2 * DAY_MS;
  const account = (id: string) => ({
    sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, 'A', 'a@one.test', 1)",
    args: [id],
  });
  const raise = (accountId: string, id: string) =>
    raiseNotice({ ...NOTICE, id, accountId, kind: "disk_low", subjectId: "disk", at: day });
  await base.db.write([
    noteSent(
      (await listNotices(base.db, "acc_1", ALL, null, 100)).map(({ id }) => id),
      1,
    ),
  ]);
  await base.db.write([
    account("acc_2"),
    account("acc_3"),
    raise("acc_2", "ntc_a"),
    noteSent(["ntc_a"], day),
  ]);
  await base.db.write([endNotice("disk_low", "disk", day), raise("acc_2", "ntc_b"), raise("acc_3", "ntc_c")]);
  expect(await accountsToTell(base.db, day, 1)).toEqual(["acc_3"]);
  expect(await accountsToTell(base.db, day + DAY_MS, 2)).toEqual(["acc_2", "acc_3"]);
});

test("each kind has a source of its facts unless a write raises it", () => {
  const byWrite = Object.entries(NOTICE_TYPES).filter(([, { from }]) => from === "write");
  const all = [...byWrite.map(([kind]) => kind), ...Object.keys(FACT_SOURCES)];
  // The chore of block lists settles its own kind.
  expect([...all, "address_listed"].toSorted()).toEqual(Object.keys(NOTICE_TYPES).toSorted());
});
