import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { hashSecret } from "../../src/flows/api-keys.ts";
import { bootstrap } from "../../src/flows/bootstrap.ts";
import { generateDkimKey } from "../../src/mail/dkim.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";
import { publicInstallationKey } from "../../src/store/dkim-keys.ts";
import { findKeyByHash } from "../../src/store/keys.ts";
import { BOX_KEY } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";
import { reason } from "../support/reason.ts";

const CONFIG = { ownerEmail: "owner@example.com", rootApiKey: null };
let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.remove());

const start = (db: Db, rootApiKey: string | null = null) =>
  bootstrap({ db, clock: manualClock(), boxKey: BOX_KEY, generateDkimKey }, { ...CONFIG, rootApiKey });

async function counts(db: Db): Promise<Record<string, number>> {
  const tables = ["accounts", "senders", "api_keys", "dkim_keys"];
  const rows = await Promise.all(
    tables.map((table) => db.first<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)),
  );
  return Object.fromEntries(tables.map((table, at) => [table, rows[at]?.n ?? -1]));
}

describe("the first start", () => {
  test("makes an account, an unlimited project and two keys that work, told once", async () => {
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

  test("takes ROOT_API_KEY as the account-wide key and tells nothing", async () => {
    const { db } = database;
    const secret = "a-root-key-of-at-least-32-printable-characters";
    expect(await start(db, secret)).toBeNull();
    const found = await findKeyByHash(db, hashSecret(secret));
    expect(found?.key).toMatchObject({ senderId: null, keyPrefix: "a-ro", last4: "ters" });
    expect(await counts(db)).toEqual({ accounts: 1, senders: 1, api_keys: 1, dkim_keys: 1 });
  });
});

test("a first start that fails at any write tells its keys all the same, or the next one does", async () => {
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

test("a second start makes and tells nothing", async () => {
  const { db } = database;
  await start(db);
  const before = await counts(db);
  expect(await start(db)).toBeNull();
  expect(await start(db, "another-root-key-of-32-characters-or-more")).toBeNull();
  expect(await counts(db)).toEqual(before);
});

test("two processes that start together make one account, told by one of them", async () => {
  const second = await openDb(systemClock, { url: database.url, authToken: null, syncUrl: null });
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
