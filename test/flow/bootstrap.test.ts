import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hashSecret } from "../../src/flows/account/api-keys.ts";
import { bootstrap } from "../../src/flows/account/bootstrap.ts";
import { generateDkimKey } from "../../src/mail/auth/dkim.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { publicInstallationKey } from "../../src/store/domains/dkim-keys.ts";
import { findKeyByHash } from "../../src/store/projects/keys.ts";
import { saveKeysToFile } from "../../src/wiring/process/first-keys-file.ts";
import { BOX_KEY } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { newFolder } from "../support/folder.ts";
import { manualClock } from "../support/manual-clock.ts";
import { reason } from "../support/reason.ts";

const CONFIG = {
  ownerEmail: "owner@example.com",
  rootApiKey: null,
  defaultTracking: { opens: true, clicks: true },
};
let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.remove());

const begin = (db: Db, rootApiKey: string | null = null) =>
  bootstrap({ db, clock: manualClock(), boxKey: BOX_KEY, generateDkimKey }, { ...CONFIG, rootApiKey });
const start = async (...given: Parameters<typeof begin>) => (await begin(...given)).firstStart;

async function counts(db: Db): Promise<Record<string, number>> {
  const tables = ["accounts", "senders", "api_keys", "dkim_keys"];
  const rows = await Promise.all(
    tables.map((table) => db.first<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)),
  );
  return Object.fromEntries(tables.map((table, at) => [table, rows[at]?.n ?? -1]));
}

describe("the first start", () => {
  test("the first start makes an account, an unlimited project and two working keys, printed once", async () => {
    const { db } = database;
    const secrets = await start(db);
    const wide = await findKeyByHash(db, hashSecret(secrets?.accountKey ?? ""));
    expect(wide?.key).toMatchObject({ senderId: null, scopes: [], revokedAt: null });
    const own = await findKeyByHash(db, hashSecret(secrets?.projectKey ?? ""));
    expect(own?.sender).toMatchObject({ externalId: "default", plan: "unlimited", trustTier: "unlimited" });
    const account = await db.first("SELECT owner_email FROM accounts");
    expect(account).toMatchObject({ owner_email: "owner@example.com" });
    expect((await publicInstallationKey(db))?.status).toBe("active");
  });

  test("the first start uses ROOT_API_KEY as the account-wide key and prints nothing", async () => {
    const { db } = database;
    const secret = "a-root-key-of-at-least-32-printable-characters";
    expect(await start(db, secret)).toBeNull();
    const found = await findKeyByHash(db, hashSecret(secret));
    expect(found?.key).toMatchObject({ senderId: null, keyPrefix: "a-ro", last4: "ters" });
    expect(await counts(db)).toEqual({ accounts: 1, senders: 1, api_keys: 1, dkim_keys: 1 });
  });
});

test("a first start that fails at any write still prints its keys, or the next start does", async () => {
  const { db } = database;
  for (const table of ["dkim_keys", "accounts", "senders", "api_keys"]) {
    await db.write([
      {
        sql: `CREATE TRIGGER full BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'full'); END`,
        args: [],
      },
    ]);
    expect(String(await reason(start(db)))).toContain("full");
    await db.write([{ sql: "DROP TRIGGER full", args: [] }]);
  }
  const secrets = await start(db);
  expect(await findKeyByHash(db, hashSecret(secrets?.accountKey ?? ""))).not.toBeNull();
  expect(await counts(db)).toEqual({ accounts: 1, senders: 1, api_keys: 2, dkim_keys: 1 });
});

test("a second start makes and prints nothing", async () => {
  const { db } = database;
  await start(db);
  const before = await counts(db);
  expect(await start(db)).toBeNull();
  expect(await start(db, "another-root-key-of-32-characters-or-more")).toBeNull();
  expect(await counts(db)).toEqual(before);
});

test("two processes that start together make one account, and one of them prints its keys", async () => {
  const second = await database.another();
  const told = await Promise.all([start(database.db), start(second)]);
  expect(told.filter((secrets) => secrets !== null)).toHaveLength(1);
  expect(await counts(database.db)).toEqual({ accounts: 1, senders: 1, api_keys: 2, dkim_keys: 1 });
  await second.close();
});

test("a start with another master key than the database was sealed with stops, and changes nothing", async () => {
  const { db } = database;
  await start(db);
  const before = await db.all("SELECT * FROM dkim_keys");
  const other = { db, clock: manualClock(), boxKey: new Uint8Array(32).fill(8), generateDkimKey };
  expect(String(await reason(bootstrap(other, CONFIG)))).toContain("put that master.key into DATA_DIR");
  expect(await db.all("SELECT * FROM dkim_keys")).toEqual(before);
});

describe("FIRST_KEYS_FILE", () => {
  const startWith = async (file: string, rootApiKey: string | null = null) => {
    const keepKeys = saveKeysToFile(file);
    const deps = { db: database.db, clock: manualClock(), boxKey: BOX_KEY, generateDkimKey, keepKeys };
    return (await bootstrap(deps, { ...CONFIG, rootApiKey })).firstStart;
  };
  const newFile = () => join(newFolder("keys"), "first.keys");
  const keysIn = (file: string) =>
    Object.fromEntries(
      readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split("=")),
    );

  test("has the keys that work, and only its owner may read it", async () => {
    const file = newFile();
    const told = await startWith(file);
    expect(told?.keptIn).toBe(file);
    const keys = keysIn(file);
    expect(keys).toEqual({
      POSTRIDER_ACCOUNT_KEY: told?.accountKey,
      POSTRIDER_PROJECT_KEY: told?.projectKey,
    });
    expect(await findKeyByHash(database.db, hashSecret(keys.POSTRIDER_ACCOUNT_KEY))).not.toBeNull();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(file, ".."))).toEqual(["first.keys"]);
  });

  test("an existing FIRST_KEYS_FILE stays as it is: the keys go into a new file next to it, which the output names", async () => {
    const file = newFile();
    writeFileSync(file, "mine");
    const told = await startWith(file);
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect(told?.keptIn).toStartWith(`${file}.`);
    expect(keysIn(told?.keptIn ?? "").POSTRIDER_ACCOUNT_KEY).toBe(told?.accountKey);
    expect(statSync(told?.keptIn ?? "").mode & 0o777).toBe(0o600);
  });

  test("is not made by a later start, nor with ROOT_API_KEY, nor by a first start that fails", async () => {
    const file = newFile();
    const full = "CREATE TRIGGER full BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, 'full'); END";
    await database.db.write([{ sql: full, args: [] }]);
    expect(String(await reason(startWith(file)))).toContain("full");
    await database.db.write([{ sql: "DROP TRIGGER full", args: [] }]);
    await startWith(file, "a-root-key-of-at-least-32-printable-characters");
    await startWith(file);
    expect(readdirSync(join(file, ".."))).toEqual([]);
  });

  test("a FIRST_KEYS_FILE in a missing folder stops the start before a key is made", async () => {
    const file = join(newFile(), "nowhere", "first.keys");
    expect(String(await reason(startWith(file)))).toContain("ENOENT");
    expect((await counts(database.db)).accounts).toBe(0);
    expect(existsSync(file)).toBe(false);
  });
});
