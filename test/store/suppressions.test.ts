import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { ConstraintError } from "../../src/store/engine/client.ts";
import {
  addSuppression,
  findSuppressions,
  listSuppressions,
  type NewSuppression,
  removeSuppression,
  type Suppression,
  type SuppressionFilter,
  suppress,
} from "../../src/store/projects/suppressions.ts";
import { MAX_SCANNED } from "../../src/store/matching/steps.ts";
import { fileTest, test } from "../support/engine-test.ts";
import { leftOut } from "../support/blocked.ts";
import { type TestApi, testApi } from "../support/api.ts";

setDefaultTimeout(60_000);

const NOW = 1_750_000_000_000;
let api: TestApi;
let mine: string;
let theirs: string;
beforeAll(async () => {
  api = await testApi();
  mine = api.acme.a.id;
  theirs = api.acme.b.id;
});
afterAll(() => api.close());

function entry(id: string, email: string, changes: Partial<Suppression> = {}): Suppression {
  return {
    id,
    senderId: mine,
    email,
    reason: "manual",
    bounceType: null,
    messageId: null,
    note: "n",
    expiresAt: null,
    createdAt: NOW,
    ...changes,
  };
}

const add = (given: Suppression) => api.db.write(addSuppression(given));
const find = async (email: string, now: number, senderId = mine) =>
  (await findSuppressions(api.db, senderId, [email], now)).get(email) ?? null;

describe("an entry", () => {
  test("an entry is found and removed only in its own project", async () => {
    const saved = entry("sup_1", "a@own.example");
    await add(saved);
    expect(await find(saved.email, NOW)).toEqual(saved);
    expect(await find(saved.email, NOW, theirs)).toBeNull();
    await removeSuppression(api.db, theirs, saved.email);
    expect(await find(saved.email, NOW)).toEqual(saved);
    for (let twice = 0; twice < 2; twice++) await removeSuppression(api.db, mine, saved.email);
    expect(await find(saved.email, NOW)).toBeNull();
  });

  test("if it is in force prevents a second one", async () => {
    await add(entry("sup_2", "b@own.example", { expiresAt: NOW + 1 }));
    const error = await add(entry("sup_3", "b@own.example")).catch((thrown: unknown) => thrown);
    expect(error instanceof ConstraintError && error.unique).toBe(
      "suppressions.sender_id, suppressions.email",
    );
    expect((await find("b@own.example", NOW))?.id).toBe("sup_2");
  });

  test("an entry that has expired counts as absent and can be replaced", async () => {
    const email = "c@own.example";
    await add(entry("sup_4", email, { expiresAt: NOW + 5 }));
    const seen = async (now: number) => [
      (await find(email, now))?.id,
      (await listSuppressions(api.db, mine, { email }, now, null, 9)).rows.length,
      (await leftOut(api.db, mine, [email], now)).suppressed.size,
    ];
    expect(await seen(NOW + 4)).toEqual(["sup_4", 1, 1]);
    expect(await seen(NOW + 5)).toEqual([undefined, 0, 0]);
    const next = entry("sup_5", email, { createdAt: NOW + 5 });
    await add(next);
    expect(await find(email, NOW + 5)).toEqual(next);
  });
});

