import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { seal } from "../../src/core/crypto/secretbox.ts";
import { DAY_MS } from "../../src/core/time/units.ts";
import { newId } from "../../src/core/ids.ts";
import { MAX_KEPT, openKept } from "../../src/flows/secrets/kept-keys.ts";
import { type MasterKey, masterKeyOf } from "../../src/flows/secrets/master-key.ts";
import { MAX_WALKS, resealAll, ROWS_PER_STEP } from "../../src/flows/secrets/reseal.ts";
import { rotateMasterKey } from "../../src/flows/secrets/rotate.ts";
import { Heartbeat, LEASE_MS, registerInstance } from "../../src/flows/sweep/instance.ts";
import { ALWAYS, type Db } from "../../src/store/engine/client.ts";
import { readFact, recordFact } from "../../src/store/installation/facts.ts";
import { insertInstance } from "../../src/store/installation/instances.ts";
import { KEPT_DAYS } from "../../src/store/installation/secrets.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { hurried } from "../support/hurried-clock.ts";
import { certificateSecrets, sealedBy } from "../support/sealed.ts";

/** Milliseconds. */
setDefaultTimeout(60_000);
const HURRY = 600;

let base: TestDatabase;
let made = 0;
beforeAll(async () => {
  base = await testDatabase();
});
afterAll(() => base.remove());

const newKey = (): MasterKey => masterKeyOf(`master key ${++made} of a test`.padEnd(40, "x"));

/** Makes the database of a master key, with this many idempotent answers that hold a secret. */
async function begin(answers = 3): Promise<MasterKey> {
  const key = newKey();
  const { db } = base;
  const names = ["acme_accounts", "certificates", "idempotency", "installation", "instances"];
  await db.write(names.map((table) => ({ sql: `DELETE FROM ${table}`, args: [] })));
  await db.write([
    recordFact("master_key", key.id),
    ...certificateSecrets(key.text),
    ...Array.from({ length: answers }, (_, at) => ({
      sql: "INSERT INTO idempotency (scope, endpoint, key, body_hash, status, body, created_at) VALUES ('s', 'e', ?, ?, 201, ?, 1)",
      args: [`key ${at}`, "f".repeat(128), seal(key.derived.box, "{}")],
    })),
  ]);
  return key;
}

const beforeEnd = (): void => undefined;
const rotated = (from: MasterKey, to: MasterKey, db: Db = base.db, clock = hurried(HURRY)) =>
  rotateMasterKey({ db, clock, beforeEnd }, from, to);

/** The database with another way to write. */
const writing = (write: Db["write"]): Db =>
  ({
    all: (sql, args) => base.db.all(sql, args),
    first: (sql, args) => base.db.first(sql, args),
    readConfig: (query, args) => base.db.readConfig(query, args),
    migrate: (statements) => base.db.migrate(statements),
    close: () => base.db.close(),
    write,
  }) as Db;

/** A database whose write of that number fails: before it is done, or after it with the reply lost. */
function failing(number: number, when: "before" | "after"): { db: Db; failed: () => boolean } {
  let writes = 0;
  const db = writing(async (statements) => {
    const fails = ++writes === number;
    if (fails && when === "before") throw new Error("killed");
    const answer = await base.db.write(statements);
    if (fails) throw new Error("killed");
    return answer;
  });
  return { db, failed: () => writes >= number };
}

test.each(["before", "after"] as const)(
  "a rotation that is killed %s any write loses no secret, and goes on when it is called again",
  async (when) => {
    for (let number = 1; ; number++) {
      const from = await begin();
      const to = newKey();
      const { db, failed } = failing(number, when);
      const outcome = await rotated(from, to, db).then(
        () => "done",
        () => "killed",
      );
      expect((await sealedBy(base.db, from.text, to.text)).lost).toBe(0);
      if (outcome === "killed") await rotated(from, to);
      expect((await sealedBy(base.db, to.text)).lost).toBe(0);
      expect(await readFact(base.db, "master_key")).toBe(to.id);
      expect(await readFact(base.db, "master_key_rotation")).toBe("");
      if (!failed()) return expect(number).toBeGreaterThan(4);
    }
  },
);

