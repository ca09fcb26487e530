import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isBroken } from "../../src/store/engine/guards.ts";
import {
  ConstraintError,
  type Db,
  firstReturned,
  type Guard,
  type Statement,
} from "../../src/store/engine/client.ts";
import {
  addReputation,
  forgetReputation,
  type ReputationLimits,
  judgeSender,
} from "../../src/store/projects/reputation.ts";
import { getProject, insertProject, updateProject } from "../../src/store/projects/projects.ts";
import { takeUsage, usageOf } from "../../src/store/projects/usage.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const DAY = "2026-03-01";
const AT = Date.parse(DAY);
const NOW = Date.parse("2026-03-01T12:00:00Z");
const ALWAYS: Guard = { sql: "1 = 1", args: [] };
const LIMITS: ReputationLimits = {
  minSettled: 200,
  bouncedPerMille: 80,
  complainedPerMille: 3,
  minComplainants: 5,
};

let database: TestDatabase;
let db: Db;
let made = 0;

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'o@a.example', ?)",
      args: [NOW],
    },
  ]);
});
afterAll(() => database.remove());

async function failure(write: Promise<unknown>): Promise<unknown> {
  return write.then(
    () => null,
    (error: unknown) => error,
  );
}

describe("the volume of a day", () => {
  const rows: readonly [name: string, before: number, takes: number, limit: number | null, after: number][] =
    [
      ["the first recipients", 0, 3, 10, 3],
      ["all of it at once", 0, 10, 10, 10],
      ["one too many at once", 0, 11, 10, 0],
      ["the last ones", 7, 3, 10, 10],
      ["one too many", 8, 3, 10, 8],
      ["none left", 10, 1, 10, 10],
      ["a limit that was lowered since", 50, 1, 10, 50],
      ["a quota of zero", 0, 1, 0, 0],
      ["no limit", 1_000_000, 50, null, 1_000_050],
    ];
  for (const [name, before, takes, limit, after] of rows)
    test(`${name}: ${before} + ${takes} of ${limit ?? "any"}`, async () => {
      const sender = `snd${++made}`;
      if (before > 0) await db.write([takeUsage(sender, DAY, before, null)]);
      const error = await failure(db.write([takeUsage(sender, DAY, takes, limit)]));
      expect(isBroken(error, "over_daily_volume")).toBe(after === before);
      expect(error === null).toBe(after !== before);
      expect(await usageOf(db, sender, DAY)).toBe(after);
    });

  test("a write over the limit leaves nothing, and writes that wait with it succeed", async () => {
    const sender = `snd${++made}`;
    const writes = [2, 9, 3].map((takes) => {
      const beside: Statement = takeUsage(`beside${takes}`, DAY, 1, null);
      return db.write([beside, takeUsage(sender, DAY, takes, 10)]);
    });
    const outcomes = await Promise.allSettled(writes);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await usageOf(db, sender, DAY)).toBe(5);
    expect(await usageOf(db, "beside9", DAY)).toBe(0);
    expect(await usageOf(db, "beside3", DAY)).toBe(1);
  });

  test("a write that fails for another reason uses no volume, and is not reported as over the limit", async () => {
    const sender = `snd${++made}`;
    const broken: Statement = {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'o', 0)",
      args: [],
    };
    const error = await failure(db.write([takeUsage(sender, DAY, 1, 10), broken]));
    expect(error).toBeInstanceOf(ConstraintError);
    expect(isBroken(error, "over_daily_volume")).toBe(false);
    expect(await usageOf(db, sender, DAY)).toBe(0);
  });

  test("days and projects have separate volumes", async () => {
    const sender = `snd${++made}`;
    await db.write([takeUsage(sender, DAY, 10, 10), takeUsage(sender, "2026-03-02", 10, 10)]);
    await db.write([takeUsage(`${sender}other`, DAY, 10, 10)]);
    expect(await usageOf(db, sender, "2026-03-02")).toBe(10);
  });

  test("writers on separate connections never exceed the limit", async () => {
    const sender = `snd${++made}`;
    const others = await Promise.all([database.another(), database.another()]);
    const takes = Array.from({ length: 90 }, (_, at) =>
      ([db, ...others][at % 3] ?? db).write([takeUsage(sender, DAY, 1 + (at % 2), 40)]),
    );
    const outcomes = await Promise.allSettled(takes);
    const taken = outcomes.reduce(
      (sum, { status }, at) => sum + (status === "fulfilled" ? 1 + (at % 2) : 0),
      0,
    );
    expect(taken).toBe(40);
    await database.caughtUp();
    expect(await usageOf(db, sender, DAY)).toBe(40);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(isBroken(outcome.reason, "over_daily_volume")).toBe(true);
    await Promise.all(others.map((other) => other.close()));
  });
});