describe("a bounce or complaint", () => {
  const soft = (until: number) => ({ reason: "bounce", bounceType: "soft", expiresAt: until }) as const;
  const hard = { reason: "bounce", bounceType: "hard", expiresAt: null } as const;
  const complaint = { reason: "complaint", bounceType: null, expiresAt: null } as const;
  const manual = { reason: "manual", bounceType: null, expiresAt: null } as const;
  type Change = Pick<NewSuppression, "reason" | "bounceType" | "expiresAt">;
  const rows: [string, Change, Change, Partial<Suppression>][] = [
    [
      "a hard one after a soft one stays for good",
      soft(NOW + 99),
      hard,
      { ...hard, id: "old", note: "n", createdAt: NOW },
    ],
    ["a complaint after a soft one stays for good", soft(NOW + 99), complaint, { ...complaint, id: "old" }],
    ["a later soft one lasts longer", soft(NOW + 50), soft(NOW + 99), { expiresAt: NOW + 99, id: "old" }],
    ["never shortens an entry", soft(NOW + 99), soft(NOW + 50), { expiresAt: NOW + 99, id: "old" }],
    ["a soft one shortens no hard one", hard, soft(NOW + 99), { ...hard, id: "old" }],
    ["that is permanent leaves an entry added by hand", manual, hard, { ...manual, id: "old", note: "n" }],
    [
      "one after an expired one is wholly new",
      soft(NOW + 10),
      soft(NOW + 99),
      { ...soft(NOW + 99), id: "new", note: null, createdAt: NOW + 10, messageId: "msg_new" },
    ],
  ];
  for (const [index, [name, before, after, expected]] of rows.entries())
    test(name, async () => {
      const email = `r${index}@rules.example`;
      const named = (id: string) => (id === "old" || id === "new" ? `sup_${id}${index}` : id);
      await add(entry(named("old"), email, before));
      const { note: _note, ...fresh } = entry(named("new"), email, {
        ...after,
        messageId: "msg_new",
        createdAt: NOW + 10,
      });
      await api.db.write([suppress(fresh)]);
      const { id = "", ...rest } = expected;
      expect(await find(email, NOW + 11)).toMatchObject({ ...rest, id: named(id) });
    });

  test("a bounce or complaint writes nothing if its guard fails", async () => {
    const email = "guard@rules.example";
    const { note: _note, ...fresh } = entry("sup_guard", email, hard);
    await api.db.write([suppress(fresh, { sql: "? = 2", args: [1] })]);
    expect(await find(email, NOW)).toBeNull();
    await api.db.write([suppress(fresh, { sql: "? = 2", args: [2] })]);
    expect(await find(email, NOW)).toMatchObject({ id: "sup_guard", note: null });
  });
});

test("entries are listed newest first, in pages, and only the project's own", async () => {
  const senderId = api.other.a.id;
  for (const id of ["sup_l1", "sup_l2", "sup_l3"]) await add(entry(id, `${id}@list.example`, { senderId }));
  const ids = async (filter: Parameters<typeof listSuppressions>[2], after: string | null, take: number) =>
    (await listSuppressions(api.db, senderId, filter, NOW, after, take)).rows.map(({ id }) => id);
  expect(await ids({}, null, 2)).toEqual(["sup_l3", "sup_l2"]);
  expect(await ids({}, "sup_l2", 2)).toEqual(["sup_l1"]);
  expect(await ids({ reason: "bounce" }, null, 9)).toEqual([]);
  expect(await ids({ q: "L2@" }, null, 9)).toEqual(["sup_l2"]);
  await add(entry("sup_l4", "l4@xn--bcher-kva.example", { senderId }));
  expect(await ids({ q: "bücher.exa" }, null, 9)).toEqual(["sup_l4"]);
});

fileTest(
  "entries are read as far as one page goes, except for a search by address, and expired ones count as read",
  async () => {
    const senderId = api.other.b.id;
    await api.db.write([
      {
        sql: `INSERT INTO suppressions (id, sender_id, email, reason, expires_at, created_at)
        WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
        SELECT printf('sup_many%06d', n), ?2, 'p' || n || '@many.example', 'bounce', CASE WHEN n > 1 THEN ?3 END, 0
          FROM numbers`,
        args: [MAX_SCANNED, senderId, NOW],
      },
    ]);
    const page = async (filter: SuppressionFilter, after: string | null) => {
      const { rows, stoppedAt } = await listSuppressions(api.db, senderId, filter, NOW, after, 3);
      return [rows.map(({ id }) => id), stoppedAt];
    };
    expect(await page({}, null)).toEqual([["sup_many000001"], "sup_many000001"]);
    expect(await page({}, "sup_many000001")).toEqual([["sup_many000000"], null]);
    expect(await page({ q: "p0@" }, null)).toEqual([[], "sup_many000001"]);
    expect(await page({ email: "p0@many.example" }, null)).toEqual([["sup_many000000"], null]);
  },
);