test.each([ROWS_PER_STEP - 1, ROWS_PER_STEP, ROWS_PER_STEP + 1])(
  "a rotation seals each of %d answers again, and no write has more than a step",
  async (answers) => {
    const from = await begin(answers);
    const to = newKey();
    let most = 0;
    const db = writing((statements) => {
      most = Math.max(most, statements.length);
      return base.db.write(statements);
    });
    await rotated(from, to, db);
    expect((await sealedBy(base.db, to.text)).opened.idempotency).toBe(answers);
    expect(most).toBe(Math.min(answers, ROWS_PER_STEP));
  },
);

test("a rotation ends with an error if a process seals with the earlier key in every walk", async () => {
  const from = await begin(1);
  const to = newKey();
  let walks = 0;
  const db = writing(async (statements) => {
    const answer = await base.db.write(statements);
    walks++;
    const sql = "UPDATE idempotency SET body = ?";
    await base.db.write([{ sql, args: [seal(from.derived.box, `{"walk":${walks}}`)] }]);
    return answer;
  });
  const box = { keys: [to.derived.box, from.derived.box] } as const;
  await expect(resealAll(db, box, ALWAYS)).rejects.toThrow("still being sealed");
  // The first walk also changes the certificates.
  expect(walks).toBe(MAX_WALKS + 2);
});

test("a rotation names the process that lacks the new key, and changes nothing", async () => {
  const from = await begin();
  const clock = hurried(HURRY);
  const self = await registerInstance({ db: base.db, clock }, 4711, from.id);
  const heartbeat = new Heartbeat({ db: base.db, clock }, self, async () => from.id);
  const beats = setInterval(() => void heartbeat.turn(), 10);
  try {
    await expect(rotated(from, newKey())).rejects.toThrow(/\(pid 4711\)\. Nothing was changed/);
  } finally {
    clearInterval(beats);
  }
  expect(await readFact(base.db, "master_key")).toBe(from.id);
  expect(await readFact(base.db, "master_key_rotation")).toBe("");
  expect((await sealedBy(base.db, from.text)).lost).toBe(0);
});

test("a rotation does not wait longer than the lease for a process that has died", async () => {
  const from = await begin();
  const to = newKey();
  const dead = { id: newId("ins", 1), host: "other", pid: 1, heartbeatAt: 1, masterKeys: from.id };
  await base.db.write([insertInstance(dead)]);
  const clock = hurried(HURRY);
  const begun = clock.elapsed();
  await rotated(from, to, base.db, clock);
  expect(clock.elapsed() - begun).toBeGreaterThanOrEqual(LEASE_MS);
  expect(await readFact(base.db, "master_key")).toBe(to.id);
});

test("links of the latest master keys are kept until their day, and those of older ones end", async () => {
  let from = await begin();
  const clock = hurried(HURRY);
  const ids: string[] = [];
  for (let times = 0; times <= MAX_KEPT; times++) {
    const to = newKey();
    ids.push(from.id);
    await rotated(from, to, base.db, clock);
    from = to;
  }
  const sealed = (await readFact(base.db, "kept_keys")) ?? "";
  const { box } = from.derived;
  const now = clock.now();
  const kept = openKept(box, sealed, now);
  expect(kept.map(({ id }) => id)).toEqual(ids.slice(1));
  expect(Object.keys(kept[0]?.keys ?? {}).toSorted()).toEqual([
    "cursor",
    "relay",
    "tracking",
    "unsubscribe",
    "verp",
  ]);
  const until = kept.at(-1)?.until ?? 0;
  expect(openKept(box, sealed, until - 1).at(-1)?.id).toBe(ids.at(-1) ?? "");
  expect(openKept(box, sealed, until)).toEqual([]);
  expect(until - now).toBeLessThanOrEqual(KEPT_DAYS * DAY_MS);
});