describe("the reputation of seven days", () => {
  const since = "2026-02-23";
  const rows: readonly [
    name: string,
    days: readonly [day: string, settled: number, bounced: number, complained: number][],
    suspended: boolean,
  ][] = [
    ["nothing sent", [], false],
    ["199 recipients, all bounced", [[DAY, 199, 199, 0]], false],
    ["8 % of 200 bounced", [[DAY, 200, 16, 0]], true],
    ["just under 8 % of 200 bounced", [[DAY, 200, 15, 0]], false],
    ["just under 8 % of 1001 bounced", [[DAY, 1001, 80, 0]], false],
    ["200 complaints of 200 that nothing proves", [[DAY, 200, 0, 200]], false],
    [
      "the first day of the window",
      [
        [DAY, 100, 0, 0],
        [since, 100, 16, 0],
      ],
      true,
    ],
    [
      "the day before it",
      [
        [DAY, 100, 0, 0],
        ["2026-02-22", 100, 16, 0],
      ],
      false,
    ],
    [
      "good days make up for a bad one",
      [
        [DAY, 200, 16, 0],
        [since, 1, 0, 0],
      ],
      false,
    ],
  ];
  const sender = async (): Promise<string> => {
    const made_ = { ...testSender("acc", `project${++made}`, NOW), trustTier: "basic" };
    await db.write([insertProject(made_)]);
    return made_.id;
  };
  for (const [name, days, suspended] of rows)
    test(`${name}: ${suspended ? "suspended" : "not suspended"}`, async () => {
      const id = await sender();
      const counts = days.map(([day, settled, bounced, complained]) =>
        addReputation(id, Date.parse(day), { settled, bounced, complained }, ALWAYS),
      );
      const written = await db.write([...counts, judgeSender(id, LIMITS, NOW)]);
      const judged = firstReturned<{ suspended_at: number | null }>(written.at(-1));
      expect(judged?.suspended_at ?? null).toBe(suspended ? NOW : null);
      expect((await getProject(db, "acc", id))?.suspendedAt).toBe(suspended ? NOW : null);
    });

  test("a suspension keeps its time, and affects no other project", async () => {
    const [bad, good] = [await sender(), await sender()];
    const counts = { settled: 200, bounced: 100, complained: 0 };
    await db.write([
      addReputation(bad, AT, counts, ALWAYS),
      judgeSender(bad, LIMITS, NOW),
      judgeSender(good, LIMITS, NOW),
    ]);
    await db.write([addReputation(bad, AT, counts, ALWAYS), judgeSender(bad, LIMITS, NOW + 1000)]);
    expect((await getProject(db, "acc", bad))?.suspendedAt).toBe(NOW);
    expect((await getProject(db, "acc", good))?.suspendedAt).toBeNull();
  });

  test("the reputation of seven days counts are not added if the guard fails", async () => {
    const id = await sender();
    const never: Guard = { sql: "1 = ?", args: [0] };
    await db.write([
      addReputation(id, AT, { settled: 200, bounced: 200, complained: 0 }, never),
      judgeSender(id, LIMITS, NOW),
    ]);
    expect((await getProject(db, "acc", id))?.suspendedAt).toBeNull();
  });

  test("only lifting a suspension resets the counts that caused it", async () => {
    const id = await sender();
    const again = (): Statement => judgeSender(id, LIMITS, NOW);
    const settled = async (): Promise<number | undefined> =>
      (await db.first<{ settled: number }>("SELECT settled FROM reputation WHERE sender_id = ?", [id]))
        ?.settled;
    await db.write([addReputation(id, AT, { settled: 150, bounced: 100, complained: 0 }, ALWAYS), again()]);
    await updateProject(db, "acc", id, { suspendedAt: null });
    expect(await settled()).toBe(150);
    await db.write([addReputation(id, AT, { settled: 50, bounced: 0, complained: 0 }, ALWAYS), again()]);
    await updateProject(db, "acc", id, { name: "still suspended" });
    await db.write(forgetReputation("another account", id));
    expect(await settled()).toBe(200);
    expect((await updateProject(db, "acc", id, { suspendedAt: null }))?.suspendedAt).toBeNull();
    expect(await settled()).toBeUndefined();
    await db.write([addReputation(id, AT, { settled: 199, bounced: 199, complained: 0 }, ALWAYS), again()]);
    expect((await getProject(db, "acc", id))?.suspendedAt).toBeNull();
    await db.write([addReputation(id, AT, { settled: 1, bounced: 0, complained: 0 }, ALWAYS), again()]);
    expect((await getProject(db, "acc", id))?.suspendedAt).toBe(NOW);
  });
});
